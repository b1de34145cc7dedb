//! Our connection manager in the place of one side of a captured connection.
//!
//! It is made to do what that side did, and hears what the other side said. What it says must be what was captured, byte
//! for byte, once its random numbers, identifiers and transaction identifiers, are exchanged for the captured ones.

use std::time::Duration;

use uroce_stack::cm::*;
use uroce_stack::wire::cm::{CmMad, CmMessage, CmTransport, IpCmHeader, Rep, Req, SidrRep, SidrReq};
use uroce_stack::wire::{Mtu, Qpn};
use uroce_stack::{Instant, QpType};

use crate::session::{Said, Session, Side, ids};

pub(crate) struct Replay<'a> {
    session: &'a Session,
    side: Side,
    cm: Cm,
    now: Instant,
    conn: Option<ConnId>,
    /// Our numbers and the captured ones: the identifier, and transactions.
    captured_id: u32,
    transactions: Vec<(u64, u64)>,
    request: Option<ConnectRequest>,
    settings: Option<QpSettings>,
}

impl<'a> Replay<'a> {
    pub(crate) fn new(session: &'a Session, side: Side) -> Self {
        let cm = Cm::new(config(session, side)).expect("the configuration is valid");
        let captured_id =
            session.said.iter().find(|said| said.by == side).map(|said| own_id(said.mad.message));
        Self {
            session,
            side,
            cm,
            now: Instant::from_nanos(1),
            conn: None,
            captured_id: captured_id.flatten().unwrap_or_default(),
            transactions: Vec::new(),
            request: None,
            settings: None,
        }
    }

    /// Goes through the session; what our queue pair is set to.
    pub(crate) fn run(mut self) -> Option<QpSettings> {
        self.listen();
        for said in &self.session.said {
            if said.by == self.side {
                self.act(&said.mad);
                self.compare(&said.mad);
            } else {
                self.hear(said);
            }
        }
        self.finish();
        self.settings
    }

    /// What the captured side did to say this.
    fn act(&mut self, captured: &CmMad) {
        match captured.message {
            CmMessage::Req(req) => self.connect(&req),
            CmMessage::Rep(rep) => self.accept(&rep),
            CmMessage::Rtu(rtu) => {
                self.cm.establish(self.id(), rtu.private_data.as_bytes()).expect("the reply is there");
            }
            CmMessage::Dreq(dreq) => self.disconnect(dreq.private_data.as_bytes()),
            CmMessage::Drep(drep) => self.disconnect(drep.private_data.as_bytes()),
            CmMessage::SidrReq(req) => self.ask(&req),
            CmMessage::SidrRep(rep) => self.tell(&rep),
            CmMessage::Mra(_) | CmMessage::Rej(_) => panic!("none was captured"),
        }
    }

    fn connect(&mut self, req: &Req) {
        let header = IpCmHeader::parse(&req.private_data).expect("a service of rdma_cm");
        assert_eq!(req.transport, CmTransport::Rc);
        let params = ConnectParams {
            route: Route {
                flow_label: (!self.is_rxe()).then_some(req.primary.flow_label),
                packet_rate: req.primary.packet_rate,
                ..Route::new(req.primary.local_gid, req.primary.remote_gid)
            },
            service_id: req.service_id,
            source_port: header.source_port,
            qp_type: QpType::Rc,
            qpn: req.local_qpn,
            rq_psn: req.starting_psn,
            path_mtu: Mtu::from_code(req.path_mtu).expect("an MTU"),
            responder_resources: req.responder_resources,
            initiator_depth: req.initiator_depth,
            retry_count: req.retry_count,
            rnr_retry_count: req.rnr_retry_count,
            flow_control: req.flow_control,
            srq: req.srq,
            private_data: &req.private_data.as_bytes()[IpCmHeader::LEN..],
        };
        self.conn = Some(self.cm.connect(self.now, &params).expect("it was possible"));
    }

    fn accept(&mut self, rep: &Rep) {
        let params = AcceptParams {
            qpn: rep.local_qpn,
            rq_psn: rep.starting_psn,
            responder_resources: rep.responder_resources,
            initiator_depth: rep.initiator_depth,
            rnr_retry_count: rep.rnr_retry_count,
            flow_control: rep.flow_control,
            srq: rep.srq,
            private_data: rep.private_data.as_bytes(),
        };
        self.settings = self.request.map(|request| request.settings(&params));
        self.cm.accept(self.now, self.id(), &params).expect("it was possible");
    }

    fn disconnect(&mut self, data: &[u8]) {
        self.cm.disconnect(self.now, self.id(), data).expect("it was possible");
    }

    fn ask(&mut self, req: &SidrReq) {
        let header = IpCmHeader::parse(&req.private_data).expect("a service of rdma_cm");
        let params = SidrParams {
            route: Route::new(header.source, header.destination),
            service_id: req.service_id,
            source_port: header.source_port,
            private_data: &req.private_data.as_bytes()[IpCmHeader::LEN..],
        };
        self.conn = Some(self.cm.sidr_request(self.now, &params).expect("it was possible"));
    }

