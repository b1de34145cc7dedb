//! The only clock of the command: for what it measures, and for the pauses of its waiting loops.

use std::time::{Duration, Instant};

/// Measures time from the moment it was started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        now().duration_since(self.0)
    }

    pub(crate) fn seconds(self) -> f64 {
        self.elapsed().as_secs_f64()
    }

    /// Nanoseconds from the start until now; 584 years fit.
    pub(crate) fn nanos(self) -> u64 {
        self.elapsed().as_nanos() as u64
    }
}

/// Gives the core away for a while, between two looks at something that has no event.
#[expect(clippy::disallowed_methods, reason = "a command waits for people and processes, not for packets")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}

#[expect(clippy::disallowed_methods, reason = "a command that measures must read a clock")]
fn now() -> Instant {
    Instant::now()
}
