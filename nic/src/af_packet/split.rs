//! A frame that holds several is taken apart again.

use std::ops::Range;

use super::headers::Headers;

/// The datagrams of a frame, one after the other. The headers of each are written over the end of the one before it,
/// which has been seen by then: so no payload moves.
#[derive(Debug)]
pub(super) struct Split {
    headers: Headers,
    /// Where in the buffer the payloads lie that are left.
    left: Range<usize>,
    segment: usize,
    number: usize,
}

impl Split {
    /// Datagrams of `segment` bytes, the last perhaps shorter, in the frame with these headers at `place` of a buffer.
    pub(super) fn new(headers: Headers, place: Range<usize>, segment: usize) -> Self {
        Self { headers, left: place.start + headers.len()..place.end, segment, number: 0 }
    }

    /// Length of the longest frame.
    pub(super) fn longest(&self) -> usize {
        self.headers.len() + self.segment.min(self.left.len())
    }

    /// Completes the next frame in the buffer and tells where it lies.
    pub(super) fn next(&mut self, buffer: &mut [u8]) -> Option<Range<usize>> {
        if self.left.is_empty() {
            return None;
        }
        let payload = self.segment.min(self.left.len());
        let headers = self.headers.following(self.number, payload);
        let start = self.left.start - headers.len();
        buffer[start..self.left.start].copy_from_slice(headers.as_bytes());
        self.left.start += payload;
        self.number += 1;
        Some(start..self.left.start)
    }
}
