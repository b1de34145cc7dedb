//! Bulk copy to and from memory that others may read and write meanwhile.

mod store;
#[cfg(test)]
mod tests;

use super::Crc;
use super::crc::Pass;
use store::{Widest, Word};

/// Copies `src` into `dst`, reading each byte once, and runs `crc` over what was written.
///
/// Others may write `src` meanwhile; then any mix of old and new bytes is copied, and the CRC is that of the mix.
///
/// # Safety
/// `src..src + dst.len()` must be readable and must not overlap `dst`.
#[inline]
pub unsafe fn copy_out(dst: &mut [u8], src: *const u8, crc: Crc) -> Crc {
    // SAFETY: the caller vouches for `src`; `dst` outlives the pass.
    let mut pass = unsafe { Pass::copying(dst, src) };
    crc.over(&mut pass)
}

/// Copies `src` into memory that others may read or write; bytes land in address order: who sees one of them sees
/// all before it.
///
/// # Safety
/// `dst..dst + src.len()` must be writable and must not overlap `src`.
#[inline]
pub unsafe fn copy_in(dst: *mut u8, src: &[u8]) {
    Landing { dst, src }.all();
}

/// Bytes still to be written to `dst`.
///
/// Always: `dst..dst + src.len()` is writable. Every store is aligned, so that the CPU makes none in two parts.
struct Landing<'a> {
    dst: *mut u8,
    src: &'a [u8],
}

impl Landing<'_> {
    #[inline]
    fn all(mut self) {
        self.align::<u8>();
        self.align::<u16>();
        self.align::<u32>();
        if size_of::<Widest>() > size_of::<u64>() {
            self.align::<u64>();
        }
        while self.src.len() >= 4 * size_of::<Widest>() {
            for _ in 0..4 {
                self.land::<Widest>();
            }
        }
        while self.src.len() >= size_of::<Widest>() {
            self.land::<Widest>();
        }
        self.rest::<u64>();
        self.rest::<u32>();
        self.rest::<u16>();
        self.rest::<u8>();
    }

    /// Lands a `W` if `dst` is aligned to it and not to the next wider.
    #[inline]
    fn align<W: Word>(&mut self) {
        if self.dst.addr() & size_of::<W>() != 0 && self.src.len() >= size_of::<W>() {
            self.land::<W>();
        }
    }

    /// Lands a `W` if that many bytes are left.
    #[inline]
    fn rest<W: Word>(&mut self) {
        if self.src.len() >= size_of::<W>() {
            self.land::<W>();
        }
    }

    /// Lands a `W`; that many bytes must be left and `dst` be aligned to it.
    #[inline]
    fn land<W: Word>(&mut self) {
        let (now, later) = self.src.split_at(size_of::<W>());
        // SAFETY: `now` is as long as a `W`; any bits are one; the read needs no alignment.
        let word = unsafe { now.as_ptr().cast::<W>().read_unaligned() };
        debug_assert!(self.dst.cast::<W>().is_aligned());
        // SAFETY: `dst` is writable for as long as `src` was, and aligned.
        unsafe { word.store(self.dst.cast()) };
        self.dst = self.dst.wrapping_add(size_of::<W>());
        self.src = later;
    }
}
