//! System calls that the standard library does not wrap, each behind one safe function.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Turns the `-1` of a C call into the error it set.
pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Takes ownership of the descriptor that a C call just opened, or the error it set.
pub(crate) fn owned(result: libc::c_int) -> io::Result<OwnedFd> {
    let fd = check(result)?;
    // SAFETY: callers pass the result of a call that opens a descriptor and hands it to them alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A socket, closed on exec.
pub(crate) fn socket(domain: libc::c_int, kind: libc::c_int, protocol: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: socket takes three integers and touches no memory of ours.
    owned(unsafe { libc::socket(domain, kind | libc::SOCK_CLOEXEC, protocol) })
}

/// Sets a socket option to a plain value.
pub(crate) fn set_option<T: Copy>(fd: BorrowedFd<'_>, level: i32, name: i32, value: &T) -> io::Result<()> {
    let len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the pointer and the length describe `value`, which outlives the call; the kernel only reads it.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), len) })?;
    Ok(())
}

/// Waits until one of the descriptors is readable; `false` when `timeout` passed first.
pub(crate) fn wait_readable(fds: &[BorrowedFd<'_>], timeout: Duration) -> io::Result<bool> {
    wait(fds, libc::POLLIN, timeout)
}

/// Waits until the descriptor takes more; `false` when `timeout` passed first.
pub(crate) fn wait_writable(fd: BorrowedFd<'_>, timeout: Duration) -> io::Result<bool> {
    wait(&[fd], libc::POLLOUT, timeout)
}

fn wait(fds: &[BorrowedFd<'_>], events: libc::c_short, timeout: Duration) -> io::Result<bool> {
    let mut polls: Vec<_> =
        fds.iter().map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 }).collect();
    // Rounded up: a wait of half a millisecond must not become a busy loop.
    let millis = i32::try_from(timeout.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
    // SAFETY: the pointer and the count describe `polls`, which outlives the call.
    match check(unsafe { libc::poll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, millis) }) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        other => Ok(other? > 0),
    }
}

/// A descriptor that becomes readable once `after` has passed.
pub(crate) fn timer(after: Duration) -> io::Result<OwnedFd> {
    // SAFETY: timerfd_create takes two integers and touches no memory of ours.
    let fd = owned(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) })?;
    let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // A timer of zero would be disarmed, not expired.
    let after = after.max(Duration::from_nanos(1));
    let seconds = after.as_secs().try_into().unwrap_or(libc::time_t::MAX);
    let value = libc::timespec { tv_sec: seconds, tv_nsec: after.subsec_nanos().into() };
    let spec = libc::itimerspec { it_interval: zero, it_value: value };
    // SAFETY: `spec` outlives the call, and a null old value is allowed.
    check(unsafe { libc::timerfd_settime(fd.as_raw_fd(), 0, &spec, std::ptr::null_mut()) })?;
    Ok(fd)
}
