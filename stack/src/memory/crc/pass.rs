//! One pass over bytes: the only place where a CRC loop touches memory.
//!
//! The source of a copying pass is registered memory, which the application may write at any moment. Rust calls a
//! plain read that races with a write undefined, and has no bulk read that is both fast and exempt. The usual answer,
//! followed here, is a copy that assumes nothing about the bytes: there is no reference to them, any value will do,
//! and each is read exactly once, so that what was written and what the CRC covers agree, whichever value it was.
//! The reads are volatile because a compiler may repeat a plain one.

use core::marker::PhantomData;
use core::{array, ptr, slice};

/// Bytes still to go: read from `src` and, if `COPY`, written to `dst`.
///
/// Always: `src..src + left` is readable and, if `COPY`, `dst..dst + left` is writable by us alone.
pub(crate) struct Pass<'a, const COPY: bool> {
    src: *const u8,
    dst: *mut u8,
    left: usize,
    bytes: PhantomData<&'a mut [u8]>,
}

impl<'a> Pass<'a, false> {
    /// A pass that only reads.
    #[inline]
    pub(crate) fn reading(bytes: &'a [u8]) -> Self {
        Self { src: bytes.as_ptr(), dst: ptr::null_mut(), left: bytes.len(), bytes: PhantomData }
    }
}

impl<'a> Pass<'a, true> {
    /// A pass that fills `dst`.
    ///
    /// # Safety
    /// `src..src + dst.len()` must be readable for `'a` and must not overlap `dst`.
    #[inline]
    pub(crate) unsafe fn copying(dst: &'a mut [u8], src: *const u8) -> Self {
        Self { src, dst: dst.as_mut_ptr(), left: dst.len(), bytes: PhantomData }
    }
}

impl<'a, const COPY: bool> Pass<'a, COPY> {
    /// Bytes still to go.
    #[inline]
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// The next bytes as a value; at least its size must be left.
    #[inline(always)]
    pub(super) fn next<V: Bits>(&mut self) -> V {
        let (src, dst) = self.advance(size_of::<V>());
        // SAFETY: `advance` vouches for the bytes; the packed wrapper needs no alignment; any bits are a `V`.
        let Unaligned(value) = unsafe { src.cast::<Unaligned<V>>().read_volatile() };
        if COPY {
            // SAFETY: `advance` vouches for the bytes.
            unsafe { dst.cast::<V>().write_unaligned(value) };
        }
        value
    }

    /// The next bytes as so many values; at least their size must be left.
    #[inline(always)]
    pub(super) fn next_array<V: Bits, const N: usize>(&mut self) -> [V; N] {
        assert!(size_of::<[V; N]>() <= self.left);
        array::from_fn(|_| self.next())
    }

    /// The last bytes, fewer than 16, as a little-endian number of two halves, low first.
    #[inline(always)]
    pub(super) fn next_below_16(&mut self) -> (u64, u64) {
        let first = if self.left & 8 != 0 { Some(self.next::<u64>().to_le()) } else { None };
        let rest = self.next_below_8();
        first.map_or((rest, 0), |low| (low, rest))
    }

    /// The last bytes, fewer than eight, as a little-endian number.
    #[inline(always)]
    fn next_below_8(&mut self) -> u64 {
        let (mut number, mut at) = (0, 0);
        if self.left & 4 != 0 {
            number = u64::from(self.next::<u32>().to_le());
            at = 32;
        }
        if self.left & 2 != 0 {
            number |= u64::from(self.next::<u16>().to_le()) << at;
            at += 16;
        }
        if self.left & 1 != 0 {
            number |= u64::from(self.next::<u8>()) << at;
        }
        number
    }

    /// The next `N` bytes, as they are after the copying; at least as many must be left.
    #[inline(always)]
    pub(super) fn next_block<const N: usize>(&mut self) -> &'a [u8; N] {
        self.next_slice(N).first_chunk().expect("as many bytes are left")
    }

    /// The next `max` bytes or what is left, as they are after the copying.
    pub(super) fn next_slice(&mut self, max: usize) -> &'a [u8] {
        let len = self.left.min(max);
        let (src, dst) = self.advance(len);
        if COPY {
            // SAFETY: `advance` vouches for `len` bytes of each; `copying` for no overlap.
            unsafe { ptr::copy_nonoverlapping(src, dst, len) };
        }
        let at = if COPY { dst.cast_const() } else { src };
        // SAFETY: `at` lies in a slice borrowed for `'a` (`dst` or `bytes`) and no pass goes over it again.
        unsafe { slice::from_raw_parts(at, len) }
    }

    /// Steps over `len` bytes and says where they are.
    #[inline(always)]
    fn advance(&mut self, len: usize) -> (*const u8, *mut u8) {
        assert!(len <= self.left);
        let at = (self.src, self.dst);
        self.src = self.src.wrapping_add(len);
        self.dst = self.dst.wrapping_add(len);
        self.left -= len;
        at
    }
}

#[derive(Clone, Copy)]
#[repr(C, packed)]
struct Unaligned<V>(V);

/// A value that any bytes make.
///
/// # Safety
/// Every bit pattern must be valid, with no padding.
pub(super) unsafe trait Bits: Copy {}

macro_rules! bits {
    ($($name:ty),+) => {
        $(
            // SAFETY: an integer, or a vector of integers.
            unsafe impl Bits for $name {}
        )+
    };
}

bits!(u8, u16, u32, u64);
#[cfg(target_arch = "x86_64")]
bits!(core::arch::x86_64::__m128i, core::arch::x86_64::__m256i, core::arch::x86_64::__m512i);
