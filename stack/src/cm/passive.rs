//! The side that is asked: REP out, RTU in; and who listens.

use super::active::check_qpn_number;
use super::config::check;
use super::conn::CmState;
use super::event::{CmEvent, Unreachable};
use super::params::{AcceptParams, ListenParams, Sender, private_data};
use super::{Cm, CmCounter, CmError, ConnId, Keep, ListenId, Place};
use crate::time::Instant;
use crate::wire::Qpn;
use crate::wire::cm::{CmMessage, PrivateData, RejectReason, Rep, Rtu};

impl Cm {
    /// Listens: requests of peers become [`CmEvent::ConnectRequest`] or [`CmEvent::SidrRequest`].
    ///
    /// # Errors
    /// [`CmError::AddressInUse`] when somebody listens there already.
    pub fn listen(&mut self, params: &ListenParams) -> Result<ListenId, CmError> {
        self.listeners.insert(params)
    }

    /// Stops listening. What the application has not answered is rejected; connections stay.
    ///
    /// # Errors
    /// When there is no such listener.
    pub fn unlisten(&mut self, now: Instant, listener: ListenId) -> Result<(), CmError> {
        self.listeners.remove(listener)?;
        while let Some(place) = self.table.pending_at(listener) {
            let Some(id) = self.table.get(place).map(|conn| conn.id) else { break };
            self.destroy(now, id)?;
        }
        Ok(())
    }

    /// Grants a connection, on a queue pair that is in RTS with what [`ConnectRequest::settings`] says, and has receives
    /// posted: data may come before the peer's confirmation.
    ///
    /// [`ConnectRequest::settings`]: super::ConnectRequest::settings
    ///
    /// # Errors
    /// When the request was answered or has gone, the queue pair is in use, or a value is out of range.
    pub fn accept(&mut self, now: Instant, id: ConnId, params: &AcceptParams<'_>) -> Result<(), CmError> {
        let takes = |state| matches!(state, CmState::ReqRcvd | CmState::MraReqSent);
        let place = self.owned_in("accept", id, takes)?;
        check_qpn_number(params.qpn)?;
        check("rnr_retry_count", params.rnr_retry_count.into(), 0, 7)?;
        self.check_qpn(params.qpn)?;
        let private_data = private_data(params.private_data)?;
        let rep = self.reply(place, params, private_data).ok_or(CmError::NotFound)?;
        self.table.set_local_qpn(place, params.qpn);
        self.table.set_state(place, CmState::RepSent);
        self.send(place, CmMessage::Rep(rep), Keep::Yes);
        self.arm(place, now);
        Ok(())
    }

    /// Says that data of the peer has arrived on a queue pair (`IB_EVENT_COMM_EST`): the peer uses the connection, even
    /// if its confirmation got lost (case C84).
    ///
    /// Does nothing for a queue pair whose connection does not wait for that.
    pub fn communication_established(&mut self, qpn: Qpn) {
        if let Some((place, conn)) = self.table.by_local_qpn(qpn)
            && conn.state.is_granted()
        {
            self.established(place, None);
        }
    }

    pub(super) fn on_rtu(&mut self, from: &Sender, rtu: &Rtu) {
        let Some((place, state)) = self.known(from, rtu.remote_comm_id, rtu.local_comm_id) else {
            return self.counters.add(CmCounter::UnknownId);
        };
        match state {
            state if state.is_granted() => self.established(place, Some(rtu.private_data)),
            CmState::Established => self.count_duplicate(),
            _ => self.count_wrong_state(),
        }
    }

    fn established(&mut self, place: Place, private_data: Option<PrivateData<224>>) {
        let Some(id) = self.table.get(place).map(|conn| conn.id) else { return };
        self.table.set_state(place, CmState::Established);
        self.disarm(place);
        self.tell(place, CmEvent::Established { id, private_data });
    }

    fn reply(&self, place: Place, params: &AcceptParams<'_>, private_data: PrivateData<196>) -> Option<Rep> {
        let conn = self.table.get(place)?;
        let terms = params.terms(self.config.ack_delay).within(&conn.terms?);
        Some(Rep {
            local_comm_id: conn.id.0,
            remote_comm_id: conn.remote_id?,
            local_qkey: 0,
            local_qpn: terms.qpn,
            local_eecn: 0,
            starting_psn: terms.starting_psn,
            vendor_id: 0,
            responder_resources: terms.responder_resources,
            initiator_depth: terms.initiator_depth,
            target_ack_delay: terms.target_ack_delay,
            failover_accepted: 0,
            flow_control: terms.flow_control,
            rnr_retry_count: terms.rnr_retry_count,
            srq: terms.srq,
            local_ca_guid: self.config.ca_guid,
            private_data,
        })
    }

    /// Ends a half-open connection at once. A peer that was granted it learns that it is none.
    pub(super) fn drop_half_open(&mut self, place: Place, reason: Unreachable) {
        let Some(conn) = self.table.get(place) else { return };
        let id = conn.id;
        if conn.state.is_granted() {
            self.send_give_up(place, RejectReason::NoResources);
        }
        self.tell_end(place, CmEvent::Unreachable { id, reason });
        self.table.remove(place);
    }
}
