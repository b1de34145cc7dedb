//! Going back: timers, sequence errors, receivers that are not ready.

use core::time::Duration;

use super::super::env::Env;
use super::super::sends::Failure;
use super::{Cursor, Requester};
use crate::completion::WcStatus;
use crate::counters::Counter;
use crate::time::Instant;
use crate::wire::Syndrome;

/// A timeout may take up to four times its nominal length (IBTA, transport timer): the second takes twice, further
/// ones four times as long.
const MAX_BACKOFF: u8 = 2;

/// `rnr_retry` that never runs out (IBTA, RNR retry counter).
const RNR_FOREVER: u8 = 7;

impl Requester {
    /// Does what is due at `env.now`.
    pub(crate) fn expire(&mut self, env: &mut Env<'_>) -> Result<(), Failure> {
        if let Some(until) = self.rnr_until {
            if until <= env.now {
                self.rnr_until = None;
                self.restart_timer(env.now);
            }
            return Ok(());
        }
        match self.ack_deadline {
            Some(deadline) if deadline <= env.now => self.time_out(env),
            _ => Ok(()),
        }
    }

    fn time_out(&mut self, env: &mut Env<'_>) -> Result<(), Failure> {
        env.counters.add(Counter::LocalAckTimeoutErr);
        self.timeouts = self.timeouts.saturating_add(1);
        self.go_back(env)
    }

    /// Whether only the oldest packet may be sent. A peer that was not heard in time is slow more often than the
    /// packets are lost; all of them again would make it slower still.
    pub(super) fn is_probing(&self) -> bool {
        self.timeouts > 0
    }

    /// Sends everything from the oldest unacknowledged packet on again, at the cost of one retry.
    pub(super) fn go_back(&mut self, env: &mut Env<'_>) -> Result<(), Failure> {
        let Some(left) = self.retries_left.checked_sub(1) else {
            env.counters.add(Counter::RetryExceededErr);
            return Err(WcStatus::RetryExcErr.into());
        };
        self.retries_left = left;
        self.rewind();
        self.restart_timer(env.now);
        Ok(())
    }

    /// As [`go_back`](Self::go_back), for a response that told of a loss. One answer to a loss is enough: what
    /// arrives on top of it was under way already.
    pub(super) fn go_back_once(&mut self, env: &mut Env<'_>) -> Result<(), Failure> {
        if self.went_back {
            return Ok(());
        }
        self.went_back = true;
        self.timeouts = 0;
        self.go_back(env)
    }

    /// The peer has no receive for the oldest unacknowledged packet: waits as long as it says, then sends again.
    pub(super) fn wait_for_receiver(&mut self, env: &mut Env<'_>, timer: u8) -> Result<(), Failure> {
        if self.rnr_until.is_some() {
            return Ok(());
        }
        if self.settings.rnr_retry != RNR_FOREVER {
            let Some(left) = self.rnr_retries_left.checked_sub(1) else {
                env.counters.add(Counter::RetryRnrExceededErr);
                return Err(WcStatus::RnrRetryExcErr.into());
            };
            self.rnr_retries_left = left;
        }
        self.timeouts = 0;
        self.rewind();
        self.rnr_until = Some(env.now + Syndrome::rnr_delay(timer));
        Ok(())
    }

    /// The peer got further: retries start anew, and so does the timer.
    pub(super) fn made_progress(&mut self, now: Instant) {
        self.reload_retries();
        (self.went_back, self.timeouts) = (false, 0);
        self.catch_up();
        self.restart_timer(now);
    }

    pub(super) const fn reload_retries(&mut self) {
        self.retries_left = self.settings.retry_cnt;
        self.rnr_retries_left = self.settings.rnr_retry;
    }

    /// Starts the ACK timer anew, or stops it when nothing is outstanding or timeouts are off.
    pub(super) fn restart_timer(&mut self, now: Instant) {
        let running = self.una != self.sent_end && self.settings.timeout != 0;
        let time = ack_timeout(self.settings.timeout) * (1 << self.timeouts.min(MAX_BACKOFF));
        self.ack_deadline = running.then(|| now + time);
    }

    /// Where the oldest unacknowledged packet is.
    pub(super) fn oldest_packet(&self) -> Cursor {
        Cursor { wqe: self.oldest(), packet: self.acknowledged_packets() }
    }

    fn rewind(&mut self) {
        self.cursor = self.oldest_packet();
        self.reads_in_flight = 0;
        self.window_base = self.una;
        self.unasked = 0;
    }

    /// The cursor does not lag behind what the peer has acknowledged.
    fn catch_up(&mut self) {
        if self.una.distance(self.window_base) > 0 {
            self.window_base = self.una;
        }
        let acknowledged = self.oldest_packet();
        if self.cursor.wqe < acknowledged.wqe {
            self.cursor = acknowledged;
            self.reads_in_flight = 0;
        } else if self.cursor.wqe == acknowledged.wqe {
            self.cursor.packet = self.cursor.packet.max(acknowledged.packet);
        }
    }

    /// Request packets of the oldest work request that are acknowledged; 0 for a READ, which is one request.
    fn acknowledged_packets(&self) -> u32 {
        let oldest = self.oldest();
        if oldest == self.unstarted || self.sq.get(oldest).op.is_answered() {
            return 0;
        }
        self.una.distance(self.progress_of(oldest).first).unsigned_abs()
    }
}

/// 4.096 us * 2^n (IBTA, local ACK timeout).
fn ack_timeout(exponent: u8) -> Duration {
    Duration::from_nanos(4096 << exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c39_timeouts_double_from_4096_nanoseconds() {
        assert_eq!(ack_timeout(1), Duration::from_nanos(8192));
        assert_eq!(ack_timeout(14), Duration::from_nanos(67_108_864));
        assert_eq!(ack_timeout(31).as_secs(), 8796);
    }
}
