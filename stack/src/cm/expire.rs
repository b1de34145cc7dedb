//! Timers (protocol section 6.7).

use super::conn::CmState;
use super::event::{CmEvent, Unreachable};
use super::{Cm, CmCounter, Place};
use crate::time::Instant;
use crate::wire::cm::RejectReason;

impl Cm {
    /// Does what is due: repeats messages, gives up, ends time-wait.
    pub fn expire(&mut self, now: Instant) {
        if self.earliest.is_none_or(|earliest| earliest > now) {
            return;
        }
        let mut due = core::mem::take(&mut self.due);
        self.table.due(now, &mut due);
        for place in due.drain(..) {
            self.on_timeout(now, place);
        }
        self.due = due;
        self.earliest = self.table.next_deadline();
    }

    /// When [`expire`](Self::expire) has something to do; it may turn out to be nothing.
    #[must_use]
    pub const fn next_deadline(&self) -> Option<Instant> {
        self.earliest
    }

    fn on_timeout(&mut self, now: Instant, place: Place) {
        let Some(conn) = self.table.get_mut(place) else { return };
        if conn.state == CmState::Timewait {
            return self.timewait_exit(place);
        }
        if conn.retries_left == 0 {
            return self.give_up(now, place);
        }
        conn.retries_left -= 1;
        conn.deadline = Some(now + conn.interval);
        self.counters.add(CmCounter::Retries);
        self.send_again(place);
    }

    fn timewait_exit(&mut self, place: Place) {
        if let Some(id) = self.table.get(place).map(|conn| conn.id) {
            self.tell(place, CmEvent::TimewaitExit { id });
            self.table.remove(place);
        }
    }

    /// Every repetition remained without answer.
    fn give_up(&mut self, now: Instant, place: Place) {
        self.counters.add(CmCounter::RetriesExceeded);
        let Some(conn) = self.table.get(place) else { return };
        let (id, state) = (conn.id, conn.state);
        if state == CmState::DreqSent {
            return self.disconnected(now, place, None, true);
        }
        self.send_give_up(place, RejectReason::Timeout);
        let granted = state.is_granted();
        let reason = if granted { Unreachable::NoRtu } else { Unreachable::NoReply };
        self.tell_end(place, CmEvent::Unreachable { id, reason });
        if granted {
            // The peer may have been using the connection all the time.
            self.enter_timewait(now, place);
        } else {
            self.table.remove(place);
        }
    }
}
