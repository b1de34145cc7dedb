//! Lines that say what is going on, on standard error so that `--json` output stays clean.

use std::time::{Duration, Instant};

/// The progress of one command.
#[derive(Debug)]
pub(crate) struct Progress {
    what: &'static str,
    start: Instant,
}

impl Progress {
    /// Starts the clock.
    pub(crate) fn new(what: &'static str) -> Self {
        Self { what, start: Instant::now() }
    }

    /// One line, with the seconds since the start.
    pub(crate) fn say(&self, text: impl std::fmt::Display) {
        eprintln!("{} [{:5.1} s] {text}", self.what, self.elapsed().as_secs_f64());
    }

    /// Time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}
