//! The few system calls of this crate: one wrapper each.

mod epoll;
mod eventfd;
mod multicast;
mod random;
mod thread;

pub(crate) use epoll::Epoll;
pub(crate) use eventfd::EventFd;
pub(crate) use multicast::Membership;
pub(crate) use random::fill_random;
pub(crate) use thread::{pin_to, spawn_without_signals};

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Sleeps until one of `fds` is readable, `timeout` has passed (`None`: for ever), or a signal arrives.
pub(crate) fn wait_readable(fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<()> {
    poll(fds, timeout).map(drop)
}

/// Whether it is readable now.
pub(crate) fn is_readable(fd: BorrowedFd<'_>) -> bool {
    poll(&[fd], Some(Duration::ZERO)).is_ok_and(|ready| ready > 0)
}

/// How many are ready; none after a signal.
fn poll(fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<libc::c_int> {
    let mut polled: Vec<libc::pollfd> = fds.iter().map(readable).collect();
    let timeout = timeout.map(timespec);
    let timeout_ptr = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let count = polled.len() as libc::nfds_t;
    // SAFETY: `polled` is an array of `count` pollfd that lives and is not otherwise used during the call;
    // the descriptors in it are borrowed, so open; `timeout_ptr` is null or points to a timespec that
    // outlives the call; a null signal mask leaves the mask as it is.
    let ready = unsafe { libc::ppoll(polled.as_mut_ptr(), count, timeout_ptr, std::ptr::null()) };
    match checked(ready) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        ready => ready,
    }
}

fn readable(fd: &BorrowedFd<'_>) -> libc::pollfd {
    libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 }
}

fn timespec(duration: Duration) -> libc::timespec {
    let tv_sec = libc::time_t::try_from(duration.as_secs()).unwrap_or(libc::time_t::MAX);
    libc::timespec { tv_sec, tv_nsec: libc::c_long::from(duration.subsec_nanos() as i32) }
}

/// The value a system call returned, or `errno` when it was negative.
fn checked(value: libc::c_int) -> io::Result<libc::c_int> {
    if value < 0 { Err(io::Error::last_os_error()) } else { Ok(value) }
}
