//! Objects in numbered places.

use alloc::vec::Vec;

/// A table whose free places are used again.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
    limit: u32,
}

impl<T> Slab<T> {
    pub(crate) const fn new(limit: u32) -> Self {
        Self { entries: Vec::new(), free: Vec::new(), limit }
    }

    /// The place that the next [`insert`](Self::insert) takes; `None` when the table is full.
    pub(crate) fn vacant(&self) -> Option<u32> {
        let next = self.free.last().copied().unwrap_or(self.entries.len() as u32);
        (next < self.limit).then_some(next)
    }

    /// Puts `value` into the place that [`vacant`](Self::vacant) names, if there is one.
    pub(crate) fn insert(&mut self, value: T) -> Option<u32> {
        let place = self.vacant()?;
        if self.free.pop().is_some() {
            self.entries[place as usize] = Some(value);
        } else {
            self.entries.push(Some(value));
        }
        Some(place)
    }

    pub(crate) fn remove(&mut self, place: u32) -> Option<T> {
        let value = self.entries.get_mut(place as usize)?.take()?;
        self.free.push(place);
        Some(value)
    }

    #[inline]
    pub(crate) fn get(&self, place: u32) -> Option<&T> {
        self.entries.get(place as usize)?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        self.entries.get_mut(place as usize)?.as_mut()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        (0..).zip(&mut self.entries).filter_map(|(place, entry)| Some((place, entry.as_mut()?)))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_bounded() {
        let mut slab = Slab::new(2);
        assert_eq!((slab.insert('a'), slab.insert('b'), slab.insert('c')), (Some(0), Some(1), None));
        assert_eq!(slab.remove(0), Some('a'));
        assert_eq!(slab.remove(0), None);
        assert_eq!(slab.vacant(), Some(0));
        assert_eq!(slab.insert('d'), Some(0));
        assert_eq!(slab.iter().collect::<Vec<_>>(), [&'d', &'b']);
    }
}
