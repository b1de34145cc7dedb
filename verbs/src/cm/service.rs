//! The connection manager of a device: the engine's state machine, its queue pair 1, and the ids of the application.
//!
//! It runs inside the loop, under the port's lock. It never owns anything of the application's: an id's handle may be
//! dropped at any time.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use uroce_stack::cm::{
    AcceptParams, Cm, CmConfig, CmCounters, CmError, CmEvent, ConnId, ConnectParams, ConnectRequest,
    ListenId, ListenParams, QpSettings, Reply, SidrParams, SidrRequest, Unreachable,
};
use uroce_stack::wire::cm::{PortSpace, RejectInfo, RejectReason, SidrStatus};
use uroce_stack::wire::{MacAddr, Path, Psn, Qpn, source_port};
use uroce_stack::{Engine, Instant, ModifyError, QpAttr};

use super::event::CmEventType;
use super::gsi::{Arrival, Gsi};
use super::param::{ConnParam, UdParam};
use super::shared::{IdShared, News, Request, Role, socket};
use crate::driver::lock;
use crate::error::Error;
use crate::qp::AddressVector;
use crate::way::Hop;

/// Peers whose MAC is remembered; more are forgotten and asked for, or heard, again.
const MAX_WAYS: usize = 4096;
/// Ports that are handed out to who asks for none (IANA, dynamic ports).
const DYNAMIC_PORTS: std::ops::RangeInclusive<u16> = 49152..=65535;

pub(crate) struct CmService {
    cm: Cm,
    gsi: Gsi,
    mac: MacAddr,
    /// Next hops to peers: resolved by the application's calls, or heard from peers.
    ways: HashMap<IpAddr, Hop>,
    connections: HashMap<ConnId, Arc<IdShared>>,
    listeners: HashMap<ListenId, Arc<IdShared>>,
    ports: HashSet<(PortSpace, u16)>,
}

impl CmService {
    pub(crate) fn open(
        engine: &mut Engine,
        now: Instant,
        mac: MacAddr,
        config: CmConfig,
    ) -> Result<Self, Error> {
        Ok(Self {
            cm: Cm::new(config)?,
            gsi: Gsi::open(engine, now)?,
            mac,
            ways: HashMap::new(),
            connections: HashMap::new(),
            listeners: HashMap::new(),
            ports: HashSet::new(),
        })
    }

    /// Takes what has arrived, does what is due, sends what is to be sent.
    pub(crate) fn round(&mut self, engine: &mut Engine, now: Instant) {
        let Self { cm, gsi, ways, .. } = self;
        gsi.receive(|Arrival { sender, mac, mad }| {
            remember(ways, sender.source, Hop { mac, vlan: None });
            cm.receive(now, &sender, &mad);
        });
        self.cm.expire(now);
        self.catch_up(engine, now);
    }

