//! The end: DREQ, DREP, and the time until no packet can be under way any more.

use super::conn::{CmState, duration};
use super::event::{CmEvent, Unreachable};
use super::params::{Sender, private_data};
use super::{Cm, CmCounter, CmError, ConnId, Keep, Place};
use crate::time::Instant;
use crate::wire::cm::{CmKind, CmMad, CmMessage, Drep, Dreq, PrivateData, RejectInfo, RejectReason};

impl Cm {
    /// Ends an established connection, or agrees when the peer ends it. Before, the queue pair goes to ERR.
    ///
    /// # Errors
    /// When the connection is not established, or there is more private data than the message has room for: 220 bytes
    /// to end it, 224 to agree.
    pub fn disconnect(&mut self, now: Instant, id: ConnId, data: &[u8]) -> Result<(), CmError> {
        let takes = |state| matches!(state, CmState::Established | CmState::DreqRcvd);
        let place = self.owned_in("disconnect", id, takes)?;
        if self.owned(id)?.1 == CmState::Established {
            self.request_end(now, place, private_data(data)?);
        } else {
            self.agree(now, place, private_data(data)?);
        }
        Ok(())
    }

    /// Gives a connection or question up, in any state, and tells the peer what its state asks for. The handle names
    /// nothing any more; no event follows.
    ///
    /// # Errors
    /// When there is no such connection.
    pub fn destroy(&mut self, now: Instant, id: ConnId) -> Result<(), CmError> {
        let (place, state) = self.owned(id)?;
        self.events.forget(id);
        if let Some(conn) = self.table.get_mut(place) {
            conn.owned = false;
        }
        match state {
            // Only an MRA tells which connection of the peer's to reject (case C80).
            CmState::ReqSent | CmState::MraReqRcvd => {
                self.send_give_up(place, RejectReason::Timeout);
                self.table.remove(place);
            }
            CmState::SidrReqSent => drop(self.table.remove(place)),
            CmState::SidrReqRcvd => self.refuse_sidr(place),
            CmState::Established => self.request_end(now, place, PrivateData::default()),
            CmState::DreqRcvd => self.agree(now, place, PrivateData::default()),
            CmState::DreqSent | CmState::Timewait => {}
            _ => {
                let (info, data) = (RejectInfo::default(), PrivateData::default());
                self.refuse(now, place, RejectReason::ConsumerDefined, info, data);
            }
        }
        Ok(())
    }

    fn request_end(&mut self, now: Instant, place: Place, private_data: PrivateData<220>) {
        let Some(conn) = self.table.get(place) else { return };
        let (id, Some(remote)) = (conn.id, conn.remote) else { return };
        let transaction_id = self.own_transaction(id);
        let (local_comm_id, remote_comm_id, remote_qpn) = (id.0, remote.comm_id, remote.qpn);
        self.set_transaction(place, transaction_id);
        self.table.set_state(place, CmState::DreqSent);
        let dreq = Dreq { local_comm_id, remote_comm_id, remote_qpn, private_data };
        self.send(place, CmMessage::Dreq(dreq), Keep::Yes);
        self.arm(place, now);
    }

    /// Answers the peer's request to end, and waits packets out.
    fn agree(&mut self, now: Instant, place: Place, private_data: PrivateData<224>) {
        let Some(conn) = self.table.get(place) else { return };
        let (local_comm_id, remote_comm_id) = (conn.id.0, conn.remote_id.unwrap_or_default());
        let drep = Drep { local_comm_id, remote_comm_id, private_data };
        self.send(place, CmMessage::Drep(drep), Keep::Yes);
        self.enter_timewait(now, place);
    }

    pub(super) fn on_dreq(&mut self, now: Instant, from: &Sender, transaction_id: u64, dreq: &Dreq) {
        let Some((place, state)) = self.known(from, dreq.remote_comm_id, dreq.local_comm_id) else {
            self.counters.add(CmCounter::UnknownId);
            return self.answer_drep(from, transaction_id, dreq);
        };
        if self.table.get(place).is_some_and(|conn| conn.local_qpn != Some(dreq.remote_qpn)) {
            return self.counters.add(CmCounter::WrongQpn);
        }
        match state {
            CmState::DreqRcvd => self.count_duplicate(),
            CmState::Timewait => self.agree_again(place, transaction_id),
            CmState::DreqSent => {
                self.set_transaction(place, transaction_id);
                self.agree(now, place, PrivateData::default());
                self.tell_disconnected(place, None, false);
            }
            _ if state.is_connected() => self.asked_to_end(place, transaction_id, dreq),
            _ => self.count_wrong_state(),
        }
    }

