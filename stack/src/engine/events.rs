//! Asynchronous events that wait to be fetched.

use alloc::collections::VecDeque;

use crate::event::AsyncEvent;

/// Events that are kept when nobody fetches them; each object raises each event a few times at most.
const LIMIT: usize = 1 << 14;

/// The queue of events, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Events {
    queue: VecDeque<AsyncEvent>,
    /// Events that found the queue full.
    lost: u64,
}

impl Events {
    /// Queues an event. Events are rare, so this may allocate; when the queue is full the new one is lost, as with
    /// hardware.
    pub(crate) fn raise(&mut self, event: AsyncEvent) {
        if self.queue.len() < LIMIT {
            self.queue.push_back(event);
        } else {
            self.lost += 1;
        }
    }

    pub(crate) fn next(&mut self) -> Option<AsyncEvent> {
        self.queue.pop_front()
    }

    /// An object is gone, and its events with it.
    pub(crate) fn forget(&mut self, concerns: impl Fn(&AsyncEvent) -> bool) {
        self.queue.retain(|event| !concerns(event));
    }
}