    fn tell(&mut self, rep: &SidrRep) {
        let data = rep.private_data.as_bytes();
        self.cm.sidr_accept(self.id(), rep.qpn, rep.qkey, data).expect("it was possible");
    }

    /// What we say is what was captured.
    fn compare(&mut self, captured: &CmMad) {
        let datagram = self.cm.poll_transmit().expect("something is said");
        let (from, to) = (self.session.address(self.side), self.session.address(self.side.other()));
        assert_eq!((datagram.source, datagram.destination, datagram.hop_limit), (from, to, 64));
        assert!(self.cm.poll_transmit().is_none());
        let mut ours = CmMad::parse(&datagram.mad).expect("a message");
        let known = self.transactions.iter().find(|(own, _)| *own == ours.transaction_id).copied();
        let pair = known.unwrap_or((ours.transaction_id, captured.transaction_id));
        self.transactions.push(pair);
        ours.transaction_id = pair.1;
        self.exchange_id(&mut ours.message, self.own_id(), self.captured_id);
        assert_eq!(ours.message, captured.message, "{} as {:?}", self.session.name, self.side);
        assert_eq!(ours.emit(), captured.emit(), "{} as {:?}", self.session.name, self.side);
    }

    /// What the other side said, to us.
    fn hear(&mut self, said: &Said) {
        let mut mad = said.mad;
        let known = self.transactions.iter().find(|(_, captured)| *captured == mad.transaction_id);
        match known {
            Some((own, _)) => mad.transaction_id = *own,
            None => self.transactions.push((mad.transaction_id, mad.transaction_id)),
        }
        self.exchange_id(&mut mad.message, self.captured_id, self.own_id());
        let sender = Sender {
            source: self.session.address(said.by),
            destination: self.session.address(self.side),
            source_qp: Qpn::GSI,
        };
        self.cm.receive(self.now, &sender, &mad.emit());
        while let Some(event) = self.cm.next_event() {
            self.on_event(event);
        }
    }

    fn on_event(&mut self, event: CmEvent) {
        match event {
            CmEvent::ConnectRequest(request) => {
                (self.conn, self.request) = (Some(request.id), Some(request));
            }
            CmEvent::SidrRequest(request) => self.conn = Some(request.id),
            CmEvent::Reply(reply) => self.settings = Some(reply.settings),
            CmEvent::SidrReply { id, .. } => assert_eq!(Some(id), self.conn.take()),
            CmEvent::Established { id, .. }
            | CmEvent::Disconnected { id, timed_out: false, .. }
            | CmEvent::DisconnectRequest { id, .. } => assert_eq!(Some(id), self.conn),
            other => panic!("{} as {:?}: {other:?}", self.session.name, self.side),
        }
    }

    /// The time-wait ends, if the session did, and nothing is left.
    fn finish(&mut self) {
        self.now = self.now + Duration::from_secs(5);
        self.cm.expire(self.now);
        assert_eq!(self.cm.connections(), 0, "{} as {:?}", self.session.name, self.side);
        assert!(self.cm.poll_transmit().is_none());
    }

    fn listen(&mut self) {
        let service = self.session.said.iter().find_map(|said| match said.mad.message {
            CmMessage::Req(req) => Some((req.service_id, QpType::Rc)),
            CmMessage::SidrReq(req) => Some((req.service_id, QpType::Ud)),
            _ => None,
        });
        let (service_id, qp_type) = service.expect("a session begins with a request");
        if self.side == Side::Passive {
            self.cm.listen(&ListenParams::new(service_id, qp_type)).expect("nobody else listens");
        }
    }

    fn exchange_id(&self, message: &mut CmMessage, from: u32, to: u32) {
        for id in ids(message).into_iter().flatten().filter(|id| **id == from) {
            *id = to;
        }
    }

    fn own_id(&self) -> u32 {
        self.conn.map_or(self.captured_id, ConnId::comm_id)
    }

    fn id(&self) -> ConnId {
        self.conn.expect("there is a connection")
    }

    /// Linux makes the flow label of the ports, as we do; the adapters' captures are of a time before that.
    fn is_rxe(&self) -> bool {
        self.session.name.starts_with("cm_")
    }
}

fn own_id(mut message: CmMessage) -> Option<u32> {
    let [own, _] = ids(&mut message);
    own.map(|id| *id)
}

/// The times and the adapter that the captured side had.
fn config(session: &Session, side: Side) -> CmConfig {
    let (Some(req), Some(rep)) = (session.req(), session.rep()) else {
        return CmConfig::new([7; 32], 0, Mtu::B4096);
    };
    let ca_guid = if side == Side::Active { req.local_ca_guid } else { rep.local_ca_guid };
    assert_eq!(req.local_response_timeout, req.remote_response_timeout);
    CmConfig {
        ack_delay: rep.target_ack_delay,
        packet_life: req.primary.ack_timeout - 1,
        response_timeout: req.local_response_timeout,
        max_cm_retries: req.max_cm_retries,
        ..CmConfig::new([7; 32], ca_guid, Mtu::B4096)
    }
}
