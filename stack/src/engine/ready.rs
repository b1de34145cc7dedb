//! Queue pairs that may have something to send, in turn.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// A queue in which each place stands at most once.
#[derive(Debug, Default)]
pub(crate) struct Ready {
    queue: VecDeque<u32>,
    queued: Vec<bool>,
}

impl Ready {
    /// Makes room for `places`, so that marking them allocates nothing.
    pub(crate) fn grow(&mut self, places: u32) {
        if self.queued.len() < places as usize {
            self.queued.resize(places as usize, false);
            self.queue.reserve(places as usize);
        }
    }

    pub(crate) fn mark(&mut self, place: u32) {
        if let Some(queued) = self.queued.get_mut(place as usize)
            && !core::mem::replace(queued, true)
        {
            self.queue.push_back(place);
        }
    }

    pub(crate) fn front(&self) -> Option<u32> {
        self.queue.front().copied()
    }

    pub(crate) fn pop(&mut self) {
        if let Some(place) = self.queue.pop_front() {
            self.queued[place as usize] = false;
        }
    }

    /// The first goes to the back.
    pub(crate) fn rotate(&mut self) {
        if let Some(place) = self.queue.pop_front() {
            self.queue.push_back(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stands_once_and_takes_turns() {
        let mut ready = Ready::default();
        ready.grow(3);
        for place in [2, 0, 2, 7] {
            ready.mark(place);
        }
        assert_eq!(ready.front(), Some(2));
        ready.rotate();
        assert_eq!(ready.front(), Some(0));
        ready.pop();
        ready.mark(0);
        ready.pop();
        assert_eq!(ready.front(), Some(0));
        ready.pop();
        assert_eq!(ready.front(), None);
    }
}
