//! Regions: runs of memory that the application and the wire both write.

use alloc::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use alloc::sync::Arc;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

use super::copy_in;

/// Owned regions start on a page, so that they do not share one with anything else.
const ALIGNMENT: usize = 4096;

/// A run of memory that peers may read and write while the application does.
///
/// It is reached by copy or by atomic access, never by reference. Clones name the same memory; owned memory is
/// freed with the last clone.
#[derive(Clone, Debug)]
pub struct Region {
    start: NonNull<u8>,
    len: usize,
    /// Keeps owned memory alive; `None` for memory of the caller.
    owner: Option<Arc<Owned>>,
}

// SAFETY: a region is an address and a length. All access through it is by raw copies and atomic operations, which
// are defined to race with other threads and peers (see the module documentation), and the memory outlives the
// region: owned memory by the Arc, the caller's by the contract of `from_raw`.
unsafe impl Send for Region {}
// SAFETY: as for Send; no method needs exclusive access.
unsafe impl Sync for Region {}

impl Region {
    /// Zeroed memory of `len` bytes, page-aligned; ends the program when there is not so much.
    #[must_use]
    pub fn alloc(len: usize) -> Self {
        Self::try_alloc(len).unwrap_or_else(|| match layout(len) {
            Some(layout) => handle_alloc_error(layout),
            None => panic!("a region of {len} bytes is larger than the address space"),
        })
    }

    /// Zeroed memory of `len` bytes, page-aligned; `None` when there is not so much.
    #[must_use]
    pub fn try_alloc(len: usize) -> Option<Self> {
        let owner = Owned::new(layout(len)?)?;
        Some(Self { start: owner.start, len, owner: Some(Arc::new(owner)) })
    }

    /// Memory of the caller.
    ///
    /// # Safety
    /// `start..start + len` must stay mapped and readable, and writable if it is ever registered with an access right
    /// that allows writing, or allocated for fast registration, until the region and every clone of it are gone. The
    /// engine holds one while the region is registered, which it still is when work requests have invalidated it. While
    /// the engine does, no reference to the memory may exist.
    #[must_use]
    pub const unsafe fn from_raw(start: NonNull<u8>, len: usize) -> Self {
        Self { start, len, owner: None }
    }

    /// The address of the first byte.
    #[must_use]
    pub fn addr(&self) -> u64 {
        self.start.as_ptr() as u64
    }

    /// The first byte. Dereferencing it needs the care that [`from_raw`](Self::from_raw) asks for.
    #[must_use]
    pub const fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// How many bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the memory belongs to the region, not to the caller.
    #[must_use]
    pub const fn is_owned(&self) -> bool {
        self.owner.is_some()
    }

    /// Copies bytes from `offset` on into `out`; false and nothing copied when they are not all inside.
    #[must_use]
    pub fn read_at(&self, offset: usize, out: &mut [u8]) -> bool {
        let Some(from) = self.at(offset, out.len()) else { return false };
        // SAFETY: `at` returned a pointer with `out.len()` bytes of the region behind it, which are readable; `out`
        // is the caller's own, so it does not overlap memory that has no references.
        unsafe { core::ptr::copy_nonoverlapping(from, out.as_mut_ptr(), out.len()) };
        true
    }

    /// Copies `bytes` to `offset` on; false and nothing copied when they do not all fit.
    #[must_use]
    pub fn write_at(&self, offset: usize, bytes: &[u8]) -> bool {
        let Some(to) = self.at(offset, bytes.len()) else { return false };
        // SAFETY: `at` returned a pointer with `bytes.len()` bytes of the region behind it, which are writable.
        unsafe { copy_in(to, bytes) };
        true
    }

    /// The 64-bit word at `offset`, on which local and remote atomic operations agree; `None` when it is not
    /// inside or its address is not a multiple of 8.
    #[must_use]
    pub fn word(&self, offset: usize) -> Option<&AtomicU64> {
        let pointer = self.at(offset, 8)?.cast::<AtomicU64>();
        if !pointer.is_aligned() {
            return None;
        }
        // SAFETY: the pointer is aligned and has 8 bytes of the region behind it, which live as long as `self`.
        Some(unsafe { AtomicU64::from_ptr(pointer.cast()) })
    }

    /// Compares the word at `offset` with `compare` and stores `swap` when equal; tells the former value.
    pub fn compare_swap(&self, offset: usize, compare: u64, swap: u64) -> Option<u64> {
        let word = self.word(offset)?;
        Some(match word.compare_exchange(compare, swap, Ordering::AcqRel, Ordering::Acquire) {
            Ok(former) | Err(former) => former,
        })
    }

