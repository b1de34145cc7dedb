//! An in-memory cable: two [`Nic`]s back to back, for tests, benchmarks and endpoints of one process.
//!
//! Each direction owns a fixed set of frame buffers which travel through a ring to the peer and return empty
//! through a second one. The sender takes the buffer that came back last, so with a small set the frames stay in
//! the cache. Nothing is allocated after [`pair`], and a full cable lends no frame.
//!
//! Both ends may be used on one thread or on two. A cable whose other end was dropped takes frames and loses
//! them, as a real one does; they are counted in [`NicStats::tx_dropped`].

mod wake;

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rtrb::{Consumer, Producer, RingBuffer};

use crate::{Mode, Nic, NicStats, RxFrame};
use wake::Wake;

/// Two ends of a cable that holds up to `frames` frames of up to `max_frame` bytes in each direction.
///
/// [`Nic::fd`] is `None`: poll both ends. 32 frames are a good number where one thread drives both.
///
/// # Panics
/// When `frames` or `max_frame` is zero.
pub fn pair(frames: usize, max_frame: usize) -> (Cable, Cable) {
    join(frames, max_frame, None, None)
}

/// As [`pair`], with an eventfd for each end so that a thread can sleep until a frame arrives.
///
/// # Errors
/// The process has no file descriptor left.
///
/// # Panics
/// When `frames` or `max_frame` is zero.
pub fn pair_with_fd(frames: usize, max_frame: usize) -> io::Result<(Cable, Cable)> {
    let (left, right) = (Arc::new(Wake::new()?), Arc::new(Wake::new()?));
    Ok(join(frames, max_frame, Some(left), Some(right)))
}

fn join(
    frames: usize,
    max_frame: usize,
    left: Option<Arc<Wake>>,
    right: Option<Arc<Wake>>,
) -> (Cable, Cable) {
    assert!(frames > 0 && max_frame > 0, "a cable needs room for at least one frame of one byte");
    let (to_right, from_left) = direction(frames, max_frame, right.clone());
    let (to_left, from_right) = direction(frames, max_frame, left.clone());
    let end = |tx, rx, wake| Cable { tx, rx, wake, max_frame, stats: NicStats::default() };
    (end(to_right, from_right, left), end(to_left, from_left, right))
}

fn direction(frames: usize, max_frame: usize, wake: Option<Arc<Wake>>) -> (Sender, Receiver) {
    let (filled, incoming) = RingBuffer::new(frames);
    let (emptied, returned) = RingBuffer::new(frames);
    let free = (0..frames).map(|_| Buffer { bytes: vec![0; max_frame].into(), len: 0 }).collect();
    (Sender { filled, returned, free, wake, fresh: false }, Receiver { incoming, emptied })
}

/// One end of an in-memory cable; see [`pair`].
#[derive(Debug)]
pub struct Cable {
    tx: Sender,
    rx: Receiver,
    wake: Option<Arc<Wake>>,
    max_frame: usize,
    stats: NicStats,
}

impl Nic for Cable {
    fn rx(&mut self, budget: usize, deliver: &mut dyn FnMut(RxFrame<'_>)) -> io::Result<usize> {
        let mut count = self.rx.drain(budget, &mut self.stats, deliver);
        if count < budget
            && let Some(wake) = &self.wake
        {
            wake.arm();
            // A frame that arrived between the last look and the arming would wake nobody: look once more.
            count += self.rx.drain(budget - count, &mut self.stats, deliver);
        }
        Ok(count)
    }

    fn tx(&mut self, budget: usize, fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>) -> io::Result<usize> {
        for count in 0..budget {
            let Some(mut buffer) = self.tx.take() else { return Ok(count) };
            let Some(len) = fill(&mut buffer.bytes) else {
                self.tx.free.push(buffer);
                return Ok(count);
            };
            assert!(
                len > 0 && len <= buffer.bytes.len(),
                "a filled frame of {len} bytes is not within its buffer"
            );
            buffer.len = len;
            self.tx.send(buffer, &mut self.stats);
        }
        Ok(budget)
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(wake) = &self.tx.wake
            && std::mem::take(&mut self.tx.fresh)
        {
            wake.wake();
        }
        Ok(())
    }

    fn max_frame(&self) -> usize {
        self.max_frame
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.wake.as_deref().map(Wake::fd)
    }

    fn stats(&self) -> NicStats {
        self.stats
    }

    fn mode(&self) -> Mode {
        Mode::Cable
    }
}

#[derive(Debug)]
struct Buffer {
    bytes: Box<[u8]>,
    len: usize,
}

#[derive(Debug)]
struct Sender {
    filled: Producer<Buffer>,
    returned: Consumer<Buffer>,
    /// Last in, first out: the warmest buffer leaves first.
    free: Vec<Buffer>,
    wake: Option<Arc<Wake>>,
    /// Whether something was sent since the last flush.
    fresh: bool,
}

impl Sender {
    fn take(&mut self) -> Option<Buffer> {
        while let Ok(buffer) = self.returned.pop() {
            self.free.push(buffer);
        }
        self.free.pop()
    }

    fn send(&mut self, buffer: Buffer, stats: &mut NicStats) {
        if self.filled.is_abandoned() {
            stats.tx_dropped += 1;
            self.free.push(buffer);
            return;
        }
        stats.tx_frames += 1;
        stats.tx_bytes += buffer.len as u64;
        self.fresh = true;
        self.filled.push(buffer).expect("the ring has a place for every buffer there is");
    }
}

#[derive(Debug)]
struct Receiver {
    incoming: Consumer<Buffer>,
    emptied: Producer<Buffer>,
}

impl Receiver {
    fn drain(&mut self, budget: usize, stats: &mut NicStats, deliver: &mut dyn FnMut(RxFrame<'_>)) -> usize {
        for count in 0..budget {
            let Ok(buffer) = self.incoming.pop() else { return count };
            stats.rx_frames += 1;
            stats.rx_bytes += buffer.len as u64;
            deliver(RxFrame::linear(&buffer.bytes[..buffer.len]));
            self.emptied.push(buffer).expect("the ring has a place for every buffer there is");
        }
        budget
    }
}

#[cfg(test)]
mod tests;
