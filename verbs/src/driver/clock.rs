//! The only clock.

use uroce_stack::Instant;

/// Counts from the moment it was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    epoch: std::time::Instant,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self { epoch: read() }
    }

    pub(crate) fn now(self) -> Instant {
        let nanos = read().duration_since(self.epoch).as_nanos();
        // 584 years of nanoseconds fit.
        Instant::from_nanos(nanos as u64)
    }
}

#[expect(clippy::disallowed_methods, reason = "the clock that everything else is told the time from")]
fn read() -> std::time::Instant {
    std::time::Instant::now()
}
