//! Copying in address order.

use super::store::{Narrow, Word};

/// Bytes still to be written to `dst`.
///
/// Always: `dst..dst + src.len()` is writable. Every store is aligned, so that the CPU makes none in two parts.
pub(super) struct Landing<'a> {
    dst: *mut u8,
    src: &'a [u8],
}

impl<'a> Landing<'a> {
    /// Nothing is written yet.
    ///
    /// # Safety
    /// `dst..dst + src.len()` must be writable for `'a` and must not overlap `src`.
    #[inline]
    pub(super) unsafe fn new(dst: *mut u8, src: &'a [u8]) -> Self {
        Self { dst, src }
    }

    /// Writes them, by words that any CPU of the architecture has.
    #[inline]
    pub(super) fn narrow(self) {
        self.all::<Narrow>();
    }

    /// Writes them, 32 a store.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    pub(super) fn wide(self) {
        self.all::<core::arch::x86_64::__m256i>();
    }

    /// Writes them, most as `W`: what comes before an aligned address by ever wider words, what is left at the end
    /// by ever narrower ones.
    #[inline(always)]
    fn all<W: Word>(self) {
        // A copy that no store through `dst` can be thought to change, so that it stays in registers.
        let mut rest = Self { ..self };
        rest.until_aligned::<u8, W>();
        rest.until_aligned::<u16, W>();
        rest.until_aligned::<u32, W>();
        rest.until_aligned::<u64, W>();
        rest.until_aligned::<Narrow, W>();
        while rest.lands::<W>() {}
        rest.lands::<Narrow>();
        rest.lands::<u64>();
        rest.lands::<u32>();
        rest.lands::<u16>();
        rest.lands::<u8>();
    }

    /// Writes one `V`, narrower than `W`, if `dst` is not yet aligned to more.
    #[inline(always)]
    fn until_aligned<V: Word, W: Word>(&mut self) {
        if size_of::<V>() < size_of::<W>() && self.dst.addr() & size_of::<V>() != 0 {
            self.lands::<V>();
        }
    }

    /// Writes one `V` if that many bytes are left.
    ///
    /// `dst` is aligned to it then: if it is not after `until_aligned`, fewer bytes than that are left.
    #[inline(always)]
    fn lands<V: Word>(&mut self) -> bool {
        let Some((now, later)) = self.src.split_at_checked(size_of::<V>()) else { return false };
        // SAFETY: `now` is as long as a `V`; any bits are one; the read needs no alignment.
        let word = unsafe { now.as_ptr().cast::<V>().read_unaligned() };
        debug_assert!(self.dst.cast::<V>().is_aligned());
        // SAFETY: `dst` is writable for as long as `src` was, and aligned.
        unsafe { word.store(self.dst.cast()) };
        self.dst = self.dst.wrapping_add(size_of::<V>());
        self.src = later;
        true
    }
}
