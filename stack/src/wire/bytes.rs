//! Reading headers off a slice and writing them one behind the other.

use super::emit::MAX_TRANSPORT;

/// What is left to read. Every read is checked once, by the size of the header.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    /// The next `N` bytes, or `None` when fewer are left.
    #[inline(always)]
    pub(super) fn take<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(taken)
    }
}

/// Headers written so far, into a frame and into a copy for the CRC.
///
/// The copy spares the CRC a second call for what follows the base transport header, which it sees masked.
/// The room is the caller's promise: running out of it is a bug, and panics.
pub(super) struct Writer<'a> {
    frame: &'a mut [u8],
    copy: [u8; MAX_TRANSPORT],
    written: usize,
}

impl<'a> Writer<'a> {
    #[inline(always)]
    pub(super) fn new(frame: &'a mut [u8]) -> Self {
        Self { frame, copy: [0; MAX_TRANSPORT], written: 0 }
    }

    /// Writes the same bytes to both.
    #[inline(always)]
    pub(super) fn put<const N: usize>(&mut self, bytes: &[u8; N]) {
        self.put_masked(bytes, bytes);
    }

    /// Writes `bytes` to the frame, and `masked` to the copy.
    #[inline(always)]
    pub(super) fn put_masked<const N: usize>(&mut self, bytes: &[u8; N], masked: &[u8; N]) {
        let place = self.written..self.written + N;
        self.frame[place.clone()].copy_from_slice(bytes);
        self.copy[place].copy_from_slice(masked);
        self.written += N;
    }

    /// The copy.
    #[inline(always)]
    pub(super) fn copy(&self) -> &[u8] {
        &self.copy[..self.written]
    }
}

/// Big-endian integers at a constant offset of a header of constant size: no check survives compilation.
#[inline(always)]
pub(super) fn be16<const N: usize>(bytes: &[u8; N], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[inline(always)]
pub(super) fn be24<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    u32::from_be_bytes([0, bytes[at], bytes[at + 1], bytes[at + 2]])
}

#[inline(always)]
pub(super) fn be32<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[inline(always)]
pub(super) fn be64<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    u64::from(be32(bytes, at)) << 32 | u64::from(be32(bytes, at + 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_big_endian() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9];
        assert_eq!(be16(&bytes, 1), 0x0203);
        assert_eq!(be24(&bytes, 1), 0x02_0304);
        assert_eq!(be32(&bytes, 1), 0x0203_0405);
        assert_eq!(be64(&bytes, 1), 0x0203_0405_0607_0809);
    }

    #[test]
    fn reader_stops_at_the_end() {
        let mut reader = Reader(&[1, 2, 3]);
        assert_eq!(reader.take::<2>(), Some(&[1, 2]));
        assert_eq!(reader.take::<2>(), None);
        assert_eq!(reader.take::<1>(), Some(&[3]));
    }
}
