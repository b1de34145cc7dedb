//! What a completion queue's notification reaches: waiting threads, wakers, a channel.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::Waker;
use std::time::Duration;

use super::lock;
use crate::channel::Membership;
use crate::os::EventFd;

/// How many wakers a queue remembers; whoever pushes one out wakes it.
const MAX_WAKERS: usize = 64;

/// Told by the engine through [`fire`](Self::fire), at most once each time the queue was armed.
#[derive(Debug, Default)]
pub(crate) struct CqSignal {
    /// Counts the notifications, so that a waiter can tell whether one came since it looked.
    generation: Mutex<u64>,
    changed: Condvar,
    wakers: Mutex<Vec<Waker>>,
    /// For threads that sleep on several descriptors, because they drive the engine themselves.
    event: Option<EventFd>,
    /// How many of these there are.
    polling: AtomicUsize,
    channel: Option<Membership>,
    /// The application asked for an event on the channel.
    wants_event: AtomicBool,
}

impl CqSignal {
    pub(crate) fn new(channel: Option<Membership>, event: Option<EventFd>) -> Arc<Self> {
        Arc::new(Self { channel, event, ..Self::default() })
    }

    /// Tells everyone who waits. Wakers may run any code: no lock may be held.
    pub(crate) fn fire(&self) {
        *lock(&self.generation) += 1;
        self.changed.notify_all();
        self.wake_pollers();
        if let Some(channel) =
            self.channel.as_ref().filter(|_| self.wants_event.swap(false, Ordering::AcqRel))
        {
            channel.raise();
        }
        let wakers = std::mem::take(&mut *lock(&self.wakers));
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The next notification raises an event on the channel. To be called before the queue is armed.
    pub(crate) fn want_event(&self) {
        self.wants_event.store(true, Ordering::Release);
    }

    /// The next notification wakes `waker`. To be called before the queue is armed.
    pub(crate) fn register(&self, waker: &Waker) {
        let mut wakers = lock(&self.wakers);
        if wakers.iter().any(|known| known.will_wake(waker)) {
            return;
        }
        let oldest = (wakers.len() == MAX_WAKERS).then(|| wakers.remove(0));
        wakers.push(waker.clone());
        drop(wakers);
        oldest.into_iter().for_each(Waker::wake);
    }

    /// How many notifications there were. To be read before the queue is armed.
    pub(crate) fn generation(&self) -> u64 {
        *lock(&self.generation)
    }

    /// Sleeps until there has been a notification after `seen`, or `timeout` has passed.
    pub(crate) fn wait_after(&self, seen: u64, timeout: Option<Duration>) {
        let generation = lock(&self.generation);
        let unchanged = |now: &mut u64| *now == seen;
        match timeout {
            Some(timeout) => drop(self.changed.wait_timeout_while(generation, timeout, unchanged)),
            None => drop(self.changed.wait_while(generation, unchanged)),
        }
    }

    /// The descriptor that notifications make readable, counted as being slept on until the guard goes.
    /// To be called before the queue is armed.
    pub(crate) fn poller(&self) -> Poller<'_> {
        self.polling.fetch_add(1, Ordering::SeqCst);
        if let Some(event) = &self.event {
            event.take();
        }
        Poller { signal: self }
    }

    /// Wakes the threads that sleep on the descriptor: one of them took its notification, and there may be
    /// more than it wanted.
    pub(crate) fn wake_pollers(&self) {
        if let Some(event) = self.event.as_ref().filter(|_| self.polling.load(Ordering::SeqCst) > 0) {
            event.add();
        }
    }
}

/// A thread that is about to sleep on the descriptor.
pub(crate) struct Poller<'a> {
    signal: &'a CqSignal,
}

impl Poller<'_> {
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.signal.event.as_ref().map(EventFd::as_fd)
    }
}

impl Drop for Poller<'_> {
    fn drop(&mut self) {
        self.signal.polling.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_waker_is_woken_once_and_not_lost_when_many_register() {
        let signal = CqSignal::new(None, None);
        let counts: Vec<Arc<Count>> = (0..=MAX_WAKERS).map(|_| Arc::default()).collect();
        for count in &counts {
            let waker = Waker::from(Arc::clone(count));
            signal.register(&waker);
            signal.register(&waker);
        }
        signal.fire();
        signal.fire();
        assert!(counts.iter().all(|count| count.0.load(Ordering::SeqCst) == 1));
    }

    #[test]
    fn a_notification_between_looking_and_sleeping_is_not_lost() {
        let signal = CqSignal::new(None, None);
        let seen = signal.generation();
        signal.fire();
        signal.wait_after(seen, None);
    }
}
