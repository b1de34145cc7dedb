//! Frames from chunks.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use super::rings::{BATCH, RxChunk, RxRings};
use crate::sys::check;
use crate::{NicStats, RxFrame};

/// Looks in vain after which the kernel is asked whether the interface is still there.
const CHECK_AFTER: u32 = 256;

/// The receiving side of a socket.
pub(super) struct Receiver {
    rings: RxRings,
    partial: Partial,
    batch: Vec<RxChunk>,
    /// Chunks to give back to the kernel.
    empty: Vec<RxChunk>,
    idle: u32,
}

/// A frame of which not every piece was seen.
enum Partial {
    None,
    First(RxChunk),
    /// It has more pieces than we lend: the rest of it is passed over.
    Oversize,
}

impl Partial {
    /// Adds a chunk; answers the chunks of a frame when this was its last, and puts aside those of no use.
    fn complete(
        &mut self,
        chunk: RxChunk,
        unused: &mut Vec<RxChunk>,
        stats: &mut NicStats,
    ) -> Option<(RxChunk, Option<RxChunk>)> {
        match (std::mem::replace(self, Self::None), chunk.is_continued()) {
            (Self::None, false) => return Some((chunk, None)),
            (Self::First(first), false) => return Some((first, Some(chunk))),
            (Self::None, true) => *self = Self::First(chunk),
            (Self::First(first), true) => {
                unused.extend([first, chunk]);
                *self = Self::Oversize;
            }
            (Self::Oversize, continued) => {
                unused.push(chunk);
                stats.rx_oversize += u64::from(!continued);
                *self = if continued { Self::Oversize } else { Self::None };
            }
        }
        None
    }
}

impl Receiver {
    pub(super) fn new(rings: RxRings) -> Self {
        // A frame in two pieces gives back two chunks for the last of a batch.
        let (batch, empty) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH + 1));
        Self { rings, partial: Partial::None, batch, empty, idle: 0 }
    }

    pub(super) fn rings(&self) -> &RxRings {
        &self.rings
    }

    /// Shows up to `budget` frames.
    pub(super) fn receive(
        &mut self,
        budget: usize,
        stats: &mut NicStats,
        deliver: &mut dyn FnMut(RxFrame<'_>),
    ) -> io::Result<usize> {
        let mut count = 0;
        while count < budget {
            // A chunk never makes more than one frame, so the budget bounds the chunks as well.
            let wanted = (budget - count).min(BATCH);
            let got = self.rings.receive(wanted, &mut self.batch);
            count += self.deliver_batch(stats, deliver);
            if got < wanted {
                break;
            }
        }
        self.look_after_kernel(count)?;
        Ok(count)
    }

    fn deliver_batch(&mut self, stats: &mut NicStats, deliver: &mut dyn FnMut(RxFrame<'_>)) -> usize {
        let mut count = 0;
        for chunk in self.batch.drain(..) {
            let Some((first, second)) = self.partial.complete(chunk, &mut self.empty, stats) else {
                continue;
            };
            let head = self.rings.bytes(&first);
            let rest = second.as_ref().map_or(&[][..], |chunk| self.rings.bytes(chunk));
            let frame = RxFrame { head, rest };
            stats.rx_frames += 1;
            stats.rx_bytes += frame.len() as u64;
            deliver(frame);
            count += 1;
            self.empty.push(first);
            self.empty.extend(second);
        }
        self.rings.refill(self.empty.drain(..));
        count
    }

    /// Wakes a driver that waits for empty chunks, and notices now and then that the interface is gone.
    fn look_after_kernel(&mut self, received: usize) -> io::Result<()> {
        self.idle = if received == 0 { self.idle + 1 } else { 0 };
        if self.rings.needs_wakeup() || self.idle >= CHECK_AFTER {
            self.idle = 0;
            return wake(self.rings.socket());
        }
        Ok(())
    }
}

/// Makes the kernel look at the fill ring; an error when the interface is gone.
fn wake(socket: BorrowedFd<'_>) -> io::Result<()> {
    let (fd, none) = (socket.as_raw_fd(), std::ptr::null_mut());
    // SAFETY: a buffer of length zero is not written to, and no address is asked for.
    match check(unsafe { libc::recvfrom(fd, none, 0, libc::MSG_DONTWAIT, none.cast(), none.cast()) } as i32) {
        Err(error) if is_gone(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Whether an error of a bound socket means that it lost its interface for good.
///
/// `ENETDOWN` does not: an interface that was taken down may come up again, and the frames in the ring leave then.
pub(super) fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENXIO | libc::ENODEV | libc::EBADF))
}
