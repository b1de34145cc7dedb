//! The payload of a packet and the bytes that pad it.

use core::ops::Range;

/// The payload of a packet. A frame may lie in two buffers, so the payload may too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Payload<'a> {
    /// The bytes in the first buffer.
    pub head: &'a [u8],
    /// The bytes in the second buffer, which follow.
    pub rest: &'a [u8],
}

impl<'a> Payload<'a> {
    /// Length in bytes, padding not counted.
    pub const fn len(&self) -> usize {
        self.head.len() + self.rest.len()
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of a range; `None` when there are fewer.
    #[inline(always)]
    pub(super) fn range(self, range: Range<usize>) -> Option<Self> {
        match self.head.get(range.clone()) {
            Some(head) => Some(Self { head, rest: &[] }),
            None => self.range_across(range),
        }
    }

    /// A range that reaches into the second buffer.
    #[cold]
    fn range_across(self, range: Range<usize>) -> Option<Self> {
        let len = self.head.len();
        let rest = self.rest.get(range.start.saturating_sub(len)..range.end.checked_sub(len)?)?;
        let head = self.head.get(range.start..).unwrap_or_default();
        Some(Self { head, rest })
    }

    /// Copies all of it; `out` has exactly its length.
    pub(super) fn copy_to(&self, out: &mut [u8]) {
        let (head, rest) = out.split_at_mut(self.head.len());
        head.copy_from_slice(self.head);
        rest.copy_from_slice(self.rest);
    }

    /// The bytes of a payload that is `N` bytes long.
    #[inline(always)]
    pub(super) fn to_array<const N: usize>(self) -> [u8; N] {
        self.head.try_into().unwrap_or_else(|_| {
            let mut array = [0; N];
            self.copy_to(&mut array);
            array
        })
    }

    /// The bytes of a payload that is eight bytes long.
    pub(crate) fn to_word(self) -> Option<[u8; 8]> {
        (self.len() == 8).then(|| self.to_array())
    }

    /// All bytes in order.
    pub fn bytes(&self) -> impl Iterator<Item = u8> + use<'a> {
        self.head.iter().chain(self.rest).copied()
    }
}

/// The bytes that fill the payload up to a multiple of four. Senders write zeros, receivers ignore the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pad {
    len: u8,
    bytes: [u8; 3],
}

impl Pad {
    /// How many, 0..=3: the pad count of the base transport header.
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes as they came.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len()]
    }

    /// At most three bytes, in two pieces.
    #[inline(always)]
    pub(super) fn from_pieces(pieces: Payload<'_>) -> Self {
        if pieces.is_empty() {
            return Self::default();
        }
        let mut bytes = [0; 3];
        pieces.copy_to(&mut bytes[..pieces.len()]);
        Self { len: pieces.len() as u8, bytes }
    }
}

/// How many pad bytes follow `payload_len` bytes, 0..=3 (case C01).
pub(super) const fn pad_for(payload_len: usize) -> usize {
    payload_len.wrapping_neg() & 3
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn every_range_of_two_buffers() {
        let bytes = [1, 2, 3, 4, 5];
        for at in 0..=5 {
            let (head, rest) = bytes.split_at(at);
            for (start, end) in (0..=6).flat_map(|start| (0..=6).map(move |end| (start, end))) {
                let range = Payload { head, rest }.range(start..end);
                let want = bytes.get(start..end).map(<[u8]>::to_vec);
                assert_eq!(
                    range.map(|range| range.bytes().collect::<Vec<_>>()),
                    want,
                    "{start}..{end} at {at}"
                );
            }
        }
    }

    #[test]
    fn pads_to_words() {
        assert_eq!([0, 1, 2, 3, 4, 4096].map(pad_for), [0, 3, 2, 1, 0, 0]);
        let pad = Pad::from_pieces(Payload { head: &[7], rest: &[8] });
        assert_eq!((pad.len(), pad.as_slice()), (2, &[7, 8][..]));
    }
}
