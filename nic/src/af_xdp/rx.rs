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
            let continued = chunk.is_continued();
            let frame = match (std::mem::replace(&mut self.partial, Partial::None), continued) {
                (Partial::None, false) => (chunk, None),
                (Partial::First(first), false) => (first, Some(chunk)),
                (Partial::None, true) => {
                    self.partial = Partial::First(chunk);
                    continue;
                }
                (other, continued) => {
                    // The third piece of a frame, or a later one.
                    if let Partial::First(first) = other {
                        self.empty.push(first);
                    }
                    self.empty.push(chunk);
                    if continued {
                        self.partial = Partial::Oversize;
                    } else {
                        stats.rx_oversize += 1;
                    }
                    continue;
                }
            };
            let head = self.rings.bytes(&frame.0);
            let rest = frame.1.as_ref().map_or(&[][..], |chunk| self.rings.bytes(chunk));
            let shown = RxFrame { head, rest };
            stats.rx_frames += 1;
            stats.rx_bytes += shown.len() as u64;
            deliver(shown);
            count += 1;
            self.empty.push(frame.0);
            self.empty.extend(frame.1);
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
