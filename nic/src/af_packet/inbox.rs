//! Frames from the kernel.

use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;

use super::TAG;
use super::headers::Headers;
use super::peers::Peers;
use super::socket::{self, BATCH, Received};
use super::split::Split;
use super::vnet;
use crate::{NicStats, RxFrame};

/// Room for any frame of an Ethernet interface, also one that holds several.
const BUFFER: usize = vnet::LEN + 14 + TAG + 65_536;

/// What was read and not shown yet.
#[derive(Debug)]
pub(super) struct Inbox {
    /// In each a header of the module `vnet`, then the frame.
    buffers: [Box<[u8]>; BATCH],
    received: [Received; BATCH],
    /// Of `received`, those not begun with.
    left: Range<usize>,
    /// What is left of the one before these.
    split: Option<Split>,
    /// Longer frames are not shown.
    max_frame: usize,
    /// Those that told by their frames that they take what holds several.
    pub(super) peers: Peers,
}

impl Inbox {
    pub(super) fn new(max_frame: usize) -> Self {
        let buffers = [(); BATCH].map(|()| vec![0; BUFFER].into());
        Self {
            buffers,
            received: [Received::default(); BATCH],
            left: 0..0,
            split: None,
            max_frame,
            peers: Peers::new(),
        }
    }

    /// Reads what is there, once everything was shown; answers whether there may be more.
    pub(super) fn fill(&mut self, socket: BorrowedFd<'_>) -> io::Result<bool> {
        let count = socket::receive(socket, &mut self.buffers, &mut self.received)?;
        self.left = 0..count;
        Ok(count == BATCH)
    }

    /// Shows up to `budget` frames of those that were read; how many there were.
    pub(super) fn show(
        &mut self,
        budget: usize,
        stats: &mut NicStats,
        deliver: &mut dyn FnMut(RxFrame<'_>),
    ) -> usize {
        for count in 0..budget {
            let Some(frame) = self.next(stats) else { return count };
            stats.rx_frames += 1;
            stats.rx_bytes += frame.len() as u64;
            deliver(RxFrame::linear(frame));
        }
        budget
    }

    fn next(&mut self, stats: &mut NicStats) -> Option<&[u8]> {
        loop {
            if let Some(split) = &mut self.split {
                let buffer = &mut self.buffers[self.left.start - 1];
                match split.next(buffer) {
                    Some(place) => return Some(&self.buffers[self.left.start - 1][place]),
                    None => self.split = None,
                }
            }
            let at = self.left.next()?;
            if let Some(place) = self.open(at, stats) {
                return Some(&self.buffers[at][place]);
            }
        }
    }

    /// Where in its buffer the frame lies that was received with this number; `None` when there is none to show, or
    /// when it is now being split.
    fn open(&mut self, at: usize, stats: &mut NicStats) -> Option<Range<usize>> {
        let Received { length, truncated, outgoing, tag } = self.received[at];
        if outgoing || length < vnet::LEN {
            return None;
        }
        let buffer = &mut self.buffers[at][..length];
        let segment = vnet::segment(buffer);
        let place = put_tag_back(buffer, tag)..length;
        let headers = Headers::of(&buffer[place.clone()]);
        if let Some(headers) = headers {
            self.peers.note(headers.source(), headers.has_checksum());
        }
        if !truncated && let Some((segment, headers)) = segment.zip(headers) {
            self.split = Some(Split::new(headers, place.clone(), segment));
        }
        let longest = self.split.as_ref().map_or(place.len(), Split::longest);
        if truncated || longest > self.max_frame {
            self.split = None;
            stats.rx_oversize += 1;
            return None;
        }
        self.split.is_none().then_some(place)
    }
}

/// Puts a tag that the kernel took out back in its place, over the end of the header before the frame, which begins
/// where this answers.
fn put_tag_back(buffer: &mut [u8], tag: Option<(u16, u16)>) -> usize {
    const MACS: usize = 12;
    let Some((kind, control)) = tag.filter(|_| buffer.len() >= vnet::LEN + MACS) else { return vnet::LEN };
    let start = vnet::LEN - TAG;
    buffer.copy_within(vnet::LEN..vnet::LEN + MACS, start);
    let tag = &mut buffer[start + MACS..][..TAG];
    tag[..2].copy_from_slice(&kind.to_be_bytes());
    tag[2..].copy_from_slice(&control.to_be_bytes());
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_taken_out_is_put_back() {
        let mut buffer: Vec<u8> = [0; vnet::LEN].into_iter().chain(1..=20).collect();
        assert_eq!(put_tag_back(&mut buffer, None), vnet::LEN);
        let start = put_tag_back(&mut buffer, Some((0x8100, 0x6005)));
        let expected: Vec<u8> = (1..=12).chain([0x81, 0, 0x60, 5]).chain(13..=20).collect();
        assert_eq!(buffer[start..], expected);
    }
}
