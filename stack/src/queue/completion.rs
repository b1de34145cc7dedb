//! The completion queue: completions on their way to the application.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering, fence};

use super::ring::{Consumer, Producer, regrow, ring};
use crate::completion::Completion;

const DISARMED: u8 = 0;
const SOLICITED: u8 = 1;
const ANY: u8 = 2;

/// What both halves of a completion queue see.
#[derive(Debug, Default)]
pub(crate) struct CqShared {
    armed: AtomicU8,
    overrun: AtomicBool,
}

impl CqShared {
    /// Disarms and returns true when the queue was armed for what has just been published.
    pub(crate) fn fires(&self, solicited: bool) -> bool {
        fence(Ordering::SeqCst);
        let armed = self.armed.load(Ordering::Acquire);
        let wanted = armed == ANY || (armed == SOLICITED && solicited);
        wanted && self.armed.swap(DISARMED, Ordering::AcqRel) != DISARMED
    }

    pub(crate) fn set_overrun(&self) {
        self.overrun.store(true, Ordering::Release);
    }
}

pub(crate) fn completion_ring(capacity: u32) -> (Producer<Completion>, Arc<CqShared>, CompletionReader) {
    let (producer, consumer) = ring(capacity, Completion::default);
    let shared = Arc::new(CqShared::default());
    (producer, Arc::clone(&shared), CompletionReader { ring: consumer, shared })
}

/// The application's half of a completion queue.
#[derive(Debug)]
pub struct CompletionReader {
    ring: Consumer<Completion>,
    shared: Arc<CqShared>,
}

impl CompletionReader {
    /// Takes up to `out.len()` completions, oldest first, and says how many; 0 when there are none.
    pub fn poll(&mut self, out: &mut [Completion]) -> usize {
        let head = self.ring.head();
        let waiting = self.ring.refresh() - head;
        let count = out.len().min(usize::try_from(waiting).unwrap_or(usize::MAX));
        for (index, completion) in (head..).zip(&mut out[..count]) {
            *completion = *self.ring.get(index);
        }
        self.ring.release_to(head + count as u64);
        count
    }

    /// Asks for one notification: at the next completion, or with `solicited_only` at the next that is solicited
    /// or unsuccessful. Returns true when completions are waiting already: poll again before sleeping.
    pub fn arm(&mut self, solicited_only: bool) -> bool {
        let wanted = if solicited_only { SOLICITED } else { ANY };
        self.shared.armed.fetch_max(wanted, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        self.ring.refresh() != self.ring.head()
    }

    /// Whether completions were lost because the queue was full; its queue pairs are in error then.
    #[must_use]
    pub fn overrun(&self) -> bool {
        self.shared.overrun.load(Ordering::Acquire)
    }

    /// See [`regrow`].
    pub(crate) fn regrow(&mut self, producer: &mut Producer<Completion>, capacity: u32) -> bool {
        regrow(producer, &mut self.ring, capacity, Completion::default)
    }

    /// How many completions the queue holds.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.ring.capacity()
    }
}
