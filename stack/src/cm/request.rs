//! A request arrives: is it a repetition, is it stale, is it for somebody, is it possible (protocol section 6.3).

use super::admission::{Checked, Refusal, check_req, plain};
use super::conn::{CmState, Conn, Remote, duration};
use super::event::{CmEvent, ConnectRequest, Unreachable};
use super::listeners::Listener;
use super::params::{ListenParams, Route, Sender};
use super::{Cm, CmConfig, CmCounter, ConnId, ListenId, Place};
use crate::time::Instant;
use crate::wire::cm::{Answered, RejectReason, Req, ServiceId};

/// A request, who sent it, and in which exchange.
#[derive(Clone, Copy)]
struct Arrived<'a> {
    from: &'a Sender,
    transaction_id: u64,
    req: &'a Req,
}

impl Cm {
    pub(super) fn on_req(&mut self, now: Instant, from: &Sender, transaction_id: u64, req: &Req) {
        if req.primary.local_gid != from.source {
            return self.counters.add(CmCounter::WrongSource);
        }
        let (arrived, peer, guid) = (Arrived { from, transaction_id, req }, from.source, req.local_ca_guid);
        if let Some((place, conn)) = self.table.by_remote_id(peer, guid, req.local_comm_id) {
            let (state, is_passive) = (conn.state, conn.listener.is_some());
            return self.repeated_req(arrived, place, state, is_passive);
        }
        if let Some((old, _)) = self.table.by_remote_qpn(peer, guid, req.local_qpn) {
            self.reject_stale(arrived);
            return self.give_way(now, old);
        }
        match self.admit(from, req) {
            Ok((listener, checked)) => self.enter_req(arrived, listener, checked),
            Err(refusal) => self.reject_req(arrived, refusal),
        }
    }

    /// A request that we have: nothing is lost but our answer.
    fn repeated_req(&mut self, arrived: Arrived<'_>, place: Place, state: CmState, is_passive: bool) {
        match state {
            CmState::Timewait => self.reject_stale(arrived),
            _ if !is_passive => self.reject_req(arrived, plain(RejectReason::DuplicateLocalCommId)),
            _ if state.is_pending() => self.ask_for_time(place, Answered::Req, CmState::MraReqSent),
            // A REP that got lost is repeated by its timer.
            _ => self.count_duplicate(),
        }
    }

    /// Who takes the request, or why nobody does.
    fn admit(&mut self, from: &Sender, req: &Req) -> Result<(Listener, Checked), Refusal> {
        let Some(listener) = self.listeners.find(req.service_id, from.destination, false) else {
            self.counters.add(CmCounter::NoListener);
            return Err(plain(RejectReason::InvalidServiceId));
        };
        let checked = check_req(from, req, listener.1.qp_type, self.config.port_mtu);
        Ok((listener, checked.inspect_err(|_| self.counters.add(CmCounter::BadRequest))?))
    }

    fn enter_req(&mut self, arrived: Arrived<'_>, (listener, params): Listener, (terms, ip): Checked) {
        let Arrived { from, transaction_id, req } = arrived;
        self.make_room(listener, &params, from);
        let Ok(id) = self.table.new_id(&mut self.rng) else {
            self.counters.add(CmCounter::NoRoom);
            return self.reject_req(arrived, plain(RejectReason::NoResources));
        };
        let begun = Begun { state: CmState::ReqRcvd, listener, remote_id: req.local_comm_id, transaction_id };
        let conn = Conn {
            terms: Some(terms),
            remote: Some(Remote {
                ca_guid: req.local_ca_guid,
                comm_id: req.local_comm_id,
                qpn: req.local_qpn,
            }),
            interval: duration(req.local_response_timeout),
            max_retries: req.max_cm_retries,
            ack_timeout: req.primary.ack_timeout,
            route: route_back(from, req),
            ..passive_conn(id, from, req.service_id, begun)
        };
        let request = ConnectRequest {
            listener,
            id,
            service_id: req.service_id,
            local: from.destination,
            remote: from.source,
            remote_ca_guid: req.local_ca_guid,
            ip,
            terms,
            data: req.private_data,
        };
        self.announce(conn, CmEvent::ConnectRequest(request));
    }

    /// Enters what a peer began, and tells the application.
    pub(super) fn announce(&mut self, conn: Conn, event: CmEvent) {
        if let Ok(place) = self.insert(conn) {
            self.tell(place, event);
        }
    }

    /// Lets the oldest half-open connections go until there is room for one more (S08).
    pub(super) fn make_room(&mut self, listener: ListenId, params: &ListenParams, from: &Sender) {
        let CmConfig { half_open, half_open_per_peer, .. } = self.config;
        self.evict_oldest(params.backlog.unwrap_or(self.config.backlog), |conn| {
            conn.listener == Some(listener) && conn.state.is_pending()
        });
        self.evict_oldest(half_open_per_peer, |conn| conn.route.destination == from.source);
        self.evict_oldest(if self.table.is_full() { 1 } else { half_open }, |_| true);
    }

    /// Keeps those that `within` admits below `limit`: one more comes.
    fn evict_oldest(&mut self, limit: u32, within: impl Fn(&Conn) -> bool) {
        if let Some(place) = self.table.oldest_half_open(limit, within) {
            self.counters.add(CmCounter::HalfOpenEvicted);
            self.drop_half_open(place, Unreachable::Evicted);
        }
    }

    fn reject_stale(&mut self, arrived: Arrived<'_>) {
        self.counters.add(CmCounter::StaleRequests);
        self.reject_req(arrived, plain(RejectReason::StaleConnection));
    }

    fn reject_req(&mut self, arrived: Arrived<'_>, (reason, info): Refusal) {
        let ids = (0, arrived.req.local_comm_id);
        self.answer_rej(arrived.from, arrived.transaction_id, ids, Answered::Req, reason, info);
    }
}

/// What is particular to a connection or question that a peer begins.
pub(super) struct Begun {
    pub(super) state: CmState,
    pub(super) listener: ListenId,
    pub(super) remote_id: u32,
    pub(super) transaction_id: u64,
}

/// A connection or question that a peer begins.
pub(super) fn passive_conn(id: ConnId, from: &Sender, service_id: ServiceId, begun: Begun) -> Conn {
    let Begun { state, listener, remote_id, transaction_id } = begun;
    Conn {
        id,
        state,
        owned: true,
        listener: Some(listener),
        route: Route::new(from.destination, from.source),
        service_id,
        terms: None,
        local_qpn: None,
        remote_id: Some(remote_id),
        remote: None,
        transaction_id,
        interval: core::time::Duration::ZERO,
        max_retries: 0,
        retries_left: 0,
        deadline: None,
        ack_timeout: 0,
        sent: None,
    }
}

fn route_back(from: &Sender, req: &Req) -> Route {
    Route {
        flow_label: Some(req.primary.flow_label),
        traffic_class: req.primary.traffic_class,
        hop_limit: req.primary.hop_limit.max(1),
        sl: req.primary.sl & 7,
        ..Route::new(from.destination, from.source)
    }
}
