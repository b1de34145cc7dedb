//! Frames to the kernel.

use std::io;
use std::os::fd::AsRawFd;

use super::rings::{TxFrame, TxRings};
use super::rx::is_gone;
use crate::NicStats;
use crate::sys::check;

/// System calls without progress after which the rest of a ring is left for the next flush. A device whose own queue
/// is full for that long will not be faster for being asked again at once.
const PATIENCE: u32 = 4096;

/// The sending side of a socket.
pub(super) struct Transmitter {
    rings: TxRings,
    /// Last in, first out: the warmest chunks are filled first.
    free: Vec<TxFrame>,
    max_frame: usize,
    /// The driver reads the ring by itself; else each frame is copied within our system call.
    zero_copy: bool,
    /// Something was submitted that the kernel may not have taken.
    pending: bool,
}

impl Transmitter {
    pub(super) fn new(rings: TxRings, free: Vec<TxFrame>, max_frame: usize, zero_copy: bool) -> Self {
        Self { rings, free, max_frame, zero_copy, pending: false }
    }

    pub(super) fn max_frame(&self) -> usize {
        self.max_frame
    }

    /// Lends up to `budget` frames.
    pub(super) fn fill(
        &mut self,
        budget: usize,
        stats: &mut NicStats,
        fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>,
    ) -> usize {
        if self.free.len() < budget {
            self.rings.reclaim(&mut self.free);
        }
        for count in 0..budget {
            let Some(mut frame) = self.free.pop() else { return count };
            let Some(length) = fill(self.rings.bytes(&mut frame, self.max_frame)) else {
                self.free.push(frame);
                return count;
            };
            assert!(
                length > 0 && length <= self.max_frame,
                "a filled frame of {length} bytes is not within its buffer"
            );
            self.rings.submit(frame, length);
            self.pending = true;
            stats.tx_frames += 1;
            stats.tx_bytes += length as u64;
        }
        budget
    }

    /// Makes the kernel take what was submitted.
    pub(super) fn flush(&mut self, stats: &mut NicStats) -> io::Result<()> {
        if !self.pending {
            return Ok(());
        }
        if self.zero_copy {
            self.pending = false;
            return if self.rings.needs_wakeup() { self.kick(stats).map(|_| ()) } else { Ok(()) };
        }
        let mut patience = PATIENCE;
        let mut left = self.rings.unsent();
        while left > 0 && patience > 0 {
            if !self.kick(stats)? {
                return Ok(());
            }
            let now = self.rings.unsent();
            if now == left {
                patience -= 1;
                std::thread::yield_now();
            }
            left = now;
        }
        self.pending = left > 0;
        Ok(())
    }

    /// One system call that sends; false when trying again is no use for now.
    fn kick(&self, stats: &mut NicStats) -> io::Result<bool> {
        let (fd, none) = (self.rings.socket().as_raw_fd(), std::ptr::null());
        // SAFETY: a buffer of length zero is not read, and no address is given.
        let sent = unsafe { libc::sendto(fd, none, 0, libc::MSG_DONTWAIT, none.cast(), 0) };
        let Err(error) = check(sent as i32) else { return Ok(true) };
        match error.raw_os_error() {
            // A bounded number of frames is taken at a time, or memory is short until earlier ones have left.
            Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR) => Ok(true),
            Some(libc::EBUSY) => {
                // The device refused this frame; the kernel gave it up.
                stats.tx_dropped += 1;
                Ok(true)
            }
            _ if is_gone(&error) => Err(error),
            _ => Ok(false),
        }
    }
}
