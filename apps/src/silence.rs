//! Noticing that nothing comes any more: what no completion tells while nothing is outstanding.

use std::time::Duration;

use crate::clock::Stopwatch;
use crate::error::{Failure, Result};

/// What timeout 14 and 7 retries may take: 67 ms up to fourfold, eight times; and as much again for a slow machine.
pub(crate) const VANISHED: Duration = Duration::from_millis(2 * 8 * 4 * 67);

/// Watches a loop that waits for the peer.
#[derive(Debug)]
pub(crate) struct Silence {
    since: Option<Stopwatch>,
    turns: u32,
    period: u32,
    reliable: bool,
}

impl Silence {
    /// Reads the clock once in `period` turns of the loop. `reliable`: what is lost is sent again.
    pub(crate) const fn new(period: u32, reliable: bool) -> Self {
        Self { since: None, turns: 0, period, reliable }
    }

    /// Something came.
    pub(crate) const fn broken(&mut self) {
        self.since = None;
        self.turns = 0;
    }

    /// Nothing came in this turn.
    ///
    /// # Errors
    /// It has lasted for [`VANISHED`].
    pub(crate) fn goes_on(&mut self) -> Result<()> {
        self.turns += 1;
        if self.turns < self.period {
            return Ok(());
        }
        self.turns = 0;
        if self.since.get_or_insert_with(Stopwatch::start).elapsed() < VANISHED {
            return Ok(());
        }
        let lost =
            if self.reliable { "" } else { ", or a packet was lost, which this service does not send again" };
        Err(Failure::new(format!(
            "nothing came from the peer for {:.1} s: it has ended or cannot be reached any more{lost}; start it again, \
             and check with `ping` that packets pass",
            VANISHED.as_secs_f64()
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_read_seldom_and_from_the_first_look_on() {
        let mut silence = Silence::new(3, true);
        for _ in 0..2 {
            silence.goes_on().unwrap();
        }
        assert!(silence.since.is_none());
        silence.goes_on().unwrap();
        assert!(silence.since.is_some());
        silence.broken();
        assert!(silence.since.is_none() && silence.turns == 0);
    }
}
