//! The side that asks: REQ out, REP in, RTU out.

use super::config::check;
use super::conn::{CmState, Conn, Remote, duration};
use super::event::{CmEvent, Reply};
use super::params::{ConnectParams, Route, Sender, private_data};
use super::settings::{QpSettings, ack_timeout};
use super::terms::{ReplyTerms, RequestTerms};
use super::{Cm, CmConfig, CmCounter, CmError, ConnId, Keep, Place};
use crate::qp::QpType;
use crate::time::Instant;
use crate::wire::cm::{
    Answered, CmKind, CmMessage, CmPath, CmTransport, IpCmHeader, PrivateData, RejectInfo, RejectReason, Rep,
    Req, Rtu, ServiceId,
};
use crate::wire::{Mtu, Qpn};

/// The one partition that there is.
pub(super) const PKEY: u16 = 0xffff;

impl Cm {
    /// Asks for a connection. A [`CmEvent::Reply`], [`CmEvent::Rejected`] or [`CmEvent::Unreachable`] follows.
    ///
    /// # Errors
    /// When a value is out of range, the queue pair is in use, or there are as many connections as the configuration
    /// allows.
    pub fn connect(&mut self, now: Instant, params: &ConnectParams<'_>) -> Result<ConnId, CmError> {
        check_connect(params, self.config.port_mtu)?;
        self.check_qpn(params.qpn)?;
        let route = params.route.labelled(params.service_id, params.source_port);
        let data = with_ip_header(&route, params.service_id, params.source_port, params.private_data)?;
        let id = self.table.new_id(&mut self.rng)?;
        let req = self.request(id, &route, params, data);
        let conn = self.active_conn(id, CmState::ReqSent, route, params.service_id, RequestTerms::of(&req));
        let place = self.insert(conn)?;
        self.send(place, CmMessage::Req(req), Keep::Yes);
        self.arm(place, now);
        Ok(id)
    }

    /// Says that the queue pair is in RTS, which the reply asked for: the connection is established.
    ///
    /// # Errors
    /// When the peer has not replied, or has given up since, or when there are more than 224 bytes of private data.
    pub fn establish(&mut self, id: ConnId, data: &[u8]) -> Result<(), CmError> {
        let place = self.owned_in("establish", id, CmState::is_replied)?;
        let private_data = private_data(data)?;
        let remote_comm_id = self.remote_id(place);
        let rtu = Rtu { local_comm_id: id.0, remote_comm_id, private_data };
        self.table.set_state(place, CmState::Established);
        self.send(place, CmMessage::Rtu(rtu), Keep::Yes);
        Ok(())
    }

    pub(super) fn on_rep(&mut self, now: Instant, from: &Sender, transaction_id: u64, rep: &Rep) {
        let Some((place, conn)) = self.table.find(rep.remote_comm_id) else {
            return self.unknown_rep(from, transaction_id, rep, RejectReason::InvalidCommId);
        };
        if !conn.is_with(from.source, from.destination) {
            return self.counters.add(CmCounter::UnknownId);
        }
        match conn.state {
            state if state.is_asked() => self.granted(now, place, from, rep),
            _ if conn.remote_id != Some(rep.local_comm_id) => {
                self.unknown_rep(from, transaction_id, rep, RejectReason::InvalidCommInstance);
            }
            state if state.is_replied() => self.ask_for_time(place, Answered::Rep, CmState::MraRepSent),
            CmState::Established if conn.last_sent() == Some(CmKind::Rtu) => {
                self.count_duplicate();
                self.send_again(place);
            }
            _ => self.count_wrong_state(),
        }
    }

    /// The first REP of a connection that we asked for.
    fn granted(&mut self, now: Instant, place: Place, from: &Sender, rep: &Rep) {
        let stale = self.table.by_remote_qpn(from.source, rep.local_ca_guid, rep.local_qpn);
        if let Some((old, _)) = stale.filter(|(old, _)| *old != place) {
            return self.granted_stale(now, place, old, rep);
        }
        let Some(conn) = self.table.get_mut(place) else { return };
        let (id, route) = (conn.id, conn.route);
        let Some(request) = conn.terms else { return };
        let terms = ReplyTerms::of(rep);
        conn.ack_timeout = ack_timeout(terms.target_ack_delay, request.ack_timeout.saturating_sub(1));
        let remote = Remote { ca_guid: rep.local_ca_guid, comm_id: rep.local_comm_id, qpn: rep.local_qpn };
        self.table.set_remote(place, remote);
        self.table.set_state(place, CmState::RepRcvd);
        self.disarm(place);
        let settings = QpSettings::active(route.source, route.destination, &request, &terms);
        self.tell(place, CmEvent::Reply(Reply { id, terms, settings, private_data: rep.private_data }));
    }

    /// The peer grants with a queue pair that it has a connection on already, as far as we know.
    fn granted_stale(&mut self, now: Instant, place: Place, old: Place, rep: &Rep) {
        self.counters.add(CmCounter::StaleRequests);
        if let Some(conn) = self.table.get_mut(place) {
            conn.remote_id = Some(rep.local_comm_id);
        }
        let (reason, info) = (RejectReason::StaleConnection, RejectInfo::default());
        self.send_rej(place, Answered::Rep, reason, info, PrivateData::default());
        self.tell_rejected(place, Answered::Req, reason, info, PrivateData::default());
        self.table.remove(place);
        self.give_way(now, old);
    }

