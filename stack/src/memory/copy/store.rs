//! Words, stored so that others see them in the order they were stored in.

/// A value that any bytes make.
///
/// # Safety
/// Every bit pattern must be valid, with no padding.
pub(super) unsafe trait Word: Copy {
    /// Stores the value in one piece; who sees it sees all stores before it.
    ///
    /// # Safety
    /// `at` must be writable and aligned.
    unsafe fn store(self, at: *mut Self);
}

pub(super) use order::Narrow;

/// The CPU shows stores in program order, and aligned ones in one piece (promised for 16 bytes, and what CPUs with
/// AVX2 do with 32: at once or the lower half first); volatile holds the compiler to the order.
#[cfg(target_arch = "x86_64")]
mod order {
    use core::arch::x86_64::{__m128i, __m256i};

    pub(in super::super) type Narrow = __m128i;

    macro_rules! words {
        ($($word:ty),+) => {
            $(
                // SAFETY: an integer, or a vector of integers.
                unsafe impl super::Word for $word {
                    #[inline(always)]
                    unsafe fn store(self, at: *mut Self) {
                        // SAFETY: the caller vouches for `at`.
                        unsafe { at.write_volatile(self) };
                    }
                }
            )+
        };
    }

    words!(u8, u16, u32, u64, __m128i, __m256i);
}

/// Elsewhere each store has to say that it comes after those before it.
#[cfg(not(target_arch = "x86_64"))]
mod order {
    use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

    pub(in super::super) type Narrow = u64;

    macro_rules! words {
        ($($word:ty as $atomic:ty),+) => {
            $(
                // SAFETY: an integer.
                unsafe impl super::Word for $word {
                    #[inline(always)]
                    unsafe fn store(self, at: *mut Self) {
                        // SAFETY: the caller vouches for `at`.
                        let at = unsafe { <$atomic>::from_ptr(at) };
                        at.store(self, Ordering::Release);
                    }
                }
            )+
        };
    }

    words!(u8 as AtomicU8, u16 as AtomicU16, u32 as AtomicU32, u64 as AtomicU64);
}
