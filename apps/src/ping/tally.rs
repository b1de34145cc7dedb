//! How long pings took.

use serde::Serialize;

use crate::stats::rounded;

/// What is known of all pings so far, however many.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) count: u64,
    least: u64,
    most: u64,
    sum: u64,
}

/// The figures, in microseconds; all zero without pings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Figures {
    pub(super) min_us: f64,
    pub(super) avg_us: f64,
    pub(super) max_us: f64,
}

impl Tally {
    /// Another ping took so many nanoseconds.
    pub(super) fn add(&mut self, nanos: u64) {
        self.least = if self.count == 0 { nanos } else { self.least.min(nanos) };
        self.most = self.most.max(nanos);
        self.sum = self.sum.saturating_add(nanos);
        self.count += 1;
    }

    pub(super) fn figures(&self) -> Figures {
        let micros = |nanos: f64| rounded(nanos / 1e3);
        let average = self.sum as f64 / self.count.max(1) as f64;
        Figures {
            min_us: micros(self.least as f64),
            avg_us: micros(average),
            max_us: micros(self.most as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_pings() {
        let mut tally = Tally::default();
        assert_eq!(tally.figures(), Figures { min_us: 0.0, avg_us: 0.0, max_us: 0.0 });
        [3000, 1000, 5000].iter().for_each(|nanos| tally.add(*nanos));
        assert_eq!(tally.figures(), Figures { min_us: 1.0, avg_us: 3.0, max_us: 5.0 });
    }
}
