//! Frames to the kernel.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;

use super::headers;
use super::peers::Peers;
use super::run::{self, Run};
use super::{socket, vnet};

/// Frames that wait to be sent at most: as many as may leave as one.
const SLOTS: usize = vnet::MAX_SEGMENTS;

/// Frames that were filled, and those to fill.
#[derive(Debug)]
pub(super) struct Outbox {
    /// In each a header of the module `vnet`, which says that the frame behind it is complete.
    slots: Box<[u8]>,
    stride: usize,
    /// Last in, first out: the warmest is filled first.
    free: Vec<usize>,
    waiting: VecDeque<Filled>,
    /// Of all that wait.
    bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct Filled {
    slot: usize,
    length: usize,
}

impl Outbox {
    pub(super) fn new(max_frame: usize) -> Self {
        let stride = vnet::LEN + max_frame;
        let waiting = VecDeque::with_capacity(SLOTS);
        Self {
            slots: vec![0; SLOTS * stride].into(),
            stride,
            free: (0..SLOTS).rev().collect(),
            waiting,
            bytes: 0,
        }
    }

    pub(super) fn max_frame(&self) -> usize {
        self.stride - vnet::LEN
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether it is time to send: there is no room for another frame, or enough for the longest run.
    pub(super) fn is_full(&self) -> bool {
        self.free.is_empty() || self.bytes >= run::MAX_LEN
    }

    /// Lends a frame to `fill` and keeps it to be sent; false when it was not filled. There must be room.
    pub(super) fn fill(&mut self, fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>) -> bool {
        let slot = self.free.pop().expect("the caller made sure that there is room");
        let frame = &mut self.slots[slot * self.stride..][vnet::LEN..self.stride];
        let Some(length) = fill(frame) else {
            self.free.push(slot);
            return false;
        };
        assert!(
            length > 0 && length <= frame.len(),
            "a filled frame of {length} bytes is not within its buffer"
        );
        self.waiting.push_back(Filled { slot, length });
        self.bytes += length;
        true
    }

    /// Sends the frame that waits longest just as it is. Tells how many frames and bytes these are, and what the kernel
    /// said.
    pub(super) fn send_plain(&self, socket: BorrowedFd<'_>) -> (Sent, io::Result<()>) {
        let Some(first) = self.waiting.front() else { return (Sent::default(), Ok(())) };
        let start = first.slot * self.stride;
        (self.sent(1), socket::send(socket, &self.slots[start..start + vnet::LEN + first.length]))
    }

    /// Sends the frame that waits longest, with those behind it that may leave as one with it, if it is for one of
    /// these peers; in any case with a UDP checksum, which tells that we are such a peer.
    pub(super) fn send(&self, socket: BorrowedFd<'_>, peers: &Peers) -> (Sent, io::Result<()>) {
        let mut frames = self.waiting.iter().map(|filled| self.frame(filled));
        let Some(mut run) = frames.next().and_then(Run::start) else { return self.send_plain(socket) };
        if peers.take(run.destination()) {
            let _ = frames.take_while(|frame| run.take(frame)).count();
        }
        (self.sent(run.frames), self.send_run(socket, &run))
    }

    /// Gives the slots of the frames that were waiting longest back.
    pub(super) fn release(&mut self, sent: Sent) {
        self.free.extend(self.waiting.drain(..sent.frames).map(|filled| filled.slot));
        self.bytes -= sent.bytes;
    }

    fn send_run(&self, socket: BorrowedFd<'_>, run: &Run) -> io::Result<()> {
        let headers = run.headers();
        let len = headers.len();
        let mut front = [0; vnet::LEN + headers::MAX_LEN];
        front[..vnet::LEN].copy_from_slice(&run.vnet());
        front[vnet::LEN..][..len].copy_from_slice(headers.as_bytes());
        let mut pieces = [IoSlice::new(&[]); 1 + SLOTS];
        pieces[0] = IoSlice::new(&front[..vnet::LEN + len]);
        for (piece, filled) in pieces[1..].iter_mut().zip(self.waiting.iter().take(run.frames)) {
            *piece = IoSlice::new(&self.frame(filled)[len..]);
        }
        socket::send_pieces(socket, &pieces[..=run.frames])
    }

    fn frame(&self, filled: &Filled) -> &[u8] {
        &self.slots[filled.slot * self.stride + vnet::LEN..][..filled.length]
    }

    fn sent(&self, frames: usize) -> Sent {
        let bytes = self.waiting.iter().take(frames).map(|filled| filled.length).sum();
        Sent { frames, bytes }
    }
}

/// Frames, and the bytes of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    pub(super) frames: usize,
    pub(super) bytes: usize,
}