    /// Turns news of the state machine into events, and sends what it has to send.
    fn catch_up(&mut self, engine: &mut Engine, now: Instant) {
        while let Some(event) = self.cm.next_event() {
            self.handle(engine, now, event);
        }
        while let Some(datagram) = self.cm.poll_transmit() {
            let Some(hop) = self.ways.get(&datagram.destination) else { continue };
            let path = Path {
                source_mac: self.mac,
                destination_mac: hop.mac,
                vlan: hop.vlan,
                source: datagram.source,
                destination: datagram.destination,
                source_port: source_port(datagram.flow_label, Qpn::GSI, Qpn::GSI),
                traffic_class: datagram.traffic_class,
                hop_limit: datagram.hop_limit,
                flow_label: datagram.flow_label,
            };
            // A queue that is full loses the message; it is repeated like one that was lost on the way.
            self.gsi.send(&path, &datagram.mad);
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.cm.next_deadline()
    }

    pub(crate) const fn counters(&self) -> &CmCounters {
        self.cm.counters()
    }

    /// The first request came before the RTU: the connection is there (case C84).
    pub(crate) fn communication_established(&mut self, engine: &mut Engine, now: Instant, qpn: Qpn) {
        self.cm.communication_established(qpn);
        self.catch_up(engine, now);
    }

    pub(super) fn learn(&mut self, peer: IpAddr, hop: Hop) {
        remember(&mut self.ways, peer, hop);
    }

    /// Takes a port for an id, or any free one for port 0.
    pub(super) fn take_port(&mut self, space: PortSpace, wanted: u16) -> Result<u16, Error> {
        let start = self.cm.random_psn().get() as u16 % 16384;
        let any = || DYNAMIC_PORTS.cycle().skip(start.into()).take(16384);
        let port = match wanted {
            0 => any().find(|port| !self.ports.contains(&(space, *port))),
            port => Some(port).filter(|port| !self.ports.contains(&(space, *port))),
        };
        let port = port.ok_or(Error::PortInUse(wanted))?;
        self.ports.insert((space, port));
        Ok(port)
    }

    pub(super) fn listen(&mut self, id: &Arc<IdShared>, params: &ListenParams) -> Result<(), Error> {
        let listener = self.cm.listen(params)?;
        lock(&id.state).role = Role::Listener(listener);
        self.listeners.insert(listener, Arc::clone(id));
        Ok(())
    }

    pub(super) fn connect(
        &mut self,
        engine: &mut Engine,
        now: Instant,
        id: &Arc<IdShared>,
        params: &ConnectParams<'_>,
    ) -> Result<(), Error> {
        let connection = self.cm.connect(now, params)?;
        self.adopt(connection, id);
        self.catch_up(engine, now);
        Ok(())
    }

    pub(super) fn ask(
        &mut self,
        engine: &mut Engine,
        now: Instant,
        id: &Arc<IdShared>,
        params: &SidrParams<'_>,
    ) -> Result<(), Error> {
        let connection = self.cm.sidr_request(now, params)?;
        self.adopt(connection, id);
        self.catch_up(engine, now);
        Ok(())
    }

    /// Brings the queue pair of a passive id to RTS, if it has one of ours, and grants the connection.
    pub(super) fn accept(
        &mut self,
        engine: &mut Engine,
        now: Instant,
        request: &ConnectRequest,
        qp: (Qpn, bool),
        params: &AcceptParams<'_>,
    ) -> Result<(), Error> {
        let (qpn, ours) = qp;
        if ours {
            let settings = request.settings(params);
            self.connect_qp(engine, now, qpn, &settings).map_err(crate::error::ModifyError::from)?;
        }
        self.cm.accept(now, request.id, params)?;
        self.catch_up(engine, now);
        Ok(())
    }

    /// Any other call of the state machine, and what follows from it.
    pub(super) fn call<R>(
        &mut self,
        engine: &mut Engine,
        now: Instant,
        call: impl FnOnce(&mut Cm) -> Result<R, CmError>,
    ) -> Result<R, Error> {
        let result = call(&mut self.cm)?;
        self.catch_up(engine, now);
        Ok(result)
    }

    pub(super) fn random_psn(&mut self) -> Psn {
        self.cm.random_psn()
    }

    /// The application has dropped an id: whatever it was part of ends as IBTA asks.
    pub(crate) fn retire(&mut self, engine: &mut Engine, now: Instant, id: &Arc<IdShared>) {
        let (role, local) = {
            let mut state = lock(&id.state);
            state.queue = None;
            (std::mem::take(&mut state.role), state.local)
        };
        match role {
            Role::Idle => {}
            Role::Listener(listener) => {
                self.listeners.remove(&listener);
                // A listener that is gone already has nothing to end.
                let _ = self.cm.unlisten(now, listener);
            }
            Role::Connection(connection) => {
                self.connections.remove(&connection);
                let _ = self.cm.destroy(now, connection);
            }
        }
        // The id of a request has the port of its listener, and does not hold it.
        if let Some(local) = local.filter(|_| lock(&id.state).request.is_none()) {
            self.ports.remove(&(id.port_space, local.port()));
        }
        self.catch_up(engine, now);
    }

    fn adopt(&mut self, connection: ConnId, id: &Arc<IdShared>) {
        lock(&id.state).role = Role::Connection(connection);
        self.connections.insert(connection, Arc::clone(id));
    }

    fn handle(&mut self, engine: &mut Engine, now: Instant, event: CmEvent) {
        match event {
            CmEvent::ConnectRequest(request) => self.on_request(&request),
            CmEvent::SidrRequest(request) => self.on_question(&request),
            CmEvent::Reply(reply) => self.on_reply(engine, now, &reply),
            CmEvent::Established { id, private_data } => {
                let data = private_data.map_or_else(Vec::new, |data| data.as_bytes().to_vec());
                let conn = ConnParam { private_data: data, ..ConnParam::default() };
                self.raise(id, News::new(CmEventType::Established, 0).conn(conn));
            }
            CmEvent::Rejected { id, reason, private_data, .. } => {
                let conn = ConnParam::default().private_data(private_data.as_bytes());
                self.finish(id, News::new(CmEventType::Rejected, reason.code().into()).conn(conn));
            }
            CmEvent::Unreachable { id, reason } => self.on_unreachable(id, reason),
            CmEvent::MraReceived { .. } => {}
            CmEvent::DisconnectRequest { id, private_data } => {
                let conn = ConnParam::default().private_data(private_data.as_bytes());
                self.raise(id, News::new(CmEventType::Disconnected, 0).conn(conn));
            }
            CmEvent::Disconnected { id, timed_out, .. } => {
                let status = if timed_out { -libc::ETIMEDOUT } else { 0 };
                self.raise(id, News::new(CmEventType::Disconnected, status));
            }
            CmEvent::TimewaitExit { id } => self.finish(id, News::new(CmEventType::TimewaitExit, 0)),
            CmEvent::SidrReply { id, status, qpn, qkey, private_data, .. } => {
                self.on_answer(id, status, (qpn, qkey), private_data.as_bytes());
            }
        }
    }

    fn on_request(&mut self, request: &ConnectRequest) {
        let Some(listener) = self.listeners.get(&request.listener).cloned() else { return };
        let (local, remote) =
            ends(request.local, request.remote, request.service_id.port(), request.ip.as_ref());
        let id = offspring(&listener, local, remote, Request::Connection(*request));
        lock(&id.state).rq_psn = self.cm.random_psn();
        self.adopt(request.id, &id);
        let conn = ConnParam::of_request(&request.terms, request.private_data());
        id.raise(News::new(CmEventType::ConnectRequest, 0).conn(conn).from(listener));
    }

    fn on_question(&mut self, request: &SidrRequest) {
        let Some(listener) = self.listeners.get(&request.listener).cloned() else { return };
        let (local, remote) =
            ends(request.local, request.remote, request.service_id.port(), request.ip.as_ref());
        let id = offspring(&listener, local, remote, Request::Datagram(*request));
        self.adopt(request.id, &id);
        let ud = UdParam {
            private_data: request.private_data().to_vec(),
            av: AddressVector::new(request.remote.into()),
            qp_num: Qpn::default(),
            qkey: 0,
        };
        id.raise(News::new(CmEventType::ConnectRequest, 0).ud(ud).from(listener));
    }

    /// The peer grants the connection: an id with a queue pair of ours is established without the application.
    fn on_reply(&mut self, engine: &mut Engine, now: Instant, reply: &Reply) {
        let Some(id) = self.connections.get(&reply.id).cloned() else { return };
        let conn = ConnParam::of_reply(&reply.terms, reply.private_data.as_bytes());
        let qpn = {
            let mut state = lock(&id.state);
            state.settings = Some(reply.settings);
            state.qpn
        };
        let Some(qpn) = qpn else {
            return id.raise(News::new(CmEventType::ConnectResponse, 0).conn(conn));
        };
        let connected = self.connect_qp(engine, now, qpn, &reply.settings);
        if connected.is_ok() && self.cm.establish(reply.id, &[]).is_ok() {
            return id.raise(News::new(CmEventType::Established, 0).conn(conn));
        }
        // The peer must not wait for an RTU that will not come.
        let _ = self.cm.reject(now, reply.id, RejectReason::ConsumerDefined, RejectInfo::default(), &[]);
        let status = connected
            .map_or_else(|error| -crate::error::ModifyError::from(error).errno(), |()| -libc::EINVAL);
        self.finish(reply.id, News::new(CmEventType::ConnectError, status));
    }

    fn on_unreachable(&mut self, id: ConnId, reason: Unreachable) {
        let status = match reason {
            Unreachable::NoReply | Unreachable::NoRtu => -libc::ETIMEDOUT,
            Unreachable::Evicted => -libc::ENOMEM,
            Unreachable::Superseded => -libc::ECONNRESET,
        };
        self.finish(id, News::new(CmEventType::Unreachable, status));
    }

    fn on_answer(&mut self, id: ConnId, status: SidrStatus, queue_pair: (Qpn, u32), private_data: &[u8]) {
        let Some(shared) = self.connections.get(&id) else { return };
        let remote = lock(&shared.state).remote;
        let (SidrStatus::Valid, Some(remote)) = (status, remote) else {
            return self.finish(id, News::new(CmEventType::Unreachable, status.code().into()));
        };
        let (qp_num, qkey) = queue_pair;
        let av = AddressVector::new(remote.ip().into());
        let ud = UdParam { private_data: private_data.to_vec(), av, qp_num, qkey };
        self.finish(id, News::new(CmEventType::Established, 0).ud(ud));
    }

    fn connect_qp(
        &self,
        engine: &mut Engine,
        now: Instant,
        qpn: Qpn,
        settings: &QpSettings,
    ) -> Result<(), ModifyError> {
        // A peer that has sent a message was heard, so its MAC is known.
        let hop = self.ways.get(&settings.destination).ok_or(ModifyError::Path)?;
        let path = settings.path(self.mac, hop.mac, hop.vlan);
        let rights = settings.init().access;
        engine.modify_qp(now, qpn, &QpAttr { access: rights, ..settings.rtr(path) })?;
        engine.modify_qp(now, qpn, &settings.rts())
    }

    fn raise(&self, id: ConnId, news: News) {
        if let Some(id) = self.connections.get(&id) {
            id.raise(news);
        }
    }

    /// The last event of a connection.
    fn finish(&mut self, id: ConnId, news: News) {
        if let Some(id) = self.connections.remove(&id) {
            lock(&id.state).role = Role::Idle;
            id.raise(news);
        }
    }
}

fn remember(ways: &mut HashMap<IpAddr, Hop>, peer: IpAddr, hop: Hop) {
    if ways.len() >= MAX_WAYS && !ways.contains_key(&peer) {
        ways.clear();
    }
    ways.insert(peer, hop);
}

/// The ends of a connection in terms of IP, from the side that was asked.
fn ends(
    local: IpAddr,
    remote: IpAddr,
    port: u16,
    ip: Option<&uroce_stack::wire::cm::IpCmHeader>,
) -> (SocketAddr, SocketAddr) {
    let (to, from, from_port) =
        ip.map_or((local, remote, 0), |ip| (ip.destination, ip.source, ip.source_port));
    (socket(to, port), socket(from, from_port))
}

/// The id of a request that has come to a listener.
fn offspring(
    listener: &Arc<IdShared>,
    local: SocketAddr,
    remote: SocketAddr,
    request: Request,
) -> Arc<IdShared> {
    let queue = lock(&listener.state).queue.clone();
    let id = IdShared::new(listener.port_space, queue);
    let mut state = lock(&id.state);
    (state.local, state.remote, state.request) = (Some(local), Some(remote), Some(request));
    drop(state);
    id
}
