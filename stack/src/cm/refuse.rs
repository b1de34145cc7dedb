//! Not yet, and no: MRA and REJ, in both directions.

use super::config::{MAX_EXPONENT, check};
use super::conn::{CmState, duration};
use super::event::CmEvent;
use super::params::{Sender, private_data};
use super::{Cm, CmCounter, CmError, ConnId, Keep, Place};
use crate::time::Instant;
use crate::wire::cm::{Answered, CmMad, CmMessage, Mra, PrivateData, Rej, RejectInfo, RejectReason};

impl Cm {
    /// Refuses a connection: a request of a peer, what we granted and the peer has not confirmed, or what the peer granted
    /// and we have not established. The handle names nothing any more.
    ///
    /// # Errors
    /// When the connection is in no such state, or there are more than 148 bytes of private data.
    pub fn reject(
        &mut self,
        now: Instant,
        id: ConnId,
        reason: RejectReason,
        info: RejectInfo,
        data: &[u8],
    ) -> Result<(), CmError> {
        let takes =
            |state: CmState| state.is_replied() || state.is_half_open() && state != CmState::SidrReqRcvd;
        let place = self.owned_in("reject", id, takes)?;
        let private_data = private_data(data)?;
        self.refuse(now, place, reason, info, private_data);
        Ok(())
    }

    /// Tells the peer that our answer takes time, which it then waits: 4.096 us * 2^`service_timeout`.
    ///
    /// It is not needed: a peer that asks again is told so anyway.
    ///
    /// # Errors
    /// When no answer is due, `service_timeout` is above 24, or there are more than 222 bytes of private data.
    pub fn mra(&mut self, id: ConnId, service_timeout: u8, data: &[u8]) -> Result<(), CmError> {
        let takes =
            |state: CmState| state.is_replied() || matches!(state, CmState::ReqRcvd | CmState::MraReqSent);
        let place = self.owned_in("mra", id, takes)?;
        check("service_timeout", service_timeout.into(), 0, MAX_EXPONENT.into())?;
        let private_data = private_data(data)?;
        if self.owned(id)?.1.is_replied() {
            self.send_mra(place, Answered::Rep, CmState::MraRepSent, service_timeout, private_data);
        } else {
            self.send_mra(place, Answered::Req, CmState::MraReqSent, service_timeout, private_data);
        }
        Ok(())
    }

    /// The peer repeats what our application has not answered.
    pub(super) fn ask_for_time(&mut self, place: Place, answered: Answered, state: CmState) {
        self.count_duplicate();
        let service_timeout = self.config.service_timeout;
        self.send_mra(place, answered, state, service_timeout, PrivateData::default());
    }

    fn send_mra(
        &mut self,
        place: Place,
        answered: Answered,
        state: CmState,
        service_timeout: u8,
        private_data: PrivateData<222>,
    ) {
        let Some(conn) = self.table.get(place) else { return };
        let (local_comm_id, remote_comm_id) = (conn.id.0, conn.remote_id.unwrap_or_default());
        let mra = Mra { local_comm_id, remote_comm_id, answered, service_timeout, private_data };
        self.table.set_state(place, state);
        self.send(place, CmMessage::Mra(mra), Keep::No);
    }

    pub(super) fn on_mra(&mut self, now: Instant, from: &Sender, mra: &Mra) {
        let found = match mra.answered {
            Answered::Req => self.asked(from, mra.remote_comm_id, mra.local_comm_id),
            _ => self.known(from, mra.remote_comm_id, mra.local_comm_id),
        };
        let Some((place, state)) = found else { return self.counters.add(CmCounter::UnknownId) };
        match mra.answered {
            Answered::Req if state.is_asked() => self.delayed(now, place, CmState::MraReqRcvd, mra),
            Answered::Rep if state.is_granted() => self.delayed(now, place, CmState::MraRepRcvd, mra),
            _ => self.count_wrong_state(),
        }
    }

    /// The answer takes time: our message is not repeated before.
    fn delayed(&mut self, now: Instant, place: Place, state: CmState, mra: &Mra) {
        let Some(conn) = self.table.get_mut(place) else { return };
        let (id, is_news) = (conn.id, conn.state != state);
        conn.remote_id = Some(mra.local_comm_id);
        conn.deadline = Some(now + conn.interval + duration(mra.service_timeout));
        let deadline = conn.deadline;
        self.note_deadline(deadline);
        self.table.set_state(place, state);
        if is_news {
            let (service_timeout, private_data) = (mra.service_timeout, mra.private_data);
            self.tell(place, CmEvent::MraReceived { id, service_timeout, private_data });
        } else {
            self.count_duplicate();
        }
    }