    fn asked_to_end(&mut self, place: Place, transaction_id: u64, dreq: &Dreq) {
        let Some(id) = self.table.get(place).map(|conn| conn.id) else { return };
        self.set_transaction(place, transaction_id);
        self.table.set_state(place, CmState::DreqRcvd);
        self.disarm(place);
        self.tell(place, CmEvent::DisconnectRequest { id, private_data: dreq.private_data });
    }

    /// The DREP got lost, or the peer asked while our own request was answered.
    fn agree_again(&mut self, place: Place, transaction_id: u64) {
        self.count_duplicate();
        let Some(conn) = self.table.get(place) else { return };
        if conn.last_sent() == Some(CmKind::Drep) && conn.transaction_id == transaction_id {
            return self.send_again(place);
        }
        let (local_comm_id, remote_comm_id) = (conn.id.0, conn.remote_id.unwrap_or_default());
        self.set_transaction(place, transaction_id);
        let private_data = PrivateData::default();
        let drep = Drep { local_comm_id, remote_comm_id, private_data };
        self.send(place, CmMessage::Drep(drep), Keep::Yes);
    }

    /// Whoever ends what does not exist here is told that it has ended.
    fn answer_drep(&mut self, to: &Sender, transaction_id: u64, dreq: &Dreq) {
        let (local_comm_id, remote_comm_id) = (dreq.remote_comm_id, dreq.local_comm_id);
        let private_data = PrivateData::default();
        let message = CmMessage::Drep(Drep { local_comm_id, remote_comm_id, private_data });
        let mad = CmMad { transaction_id, attribute_modifier: 0, message };
        self.outbox.answer(&mut self.counters, to, &mad);
    }

    pub(super) fn on_drep(&mut self, now: Instant, from: &Sender, drep: &Drep) {
        let Some((place, state)) = self.known(from, drep.remote_comm_id, drep.local_comm_id) else {
            return self.counters.add(CmCounter::UnknownId);
        };
        match state {
            CmState::DreqSent => self.disconnected(now, place, Some(drep.private_data), false),
            CmState::Timewait => self.count_duplicate(),
            _ => self.count_wrong_state(),
        }
    }

    /// The end of a connection that we ended.
    pub(super) fn disconnected(
        &mut self,
        now: Instant,
        place: Place,
        private_data: Option<PrivateData<224>>,
        timed_out: bool,
    ) {
        self.tell_disconnected(place, private_data, timed_out);
        self.enter_timewait(now, place);
    }

    fn tell_disconnected(&mut self, place: Place, private_data: Option<PrivateData<224>>, timed_out: bool) {
        if let Some(id) = self.table.get(place).map(|conn| conn.id) {
            self.tell(place, CmEvent::Disconnected { id, private_data, timed_out });
        }
    }

    pub(super) fn enter_timewait(&mut self, now: Instant, place: Place) {
        self.table.set_state(place, CmState::Timewait);
        if let Some(conn) = self.table.get_mut(place) {
            conn.deadline = Some(now + duration(conn.ack_timeout));
            let deadline = conn.deadline;
            self.note_deadline(deadline);
        }
    }

    /// The peer has forgotten this connection, and uses its queue pair for another (case C78).
    pub(super) fn give_way(&mut self, now: Instant, old: Place) {
        let Some(conn) = self.table.get(old) else { return };
        match conn.state {
            CmState::Established => self.request_end(now, old, PrivateData::default()),
            state if state.is_half_open() => self.drop_half_open(old, Unreachable::Superseded),
            _ => {}
        }
    }

    fn set_transaction(&mut self, place: Place, transaction_id: u64) {
        if let Some(conn) = self.table.get_mut(place) {
            conn.transaction_id = transaction_id;
        }
    }
}
