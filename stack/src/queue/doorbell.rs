//! Doorbells: one bit a queue pair, set by whoever posts, collected by the engine.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

/// Most queue pairs that one set of doorbells serves: 64 words of 64 bits, with one word that says which.
pub(crate) const MAX_DOORBELLS: u32 = 64 * 64;

/// The bits of every queue pair of an engine.
#[derive(Debug)]
pub(crate) struct Doorbells {
    words: Box<[AtomicU64]>,
    /// Bit n is set when word n may hold a bit.
    summary: AtomicU64,
}

impl Doorbells {
    pub(crate) fn new(count: u32) -> Arc<Self> {
        assert!(count <= MAX_DOORBELLS, "more queue pairs than doorbells");
        let words = (0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Arc::new(Self { words, summary: AtomicU64::new(0) })
    }

    /// Whether any bit may be set.
    pub(crate) fn any(&self) -> bool {
        self.summary.load(Ordering::SeqCst) != 0
    }

    /// Clears every bit and names it; what was posted before its bit was set is visible afterwards.
    pub(crate) fn collect(&self, mut found: impl FnMut(u32)) {
        if self.summary.load(Ordering::Relaxed) == 0 {
            return;
        }
        for word in bits(self.summary.swap(0, Ordering::AcqRel)) {
            for bit in bits(self.words[word as usize].swap(0, Ordering::AcqRel)) {
                found(word * 64 + bit);
            }
        }
    }

    fn ring(&self, slot: u32) {
        let (word, bit) = (slot / 64, slot % 64);
        self.words[word as usize].fetch_or(1 << bit, Ordering::AcqRel);
        self.summary.fetch_or(1 << word, Ordering::SeqCst);
    }
}

fn bits(mut word: u64) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let bit = word.trailing_zeros();
        word &= word.wrapping_sub(1);
        (bit < 64).then_some(bit)
    })
}

/// The bit of one queue pair.
#[derive(Clone, Debug)]
pub(crate) struct Doorbell {
    bells: Arc<Doorbells>,
    slot: u32,
}

impl Doorbell {
    pub(crate) fn new(bells: &Arc<Doorbells>, slot: u32) -> Self {
        Self { bells: Arc::clone(bells), slot }
    }

    /// Tells the engine to look at the queue pair.
    pub(crate) fn ring(&self) {
        self.bells.ring(self.slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn collected(bells: &Doorbells) -> Vec<u32> {
        let mut found = Vec::new();
        bells.collect(|slot| found.push(slot));
        found
    }

    #[test]
    fn each_bell_is_heard_once() {
        let bells = Doorbells::new(MAX_DOORBELLS);
        assert!(!bells.any());
        for slot in [0, 63, 64, MAX_DOORBELLS - 1, 0] {
            Doorbell::new(&bells, slot).ring();
        }
        assert!(bells.any());
        assert_eq!(collected(&bells), [0, 63, 64, MAX_DOORBELLS - 1]);
        assert_eq!(collected(&bells), []);
    }
}
