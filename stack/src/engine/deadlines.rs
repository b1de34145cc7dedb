//! Deadlines: one a queue pair, and the earliest of them.

use alloc::vec::Vec;

use crate::time::Instant;

const NEVER: u64 = u64::MAX;

/// One deadline for each place in the table of queue pairs.
///
/// Looking at all of them happens only when the earliest seems due. Moving a deadline back leaves `earliest` too
/// early, which costs one look more, so restarting a timer for each acknowledgement costs a store.
#[derive(Debug)]
pub(crate) struct Deadlines {
    each: Vec<u64>,
    earliest: u64,
}

impl Deadlines {
    pub(crate) const fn new() -> Self {
        Self { each: Vec::new(), earliest: NEVER }
    }

    pub(crate) fn grow(&mut self, places: u32) {
        if self.each.len() < places as usize {
            self.each.resize(places as usize, NEVER);
        }
    }

    pub(crate) fn len(&self) -> u32 {
        self.each.len() as u32
    }

    pub(crate) fn set(&mut self, place: u32, deadline: Option<Instant>) {
        let nanos = deadline.map_or(NEVER, Instant::as_nanos);
        if let Some(slot) = self.each.get_mut(place as usize) {
            *slot = nanos;
            self.earliest = self.earliest.min(nanos);
        }
    }

    pub(crate) const fn any_due(&self, now: Instant) -> bool {
        self.earliest <= now.as_nanos()
    }

    pub(crate) fn is_due(&self, place: u32, now: Instant) -> bool {
        self.each.get(place as usize).is_some_and(|deadline| *deadline <= now.as_nanos())
    }

    /// Finds the earliest anew.
    pub(crate) fn refresh(&mut self) {
        self.earliest = self.each.iter().copied().min().unwrap_or(NEVER);
    }

    pub(crate) const fn next(&self) -> Option<Instant> {
        if self.earliest == NEVER { None } else { Some(Instant::from_nanos(self.earliest)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_is_due_first() {
        let at = Instant::from_nanos;
        let mut deadlines = Deadlines::new();
        deadlines.grow(3);
        assert_eq!(deadlines.next(), None);
        deadlines.set(0, Some(at(30)));
        deadlines.set(2, Some(at(10)));
        assert!(!deadlines.any_due(at(9)) && deadlines.any_due(at(10)));
        assert!(deadlines.is_due(2, at(10)) && !deadlines.is_due(0, at(10)) && !deadlines.is_due(1, at(10)));
        deadlines.set(2, None);
        assert!(deadlines.any_due(at(10)), "early until refreshed");
        deadlines.refresh();
        assert_eq!(deadlines.next(), Some(at(30)));
    }
}