    pub(super) fn on_rej(&mut self, now: Instant, from: &Sender, rej: &Rej) {
        let Some((place, state)) = self.rejected_conn(from, rej) else {
            return self.counters.add(CmCounter::UnknownId);
        };
        match state {
            CmState::DreqSent => self.disconnected(now, place, None, false),
            CmState::DreqRcvd | CmState::Timewait | CmState::SidrReqSent | CmState::SidrReqRcvd => {
                self.count_wrong_state();
            }
            _ => {
                self.tell_rejected(place, rej.answered, rej.reason, rej.info, rej.private_data);
                self.retire(now, place, state, rej.reason);
            }
        }
    }

    /// Which connection a REJ is about (case C80). One that gave up on a request it had no answer to does not know our
    /// identifier, and names its own adapter and identifier instead.
    fn rejected_conn(&self, from: &Sender, rej: &Rej) -> Option<(Place, CmState)> {
        if rej.remote_comm_id == 0 && rej.reason == RejectReason::Timeout {
            let ca_guid = u64::from_be_bytes(*rej.info.as_bytes().first_chunk()?);
            let (place, conn) = self.table.by_remote_id(from.source, ca_guid, rej.local_comm_id)?;
            return conn.state.is_half_open().then_some((place, conn.state));
        }
        match rej.answered {
            Answered::Req => self.asked(from, rej.remote_comm_id, rej.local_comm_id),
            _ => self.known(from, rej.remote_comm_id, rej.local_comm_id),
        }
    }

    /// After a REJ: packets may be under way once both ends were known, and after a stale connection.
    fn retire(&mut self, now: Instant, place: Place, state: CmState, reason: RejectReason) {
        let nothing_sent = state.is_asked() && reason != RejectReason::StaleConnection;
        if nothing_sent || state.is_pending() {
            self.table.remove(place);
        } else {
            self.enter_timewait(now, place);
        }
    }

    /// Ends a connection with a REJ. The application knows.
    pub(super) fn refuse(
        &mut self,
        now: Instant,
        place: Place,
        reason: RejectReason,
        info: RejectInfo,
        private_data: PrivateData<148>,
    ) {
        let Some(conn) = self.table.get_mut(place) else { return };
        let (state, id) = (conn.state, conn.id);
        conn.owned = false;
        let answered = match state {
            state if state.is_pending() => Answered::Req,
            state if state.is_replied() => Answered::Rep,
            _ => Answered::Other,
        };
        self.events.forget(id);
        self.send_rej(place, answered, reason, info, private_data);
        self.retire(now, place, state, reason);
    }

    /// Tells the peer of a connection that we wait no longer. Who gave up waiting names its adapter.
    pub(super) fn send_give_up(&mut self, place: Place, reason: RejectReason) {
        let guid = self.config.ca_guid.to_be_bytes();
        let info = RejectInfo::new(if reason == RejectReason::Timeout { &guid } else { &[] });
        let info = info.unwrap_or_default();
        self.send_rej(place, Answered::Other, reason, info, PrivateData::default());
    }

    /// A REJ of a connection. As Linux does, it names no connection of ours before we told the peer of one.
    pub(super) fn send_rej(
        &mut self,
        place: Place,
        answered: Answered,
        reason: RejectReason,
        info: RejectInfo,
        private_data: PrivateData<148>,
    ) {
        let Some(conn) = self.table.get(place) else { return };
        let Some(remote_comm_id) = conn.remote_id else { return };
        let local_comm_id = if conn.state == CmState::ReqRcvd { 0 } else { conn.id.0 };
        let rej = Rej { local_comm_id, remote_comm_id, answered, reason, info, private_data };
        self.send(place, CmMessage::Rej(rej), Keep::No);
    }

    /// A REJ to somebody with whom there is no connection; `ids` are ours and theirs.
    pub(super) fn answer_rej(
        &mut self,
        to: &Sender,
        transaction_id: u64,
        (local_comm_id, remote_comm_id): (u32, u32),
        answered: Answered,
        reason: RejectReason,
        info: RejectInfo,
    ) {
        let private_data = PrivateData::default();
        let message =
            CmMessage::Rej(Rej { local_comm_id, remote_comm_id, answered, reason, info, private_data });
        let mad = CmMad { transaction_id, attribute_modifier: 0, message };
        self.outbox.answer(&mut self.counters, to, &mad);
    }

    pub(super) fn tell_rejected(
        &mut self,
        place: Place,
        answered: Answered,
        reason: RejectReason,
        info: RejectInfo,
        private_data: PrivateData<148>,
    ) {
        if let Some(id) = self.table.get(place).map(|conn| conn.id) {
            self.tell_end(place, CmEvent::Rejected { id, answered, reason, info, private_data });
        }
    }
}
