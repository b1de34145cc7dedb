//! Registered memory as the application reaches it: by copy, and by atomic words.

use std::ops::{Bound, RangeBounds};
use std::sync::atomic::{AtomicU64, Ordering};

use uroce_stack::Region;

use crate::error::Error;

/// The memory of a [`MemoryRegion`](crate::MemoryRegion) or a [`FastMemoryRegion`](crate::FastMemoryRegion), which peers
/// may change at any moment: bytes are copied in and out, and words of 64 bits are read and changed atomically, also with
/// respect to the atomic operations of peers.
#[derive(Debug)]
pub struct RegisteredBytes {
    region: Region,
    lent: Lent,
}

/// How the memory may be changed by us, whatever `Access` says about peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lent {
    Writable,
    /// Borrowed from a shared reference, or registered without any right to write.
    ReadOnly,
}

impl RegisteredBytes {
    pub(crate) const fn new(region: Region, lent: Lent) -> Self {
        Self { region, lent }
    }

    /// Zeroed memory of its own.
    pub(crate) fn alloc(len: usize) -> Result<Self, Error> {
        let region = Region::try_alloc(len).ok_or(Error::OutOfMemory { length: len })?;
        Ok(Self::new(region, Lent::Writable))
    }

    pub(crate) const fn region(&self) -> &Region {
        &self.region
    }

    /// How many bytes it has.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.region.len()
    }

    /// Whether it has no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.region.is_empty()
    }

    /// The memory itself. To dereference it, the caller must know that no peer and no work request touches
    /// the bytes meanwhile.
    #[must_use]
    pub const fn as_ptr(&self) -> *mut u8 {
        self.region.as_ptr()
    }

    /// Copies `out.len()` bytes out, from `offset` on.
    ///
    /// Bytes that a peer or a work request writes meanwhile may be old or new, each on its own.
    ///
    /// # Errors
    /// [`Error::Bounds`].
    pub fn read_at(&self, offset: usize, out: &mut [u8]) -> Result<(), Error> {
        let length = out.len();
        if self.region.read_at(offset, out) { Ok(()) } else { Err(self.out_of_bounds(offset, length)) }
    }

    /// Copies `bytes` in, from `offset` on.
    ///
    /// # Errors
    /// [`Error::Bounds`]; [`Error::ReadOnly`] when the memory was lent for reading.
    pub fn write_at(&self, offset: usize, bytes: &[u8]) -> Result<(), Error> {
        self.check_writable()?;
        if self.region.write_at(offset, bytes) {
            Ok(())
        } else {
            Err(self.out_of_bounds(offset, bytes.len()))
        }
    }

    /// Copies a range out.
    ///
    /// # Errors
    /// [`Error::Bounds`].
    pub fn to_vec(&self, range: impl RangeBounds<usize>) -> Result<Vec<u8>, Error> {
        let (start, end) = bounds(range, self.len());
        let length = end.saturating_sub(start);
        if end > self.len() || start > end {
            return Err(self.out_of_bounds(start, length));
        }
        let mut bytes = vec![0; length];
        self.read_at(start, &mut bytes)?;
        Ok(bytes)
    }

    /// The word at `offset`, in host order. What was written before a peer's or another thread's store of it
    /// is visible afterwards (acquire).
    ///
    /// # Errors
    /// [`Error::Bounds`], [`Error::Unaligned`].
    pub fn load_u64(&self, offset: usize) -> Result<u64, Error> {
        Ok(self.word(offset)?.load(Ordering::Acquire))
    }

    /// Stores a word at `offset`, in host order (release).
    ///
    /// # Errors
    /// [`Error::Bounds`], [`Error::Unaligned`], [`Error::ReadOnly`].
    pub fn store_u64(&self, offset: usize, value: u64) -> Result<(), Error> {
        self.check_writable()?;
        self.word(offset)?.store(value, Ordering::Release);
        Ok(())
    }

    /// Adds to the word at `offset`, modulo 2^64, and returns what it was. Atomic also with respect to peers.
    ///
    /// # Errors
    /// [`Error::Bounds`], [`Error::Unaligned`], [`Error::ReadOnly`].
    pub fn fetch_add_u64(&self, offset: usize, value: u64) -> Result<u64, Error> {
        self.check_writable()?;
        Ok(self.word(offset)?.fetch_add(value, Ordering::AcqRel))
    }

    /// Stores `new` at `offset` if the word there is `current`, and returns what it was: `Ok` if it was
    /// `current`, an inner `Err` otherwise, as [`AtomicU64::compare_exchange`] does. Atomic also with respect
    /// to peers.
    ///
    /// # Errors
    /// [`Error::Bounds`], [`Error::Unaligned`], [`Error::ReadOnly`].
    pub fn compare_exchange(&self, offset: usize, current: u64, new: u64) -> Result<Result<u64, u64>, Error> {
        self.check_writable()?;
        Ok(self.word(offset)?.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire))
    }

    pub(crate) fn check_writable(&self) -> Result<(), Error> {
        if self.lent == Lent::Writable { Ok(()) } else { Err(Error::ReadOnly) }
    }

    fn word(&self, offset: usize) -> Result<&AtomicU64, Error> {
        self.region.word(offset).ok_or_else(|| {
            let inside = offset.checked_add(8).is_some_and(|end| end <= self.len());
            if inside { Error::Unaligned(offset) } else { self.out_of_bounds(offset, 8) }
        })
    }

    fn out_of_bounds(&self, offset: usize, length: usize) -> Error {
        Error::Bounds { offset, end: offset as u128 + length as u128, length: self.len() }
    }
}

/// Start and end of a range in something of `len` bytes; the end may lie outside.
pub(crate) fn bounds(range: impl RangeBounds<usize>, len: usize) -> (usize, usize) {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&start) => start.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&end) => end.saturating_add(1),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => len.max(start),
    };
    (start, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_every_shape() {
        assert_eq!(bounds(.., 9), (0, 9));
        assert_eq!(bounds(2..=5, 9), (2, 6));
        assert_eq!(bounds(20.., 9), (20, 20));
        assert_eq!(bounds(..20, 9), (0, 20));
        assert_eq!(
            bounds((Bound::Excluded(usize::MAX), Bound::Included(usize::MAX)), 9),
            (usize::MAX, usize::MAX)
        );
    }

    #[test]
    fn memory_that_is_not_there_is_an_error() {
        let refused = RegisteredBytes::alloc(isize::MAX as usize - 8192).expect_err("more than there is");
        assert_eq!(refused.errno(), libc::ENOMEM);
    }
}
