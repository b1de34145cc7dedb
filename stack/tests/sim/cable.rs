//! The cable: frames under way, in the order in which they arrive.

use std::collections::BTreeMap;

use crate::rng::Rng;

/// Probabilities for each frame.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) loss: f64,
    pub(crate) duplication: f64,
    pub(crate) reordering: f64,
    pub(crate) corruption: f64,
}

/// A frame and the end that it goes to.
pub(crate) type Arrival = (usize, Vec<u8>);

/// Both directions.
pub(crate) struct Cable {
    rng: Rng,
    faults: Faults,
    /// By time of arrival in nanoseconds, then in the order sent.
    under_way: BTreeMap<(u64, u64), Arrival>,
    sent: u64,
}

impl Cable {
    pub(crate) fn new(rng: Rng, faults: Faults) -> Self {
        Self { rng, faults, under_way: BTreeMap::new(), sent: 0 }
    }

    pub(crate) fn send(&mut self, now: u64, to: usize, frame: &[u8]) {
        if self.rng.chance(self.faults.loss) {
            return;
        }
        if self.rng.chance(self.faults.duplication) {
            self.put(now, to, frame.to_vec());
        }
        let mut frame = frame.to_vec();
        if self.rng.chance(self.faults.corruption) {
            let bit = self.rng.below(frame.len() * 8);
            frame[bit / 8] ^= 1 << (bit % 8);
        }
        self.put(now, to, frame);
    }

    pub(crate) fn next_arrival(&self) -> Option<u64> {
        self.under_way.keys().next().map(|(time, _)| *time)
    }

    /// The next frame that has arrived by `now`.
    pub(crate) fn receive(&mut self, now: u64) -> Option<Arrival> {
        let entry = self.under_way.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(entry.remove())
    }

    /// How many frames were put on the cable.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    fn put(&mut self, now: u64, to: usize, frame: Vec<u8>) {
        let late = if self.rng.chance(self.faults.reordering) { self.rng.below(20_000) as u64 } else { 0 };
        self.sent += 1;
        self.under_way.insert((now + 2_000 + late, self.sent), (to, frame));
    }
}
