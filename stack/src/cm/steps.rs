//! The steps that everything is made of: find, say, tell, wait.

use super::event::CmEvent;
use super::table::Place;
use super::{Cm, CmCounter, CmError, CmState, ConnId};
use crate::time::Instant;
use crate::wire::Qpn;
use crate::wire::cm::{CmMad, CmMessage};

/// Whether a message is repeated when an answer does not come, or when what it answers is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    Yes,
    No,
}

impl Cm {
    /// The connection of a handle that the application holds.
    pub(super) fn owned(&self, id: ConnId) -> Result<(Place, CmState), CmError> {
        let (place, conn) = self.table.find(id.0).ok_or(CmError::NotFound)?;
        if conn.owned { Ok((place, conn.state)) } else { Err(CmError::NotFound) }
    }

    /// The same, in one of the states that a call takes.
    pub(super) fn owned_in(
        &self,
        call: &'static str,
        id: ConnId,
        fits: impl Fn(CmState) -> bool,
    ) -> Result<Place, CmError> {
        let (place, state) = self.owned(id)?;
        if fits(state) { Ok(place) } else { Err(CmError::State { call, state }) }
    }

    /// The transaction identifier of exchanges that the connection begins.
    pub(super) fn own_transaction(&self, id: ConnId) -> u64 {
        u64::from(self.agent) << 32 | u64::from(id.0)
    }

    /// Sends a message of a connection, in the exchange that is going on.
    pub(super) fn send(&mut self, place: Place, message: CmMessage, keep: Keep) {
        let Some(conn) = self.table.get_mut(place) else { return };
        let kind = message.kind();
        let mad = CmMad { transaction_id: conn.transaction_id, attribute_modifier: 0, message }.emit();
        if keep == Keep::Yes {
            conn.sent = Some((kind, mad));
        }
        self.outbox.message(&mut self.counters, &conn.route, kind, mad);
    }

    /// Sends the last message again, byte by byte.
    pub(super) fn send_again(&mut self, place: Place) {
        if let Some(conn) = self.table.get(place)
            && let Some((kind, mad)) = conn.sent
        {
            self.outbox.message(&mut self.counters, &conn.route, kind, mad);
        }
    }

    /// Tells the application, if it still holds the connection.
    pub(super) fn tell(&mut self, place: Place, event: CmEvent) {
        if self.table.get(place).is_some_and(|conn| conn.owned) {
            self.events.raise(&mut self.counters, event);
        }
    }

    /// Tells the application that the connection is no more, unless it has never heard of it.
    pub(super) fn tell_end(&mut self, place: Place, event: CmEvent) {
        if !self.events.withdraw(event.id()) {
            self.tell(place, event);
        }
        if let Some(conn) = self.table.get_mut(place) {
            conn.owned = false;
        }
    }

    /// Waits for an answer, or for the end of time-wait.
    pub(super) fn arm(&mut self, place: Place, now: Instant) {
        if let Some(conn) = self.table.get_mut(place) {
            conn.await_answer(now);
            let deadline = conn.deadline;
            self.note_deadline(deadline);
        }
    }

    pub(super) fn disarm(&mut self, place: Place) {
        if let Some(conn) = self.table.get_mut(place) {
            conn.deadline = None;
        }
    }

    pub(super) fn note_deadline(&mut self, deadline: Option<Instant>) {
        self.earliest = self.earliest.into_iter().chain(deadline).min();
    }

    pub(super) fn check_qpn(&self, qpn: Qpn) -> Result<(), CmError> {
        match self.table.by_local_qpn(qpn) {
            Some(_) => Err(CmError::QpnBusy(qpn)),
            None => Ok(()),
        }
    }

    pub(super) fn count_duplicate(&mut self) {
        self.counters.add(CmCounter::Duplicates);
    }

    pub(super) fn count_wrong_state(&mut self) {
        self.counters.add(CmCounter::WrongState);
    }
}
