//! Which frames may leave as one.

use super::headers::{Address, Headers};
use super::vnet;

/// Bytes of a frame that holds several at most: what IP can say, and what the kernel carries in one piece.
pub(super) const MAX_LEN: usize = 65_535;

/// Frames one behind the other that differ, but for the payload, only as a kernel that segments makes them differ: all
/// payloads are of one length, but for the last, which may be shorter.
#[derive(Debug)]
pub(super) struct Run {
    first: Headers,
    /// Payload of each frame but the last.
    segment: usize,
    pub(super) frames: usize,
    /// Payload of all.
    payload: usize,
    ended: bool,
}

impl Run {
    /// A run that begins with this frame; `None` when it must leave just as it is.
    pub(super) fn start(frame: &[u8]) -> Option<Self> {
        let first = Headers::of(frame)?;
        let segment = frame.len() - first.len();
        let is_plain = first.following(0, segment).as_bytes() == first.as_bytes();
        (is_plain && segment > 0).then_some(Self {
            first,
            segment,
            frames: 1,
            payload: segment,
            ended: false,
        })
    }

    /// Takes the frame in if it continues the run.
    pub(super) fn take(&mut self, frame: &[u8]) -> bool {
        let payload = frame.len().saturating_sub(self.first.len());
        let fits = self.len() + payload <= MAX_LEN && self.frames < vnet::MAX_SEGMENTS;
        if self.ended || !fits || !(1..=self.segment).contains(&payload) {
            return false;
        }
        if !frame.starts_with(self.first.following(self.frames, payload).as_bytes()) {
            return false;
        }
        self.frames += 1;
        self.payload += payload;
        self.ended = payload < self.segment;
        true
    }

    /// Who the frames are for.
    pub(super) fn destination(&self) -> Address {
        self.first.destination()
    }

    /// The headers before all payloads, in the frame that holds all.
    pub(super) fn headers(&self) -> Headers {
        self.first.covering(self.payload)
    }

    /// What the kernel is told of that frame.
    pub(super) fn vnet(&self) -> [u8; vnet::LEN] {
        match self.frames {
            1 => vnet::unfinished(self.first.len()),
            _ => vnet::segmented(self.first.len(), self.segment),
        }
    }

    fn len(&self) -> usize {
        self.first.len() + self.payload
    }
}