    /// Nobody here waits for this REP: its sender need not wait for an RTU either.
    fn unknown_rep(&mut self, from: &Sender, transaction_id: u64, rep: &Rep, reason: RejectReason) {
        self.counters.add(CmCounter::UnknownId);
        let ids = (rep.remote_comm_id, rep.local_comm_id);
        self.answer_rej(from, transaction_id, ids, Answered::Rep, reason, RejectInfo::default());
    }

    fn request(
        &self,
        id: ConnId,
        route: &Route,
        params: &ConnectParams<'_>,
        private_data: PrivateData<92>,
    ) -> Req {
        Req {
            local_comm_id: id.0,
            vendor_id: 0,
            service_id: params.service_id,
            local_ca_guid: self.config.ca_guid,
            local_qkey: 0,
            local_qpn: params.qpn,
            responder_resources: params.responder_resources,
            local_eecn: 0,
            initiator_depth: params.initiator_depth,
            remote_eecn: 0,
            remote_response_timeout: self.config.response_timeout,
            transport: if params.qp_type == QpType::Uc { CmTransport::Uc } else { CmTransport::Rc },
            flow_control: params.flow_control,
            starting_psn: params.rq_psn,
            local_response_timeout: self.config.response_timeout,
            retry_count: params.retry_count,
            pkey: PKEY,
            path_mtu: params.path_mtu.code(),
            rdc_exists: false,
            rnr_retry_count: params.rnr_retry_count,
            max_cm_retries: self.config.max_cm_retries,
            srq: params.srq,
            primary: self.primary_path(route),
            alternate: CmPath::NONE,
            private_data,
        }
    }

    fn primary_path(&self, route: &Route) -> CmPath {
        CmPath {
            local_lid: CmPath::PERMISSIVE_LID,
            remote_lid: CmPath::PERMISSIVE_LID,
            local_gid: route.source,
            remote_gid: route.destination,
            flow_label: route.label(),
            packet_rate: route.packet_rate,
            traffic_class: route.traffic_class,
            hop_limit: route.hop_limit,
            sl: route.sl,
            subnet_local: false,
            ack_timeout: ack_timeout(self.config.ack_delay, self.config.packet_life),
        }
    }

    /// A connection or question that we begin.
    pub(super) fn active_conn(
        &self,
        id: ConnId,
        state: CmState,
        route: Route,
        service_id: ServiceId,
        terms: Option<RequestTerms>,
    ) -> Conn {
        let CmConfig { packet_life, response_timeout, max_cm_retries, .. } = self.config;
        let travel = if terms.is_some() { 2 * duration(packet_life) } else { core::time::Duration::ZERO };
        Conn {
            id,
            state,
            owned: true,
            listener: None,
            route,
            service_id,
            terms,
            local_qpn: terms.map(|terms| terms.qpn),
            remote_id: None,
            remote: None,
            transaction_id: self.own_transaction(id),
            interval: travel + duration(response_timeout),
            max_retries: max_cm_retries,
            retries_left: 0,
            deadline: None,
            ack_timeout: terms.map_or(0, |terms| terms.ack_timeout),
            sent: None,
        }
    }

    pub(super) fn insert(&mut self, conn: Conn) -> Result<Place, CmError> {
        let limit = self.config.max_connections;
        self.table.insert(conn).ok_or(CmError::Exhausted { what: "connection", limit })
    }

    pub(super) fn remote_id(&self, place: Place) -> u32 {
        self.table.get(place).and_then(|conn| conn.remote_id).unwrap_or_default()
    }
}

fn check_connect(params: &ConnectParams<'_>, port_mtu: Mtu) -> Result<(), CmError> {
    params.route.check()?;
    if !matches!(params.qp_type, QpType::Rc | QpType::Uc) {
        return Err(CmError::Invalid("connections are between RC or UC queue pairs"));
    }
    check_qpn_number(params.qpn)?;
    check("path_mtu", params.path_mtu.bytes() as u64, 256, port_mtu.bytes() as u64)?;
    check("retry_count", params.retry_count.into(), 0, 7)?;
    check("rnr_retry_count", params.rnr_retry_count.into(), 0, 7)
}

/// Queue pairs 0 and 1 are for management, and the last number is everybody's.
pub(super) fn check_qpn_number(qpn: Qpn) -> Result<(), CmError> {
    check("qpn", qpn.get().into(), 2, 0xff_fffe)
}

/// What the application says, behind what `rdma_cm` says.
pub(super) fn with_ip_header<const N: usize>(
    route: &Route,
    service_id: ServiceId,
    source_port: u16,
    data: &[u8],
) -> Result<PrivateData<N>, CmError> {
    if !service_id.has_ip_header() {
        return private_data(data);
    }
    let header = IpCmHeader { source_port, source: route.source, destination: route.destination };
    let limit = N - IpCmHeader::LEN;
    header.emit(data).ok_or(CmError::PrivateDataTooLong { found: data.len(), limit })
}