    /// Adds `add` to the word at `offset`, modulo 2^64; tells the former value.
    pub fn fetch_add(&self, offset: usize, add: u64) -> Option<u64> {
        Some(self.word(offset)?.fetch_add(add, Ordering::AcqRel))
    }

    /// Stores `value` in the word at `offset`; `None` where there is no such word.
    pub(super) fn store(&self, offset: usize, value: [u8; 8]) -> Option<()> {
        self.word(offset)?.store(u64::from_ne_bytes(value), Ordering::Release);
        Some(())
    }

    /// The `len` bytes from `offset` on, as a region of its own which names the same memory.
    pub(super) fn part(&self, offset: u64, len: u64) -> Option<Self> {
        let (offset, len) = (usize::try_from(offset).ok()?, usize::try_from(len).ok()?);
        let start = NonNull::new(self.at(offset, len)?)?;
        Some(Self { start, len, owner: self.owner.clone() })
    }

    /// The byte at `offset`, if `len` bytes from there on are inside.
    pub(super) fn at(&self, offset: usize, len: usize) -> Option<*mut u8> {
        if offset.checked_add(len)? > self.len {
            return None;
        }
        // SAFETY: `offset` is at most the length of the region, so the result is inside it or one past its end.
        Some(unsafe { self.start.as_ptr().add(offset) })
    }
}

/// Memory that a region owns.
#[derive(Debug)]
struct Owned {
    start: NonNull<u8>,
    layout: Layout,
}

impl Owned {
    fn new(layout: Layout) -> Option<Self> {
        // SAFETY: the size of the layout, which is one of `layout`, is not 0.
        let start = unsafe { alloc_zeroed(layout) };
        Some(Self { start: NonNull::new(start)?, layout })
    }
}

/// How a region of `len` bytes is allocated, which is never nothing; `None` when the address space does not hold it.
fn layout(len: usize) -> Option<Layout> {
    Layout::from_size_align(len.max(1), ALIGNMENT).ok()
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: `start` came from `alloc_zeroed` with this layout and is freed here only.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

// SAFETY: an owner of an allocation; the pointer is used only to free it.
unsafe impl Send for Owned {}
// SAFETY: as for Send; nothing is done through a shared reference.
unsafe impl Sync for Owned {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_was_written_and_nothing_outside() {
        let region = Region::alloc(100);
        assert!(region.write_at(97, b"abc"));
        assert!(!region.write_at(98, b"abc"), "one byte too many");
        assert!(!region.write_at(usize::MAX, b"a"), "the end wraps");
        let mut out = [0; 4];
        assert!(region.read_at(96, &mut out));
        assert_eq!(&out, b"\0abc");
        assert!(!region.read_at(97, &mut out));
        assert!(region.read_at(100, &mut []), "nothing at the very end is inside");
    }

    #[test]
    fn words_are_aligned_and_inside() {
        let region = Region::alloc(17);
        assert_eq!(region.fetch_add(8, 3), Some(0));
        assert_eq!(region.compare_swap(8, 3, 9), Some(3));
        assert_eq!(region.compare_swap(8, 3, 1), Some(9));
        assert!(region.word(4).is_none(), "misaligned");
        assert!(region.word(16).is_none(), "not all inside");
    }

    #[test]
    fn stored_bytes_keep_their_order() {
        let region = Region::alloc(16);
        assert_eq!(region.store(8, *b"in order"), Some(()));
        let mut out = [0; 8];
        assert!(region.read_at(8, &mut out));
        assert_eq!(&out, b"in order");
        assert!(region.store(9, [0; 8]).is_none(), "misaligned");
    }

    #[test]
    fn parts_are_inside_and_share_the_memory() {
        let region = Region::alloc(16);
        let part = region.part(4, 8).expect("inside");
        assert_eq!((part.addr(), part.len()), (region.addr() + 4, 8));
        assert!(region.part(16, 0).is_some_and(|part| part.is_empty()), "nothing at the very end");
        for (offset, len) in [(16, 1), (17, 0), (0, 17), (u64::MAX, 1), (1, u64::MAX)] {
            assert!(region.part(offset, len).is_none(), "{offset} {len}");
        }
        drop(region);
        assert!(part.write_at(0, b"lives on"));
    }

    #[test]
    fn memory_that_is_not_there_is_not_allocated() {
        assert!(Region::try_alloc(usize::MAX).is_none(), "no such layout");
        assert!(Region::try_alloc(isize::MAX as usize - ALIGNMENT).is_none(), "no such memory");
        assert!(Region::try_alloc(0).is_some_and(|region| region.is_empty()));
    }

    #[test]
    fn clones_share_the_memory() {
        let region = Region::alloc(8);
        let clone = region.clone();
        drop(region);
        assert_eq!(clone.fetch_add(0, 1), Some(0));
    }
}
