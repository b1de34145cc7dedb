//! What is computed from what was measured.

use serde::{Deserialize, Serialize};

/// Latencies of one run, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) min_us: f64,
    pub(crate) avg_us: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
    pub(crate) max_us: f64,
}

impl Latency {
    /// Of samples in nanoseconds, each counting `trips` one-way trips; all zero without samples.
    pub(crate) fn of(mut samples: Vec<u64>, trips: u32) -> Self {
        samples.sort_unstable();
        let micros = |nanos: f64| nanos / 1e3 / f64::from(trips);
        let at = |share: f64| micros(percentile(&samples, share) as f64);
        let sum: f64 = samples.iter().map(|&nanos| nanos as f64).sum();
        Self {
            min_us: at(0.0),
            avg_us: micros(sum / samples.len().max(1) as f64),
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: at(1.0),
        }
    }
}

/// The smallest sample that `share` of all samples do not exceed; `samples` are in order.
fn percentile(samples: &[u64], share: f64) -> u64 {
    let rank = (share * samples.len() as f64).ceil() as usize;
    samples.get(rank.saturating_sub(1)).or(samples.last()).copied().unwrap_or(0)
}

/// Gigabits (10^9) of payload a second.
pub(crate) fn gbps(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 * 8.0 / 1e9 / seconds.max(f64::MIN_POSITIVE)
}

/// Millions of messages a second.
pub(crate) fn mmsgs(messages: u64, seconds: f64) -> f64 {
    messages as f64 / 1e6 / seconds.max(f64::MIN_POSITIVE)
}

/// For JSON: as many digits as were measured.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_ranks() {
        let samples: Vec<u64> = (1..=1000).map(|n| n * 1000).collect();
        let latency = Latency::of(samples, 1);
        let found = (latency.min_us, latency.p50_us, latency.p99_us, latency.p999_us, latency.max_us);
        assert_eq!(found, (1.0, 500.0, 990.0, 999.0, 1000.0));
        assert!((latency.avg_us - 500.5).abs() < 1e-9);
    }

    #[test]
    fn half_round_trips_and_few_samples() {
        let latency = Latency::of(vec![8000], 2);
        assert_eq!((latency.min_us, latency.p50_us, latency.p999_us), (4.0, 4.0, 4.0));
        assert_eq!(Latency::of(Vec::new(), 2), Latency::default());
    }

    #[test]
    fn rates() {
        assert!((gbps(1_000_000_000, 1.0) - 8.0).abs() < 1e-9);
        assert!((mmsgs(3_000_000, 2.0) - 1.5).abs() < 1e-9);
        assert!((rounded(1.234_567) - 1.2346).abs() < 1e-12);
    }
}
