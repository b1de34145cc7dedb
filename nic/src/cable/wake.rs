//! An eventfd that is written only when somebody may be asleep.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// Wakes a receiver that found its ring empty, at the price of one fence while nobody sleeps.
#[derive(Debug)]
pub(super) struct Wake {
    event: File,
    /// The receiver saw an empty ring and may go to sleep on the descriptor.
    armed: AtomicBool,
    /// The event was written and not yet read back.
    signalled: AtomicBool,
}

impl Wake {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: eventfd takes two integers and touches no memory of ours.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: eventfd just returned this descriptor, it is open and nobody else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { event: File::from(fd), armed: AtomicBool::new(false), signalled: AtomicBool::new(false) })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    /// For the receiver, after it found its ring empty; it must look into the ring once more afterwards.
    pub(super) fn arm(&self) {
        if self.signalled.swap(false, Ordering::Acquire) {
            // A failed read means that the event was not set: nothing to clear.
            let _ = (&self.event).read(&mut [0; 8]);
        }
        if !self.armed.load(Ordering::Relaxed) {
            self.armed.store(true, Ordering::Relaxed);
        }
        // Pairs with the fence in `wake`: either the receiver sees the frame, or the sender sees it armed.
        fence(Ordering::SeqCst);
    }

    /// For the sender, after it put something into the ring.
    pub(super) fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.armed.load(Ordering::Relaxed) && self.armed.swap(false, Ordering::Relaxed) {
            // Written before it is marked: the mark tells the receiver that there is something to read. A write can
            // fail only when the counter is full, and then the descriptor is readable already.
            let _ = (&self.event).write(&1_u64.to_ne_bytes());
            self.signalled.store(true, Ordering::Release);
        }
    }
}
