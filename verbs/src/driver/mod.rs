//! Who runs the engine, when, and who sleeps meanwhile.
//!
//! The engine and its interface are one [`Port`] behind one lock. Posting and polling do not take it: they go
//! through rings. It is taken for a round of the loop, by the thread that drives or by the application's own
//! calls, and for control calls. A thread that drives sleeps when there is nothing to do; posting wakes it,
//! which costs a system call only while it sleeps.

mod clock;
mod events;
mod port;
mod signal;
mod thread;
mod watch;

pub(crate) use clock::Clock;
pub(crate) use events::Events;
pub(crate) use port::{Pace, Port};
pub(crate) use signal::CqSignal;
pub(crate) use thread::PollThread;
pub(crate) use watch::Watch;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use uroce_stack::Instant;

use crate::error::Error;
use crate::os::{Epoll, EventFd, wait_readable};
use port::Round;

/// How long to sleep at most when the interface has no descriptor to wait on.
const BLIND_NAP: Duration = Duration::from_micros(200);
/// Rounds that closing something may take so that what is owed to peers leaves.
const SETTLING_ROUNDS: usize = 64;
/// How often the driver gives way to control calls between two rounds.
const GIVE_WAY: usize = 64;

/// A device that is driven.
pub(crate) struct Core {
    port: Mutex<Port>,
    pub(crate) events: Events,
    clock: Clock,
    /// Control calls that wait for the lock.
    waiting: AtomicUsize,
    /// Threads that drive the engine and sleep, or are about to.
    sleepers: AtomicUsize,
    doorbell: EventFd,
    /// Somebody who drives has slept since the last round.
    awoken: AtomicBool,
    /// The doorbell, the interface, and the kernel's news of it.
    wake_set: Epoll,
    /// The interface has no descriptor: no sleep is long.
    blind: bool,
    stop: AtomicBool,
    pub(crate) inline: bool,
}

impl Core {
    pub(crate) fn new(port: Port, inline: bool) -> Result<Arc<Self>, Error> {
        Self::assemble(port, inline)
            .map(Arc::new)
            .map_err(Error::system("cannot make the descriptors of a device"))
    }

    /// The port, for a control call; wakes the driver afterwards.
    pub(crate) fn control<R>(&self, call: impl FnOnce(&mut Port, Instant) -> R) -> R {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let mut port = lock(&self.port);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        let result = call(&mut port, self.clock.now());
        drop(port);
        self.ring();
        result
    }

    /// One round of the loop, after everyone who has the port has left it.
    pub(crate) fn round(&self) -> Round {
        self.round_in(lock(&self.port), Pace::Prompt)
    }

    /// One round of the loop, unless another thread is at it.
    pub(crate) fn try_round(&self, pace: Pace) -> Option<Round> {
        self.give_way();
        match self.port.try_lock() {
            Ok(port) => Some(self.round_in(port, pace)),
            Err(TryLockError::Poisoned(port)) => Some(self.round_in(port.into_inner(), pace)),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Lets control calls have the port before the next round, for a while.
    pub(crate) fn give_way(&self) {
        for _ in 0..GIVE_WAY {
            if self.waiting.load(Ordering::Relaxed) == 0 {
                return;
            }
            std::thread::yield_now();
        }
    }

    /// Wakes whoever drives the engine, if they sleep. To be called after something was posted.
    pub(crate) fn ring(&self) {
        // Either the sleeper's last look finds what was posted, or this finds the sleeper: see `sleep`.
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.doorbell.add();
        }
    }

    /// Sleeps until there may be something to do, `also` is readable, or `limit` has passed.
    pub(crate) fn sleep(&self, also: Option<BorrowedFd<'_>>, limit: Option<Duration>) -> io::Result<()> {
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let slept = match self.time_to_sleep(limit) {
            Some(time) => self.nap(also, time),
            None => Ok(()),
        };
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        self.doorbell.take();
        self.awoken.store(true, Ordering::Relaxed);
        slept
    }

    /// Sends what is owed to peers, as far as it can be sent at once.
    pub(crate) fn settle(&self) {
        for _ in 0..SETTLING_ROUNDS {
            self.round();
            let port = lock(&self.port);
            if !port.is_alive() || !port.engine.has_work() {
                return;
            }
        }
    }

    /// When something will have to be done: `None` while nothing is pending.
    pub(crate) fn next_deadline(&self) -> Option<Duration> {
        match lock(&self.port).idle_for(self.clock.now()) {
            None => Some(Duration::ZERO),
            Some(Duration::MAX) => None,
            due => due,
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// Asks the thread that drives to end.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.doorbell.add();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn assemble(port: Port, inline: bool) -> io::Result<Self> {
        let (doorbell, wake_set) = (EventFd::new()?, Epoll::new()?);
        wake_set.add(doorbell.as_fd())?;
        if let Some(watch) = port.watch() {
            wake_set.add(watch.fd())?;
        }
        let blind = match port.nic.fd() {
            Some(fd) => wake_set.add(fd).map(|()| false)?,
            None => true,
        };
        Ok(Self {
            port: Mutex::new(port),
            events: Events::new()?,
            clock: Clock::new(),
            waiting: AtomicUsize::new(0),
            sleepers: AtomicUsize::new(0),
            doorbell,
            awoken: AtomicBool::new(false),
            wake_set,
            blind,
            stop: AtomicBool::new(false),
            inline,
        })
    }

    fn round_in(&self, mut port: MutexGuard<'_, Port>, pace: Pace) -> Round {
        let awoken = self.awoken.load(Ordering::Relaxed) && self.awoken.swap(false, Ordering::Relaxed);
        let round = port.round(self.clock.now(), awoken, pace, &self.events);
        let fired = port.take_fired();
        drop(port);
        fired.iter().for_each(|signal| signal.fire());
        round
    }

    /// How long to sleep; `None`: not at all.
    fn time_to_sleep(&self, limit: Option<Duration>) -> Option<Duration> {
        if self.stop.load(Ordering::SeqCst) {
            return None;
        }
        let idle = lock(&self.port).idle_for(self.clock.now())?;
        let blind = if self.blind { BLIND_NAP } else { Duration::MAX };
        Some(idle.min(limit.unwrap_or(Duration::MAX)).min(blind))
    }

    fn nap(&self, also: Option<BorrowedFd<'_>>, time: Duration) -> io::Result<()> {
        let timeout = (time != Duration::MAX).then_some(time);
        let wake = self.wake_set.as_fd();
        match also {
            Some(also) => wait_readable(&[wake, also], timeout),
            None => wait_readable(&[wake], timeout),
        }
    }
}

impl AsFd for Core {
    /// Readable when a round may have something to do.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake_set.as_fd()
    }
}

/// Locks, also after a panic elsewhere: what the locks here protect is valid at every point.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
