//! Keys: random, unique, and not used again soon.

use alloc::collections::VecDeque;

use hashbrown::HashMap;

use crate::rng::Rng;

/// How many freed keys are remembered so that they are not handed out again.
const QUARANTINE: usize = 4096;

/// Maps keys that nobody can guess to places in a table.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// `None` for a key in quarantine.
    places: HashMap<u32, Option<u32>>,
    quarantine: VecDeque<u32>,
}

impl Keys {
    /// A new key for `place`: any value that `low..high` admits, is not in use and was not lately.
    ///
    /// `None` when every number in the range is taken or in quarantine.
    pub(crate) fn insert(&mut self, rng: &mut Rng, low: u32, high: u32, place: u32) -> Option<u32> {
        let size = high - low;
        if self.places.len() as u64 >= u64::from(size) {
            self.release_oldest()?;
        }
        loop {
            let key = low + rng.below(size);
            if let hashbrown::hash_map::Entry::Vacant(entry) = self.places.entry(key) {
                entry.insert(Some(place));
                return Some(key);
            }
        }
    }

    /// Takes this very number, if it is free.
    pub(crate) fn claim(&mut self, key: u32, place: u32) -> Option<u32> {
        if self.get(key).is_some() {
            return None;
        }
        self.quarantine.retain(|quarantined| *quarantined != key);
        self.places.insert(key, Some(place));
        Some(key)
    }

    /// Where the object of this key is.
    #[inline]
    pub(crate) fn get(&self, key: u32) -> Option<u32> {
        *self.places.get(&key)?
    }

    /// Frees the key and quarantines it.
    pub(crate) fn remove(&mut self, key: u32) -> Option<u32> {
        let place = self.places.get_mut(&key)?.take()?;
        if self.quarantine.len() == QUARANTINE {
            self.release_oldest();
        }
        self.quarantine.push_back(key);
        Some(place)
    }

    fn release_oldest(&mut self) -> Option<()> {
        let oldest = self.quarantine.pop_front()?;
        self.places.remove(&oldest);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_freed_key_is_not_used_again_within_the_quarantine() {
        let mut rng = Rng::new([1; 32]);
        let mut keys = Keys::default();
        let mut recent = VecDeque::new();
        for _ in 0..50_000 {
            let key = keys.insert(&mut rng, 2, 12_000, 7).expect("room");
            assert!(!recent.contains(&key));
            assert_eq!(keys.get(key), Some(7));
            assert_eq!(keys.remove(key), Some(7));
            assert_eq!(keys.get(key), None);
            recent.push_back(key);
            if recent.len() > QUARANTINE {
                recent.pop_front();
            }
        }
    }

    #[test]
    fn a_small_range_is_used_whole_and_then_refused() {
        let mut rng = Rng::new([2; 32]);
        let mut keys = Keys::default();
        let used: HashSet<u32> = (0..5).filter_map(|place| keys.insert(&mut rng, 10, 15, place)).collect();
        assert_eq!(used, (10..15).collect());
        assert_eq!(keys.insert(&mut rng, 10, 15, 0), None);
        keys.remove(12);
        assert_eq!(
            keys.insert(&mut rng, 10, 15, 0),
            Some(12),
            "the quarantine yields when nothing else is left"
        );
    }
}
