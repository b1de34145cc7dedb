//! Asynchronous events on their way to the application.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Mutex;

use super::lock;
use crate::event::AsyncEvent;
use crate::os::EventFd;

/// Events in order. An event that is already waiting is not queued again, so there are at most as many as
/// there are objects times kinds.
#[derive(Debug)]
pub(crate) struct Events {
    queue: Mutex<VecDeque<AsyncEvent>>,
    /// Counts what is in the queue; changed only while that is locked.
    count: EventFd,
}

impl Events {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { queue: Mutex::default(), count: EventFd::semaphore()? })
    }

    pub(crate) fn push(&self, event: AsyncEvent) {
        let mut queue = lock(&self.queue);
        if !queue.contains(&event) {
            queue.push_back(event);
            self.count.add();
        }
    }

    pub(crate) fn pop(&self) -> Option<AsyncEvent> {
        let mut queue = lock(&self.queue);
        let event = queue.pop_front()?;
        self.count.take();
        Some(event)
    }

    /// Forgets what concerns an object that is gone: its name may be given to another.
    pub(crate) fn forget(&self, concerns: impl Fn(&AsyncEvent) -> bool) {
        let mut queue = lock(&self.queue);
        let before = queue.len();
        queue.retain(|event| !concerns(event));
        self.count.take_many(before - queue.len());
    }
}

impl AsFd for Events {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.count.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uroce_stack::wire::Qpn;

    #[test]
    fn the_descriptor_counts_what_is_queued() {
        let events = Events::new().expect("eventfd");
        let (one, other) = (Qpn::new(0x11), Qpn::new(0x12));
        for event in [AsyncEvent::QpFatal(one), AsyncEvent::CommEst(other), AsyncEvent::QpFatal(one)] {
            events.push(event);
        }
        events.forget(|event| event.qpn() == Some(one));
        assert_eq!(events.pop(), Some(AsyncEvent::CommEst(other)));
        assert_eq!(events.pop(), None);
        assert!(!events.count.take(), "the count is that of the queue");
    }
}
