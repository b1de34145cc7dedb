//! A progress bar where a person looks on, nothing elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::clock::Stopwatch;

/// How often the bar moves: drawing takes time from what is being measured.
const PERIOD: Duration = Duration::from_millis(200);
/// Calls between two looks at the clock.
const CALLS: u32 = 64;

/// The progress of one measurement.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    calls: u32,
    drawn: Stopwatch,
}

impl Progress {
    /// A bar, if standard error is a terminal and `wanted`.
    pub(crate) fn new(title: impl Into<String>, wanted: bool) -> Self {
        let shown = wanted && std::io::stderr().is_terminal();
        Self { bar: shown.then(|| bar(title.into())), calls: 0, drawn: Stopwatch::start() }
    }

    /// No bar.
    pub(crate) fn none() -> Self {
        Self::new("", false)
    }

    /// So many of so many are done. To be called often; draws seldom.
    pub(crate) fn set(&mut self, done: u64, all: u64) {
        if self.bar.is_none() {
            return;
        }
        self.calls = (self.calls + 1) % CALLS;
        if self.calls == 0 && self.drawn.elapsed() >= PERIOD {
            self.drawn = Stopwatch::start();
            self.draw(done, all);
        }
    }

    /// The same, drawn at once.
    pub(crate) fn draw(&self, done: u64, all: u64) {
        if let Some(bar) = &self.bar {
            bar.set_length(all);
            bar.set_position(done);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(title: String) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} [{bar:40}] {percent:>3}%")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ");
    ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr()).with_style(style).with_message(title)
}
