//! Several descriptors behind one.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::checked;

/// Readable while one of the descriptors added to it is.
#[derive(Debug)]
pub(crate) struct Epoll(OwnedFd);

impl Epoll {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: epoll_create1 takes no pointers.
        let fd = checked(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the kernel has just handed out `fd`, so it is open and nobody else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// From now on `fd` counts, until it is closed.
    pub(crate) fn add(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        let (epoll, fd) = (self.0.as_raw_fd(), fd.as_raw_fd());
        // SAFETY: both descriptors are open, one owned and one borrowed; `event` lives across the call.
        checked(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &raw mut event) })?;
        Ok(())
    }
}

impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{EventFd, wait_readable};
    use super::*;
    use std::time::Duration;

    #[test]
    fn readable_through_the_set() {
        let (set, event) = (Epoll::new().expect("epoll"), EventFd::new().expect("eventfd"));
        set.add(event.as_fd()).expect("epoll_ctl");
        event.add();
        wait_readable(&[set.as_fd()], None).expect("ppoll");
        assert!(event.take());
        wait_readable(&[set.as_fd()], Some(Duration::from_millis(1))).expect("ppoll");
    }
}
