//! An eventfd: a counter that poll sees.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use super::checked;

/// A counter in the kernel; readable while it is not zero. Never blocks.
#[derive(Debug)]
pub(crate) struct EventFd(File);

impl EventFd {
    /// Every [`take`](Self::take) clears the whole counter.
    pub(crate) fn new() -> io::Result<Self> {
        Self::with_flags(0)
    }

    /// Every [`take`](Self::take) takes one.
    pub(crate) fn semaphore() -> io::Result<Self> {
        Self::with_flags(libc::EFD_SEMAPHORE)
    }

    /// Adds one. The counter of 64 bits cannot fill up, and the descriptor is ours, so nothing can fail.
    pub(crate) fn add(&self) {
        let written = (&self.0).write(&1u64.to_ne_bytes());
        debug_assert!(written.is_ok(), "an eventfd of ours refused a count: {written:?}");
    }

    /// Takes from the counter; false when it was zero.
    pub(crate) fn take(&self) -> bool {
        (&self.0).read(&mut [0; 8]).is_ok()
    }

    /// Takes `count` times.
    pub(crate) fn take_many(&self, count: usize) {
        for _ in 0..count {
            self.take();
        }
    }

    fn with_flags(flags: libc::c_int) -> io::Result<Self> {
        // SAFETY: eventfd takes no pointers; any flags are at worst refused.
        let fd = checked(unsafe { libc::eventfd(0, flags | libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        // SAFETY: the kernel has just handed out `fd`, so it is open and nobody else owns it.
        Ok(Self(File::from(unsafe { OwnedFd::from_raw_fd(fd) })))
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_semaphore_counts_and_a_plain_one_clears() {
        let (plain, semaphore) = (EventFd::new().expect("eventfd"), EventFd::semaphore().expect("eventfd"));
        for event in [&plain, &semaphore] {
            assert!(!event.take());
            event.add();
            event.add();
            assert!(event.take());
        }
        assert!(!plain.take());
        assert!(semaphore.take());
        assert!(!semaphore.take());
    }
}
