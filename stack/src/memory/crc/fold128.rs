//! Copy and CRC, 16 bytes a step: AVX and PCLMULQDQ.

use core::arch::x86_64::*;
use core::array;

use super::Pass;
use super::fold::{DIVISOR, RECIPROCAL, factors};

/// The register after all bytes of `pass`.
#[target_feature(enable = "avx,pclmulqdq")]
pub(super) fn crc<const COPY: bool>(crc: u32, pass: &mut Pass<'_, COPY>) -> u32 {
    if pass.left() < 16 {
        return short(crc, pass);
    }
    let register = _mm_cvtsi32_si128(crc as i32);
    let lane = if pass.left() < 64 {
        _mm_xor_si128(pass.next(), register)
    } else {
        let [a, b, c, d] = pass.next_array();
        fold_64_bytes([_mm_xor_si128(a, register), b, c, d], pass)
    };
    finish(lane, pass)
}

/// Folds 64 bytes a round, and what they come to into 16.
#[inline]
#[target_feature(enable = "avx,pclmulqdq")]
fn fold_64_bytes<const COPY: bool>(mut lanes: [__m128i; 4], pass: &mut Pass<'_, COPY>) -> __m128i {
    let by_64 = constants(const { factors(64) });
    while pass.left() >= 64 {
        let next: [_; 4] = pass.next_array();
        lanes = array::from_fn(|at| fold(lanes[at], next[at], by_64));
    }
    merge(lanes)
}

/// Folds the first 48 of 64 bytes into the last 16.
#[inline]
#[target_feature(enable = "avx,pclmulqdq")]
pub(super) fn merge([a, b, c, d]: [__m128i; 4]) -> __m128i {
    let sum = fold(c, d, constants(const { factors(16) }));
    let sum = fold(b, sum, constants(const { factors(32) }));
    fold(a, sum, constants(const { factors(48) }))
}

/// The register, given 16 bytes that hold all before `pass`.
#[inline]
#[target_feature(enable = "avx,pclmulqdq")]
pub(super) fn finish<const COPY: bool>(mut lane: __m128i, pass: &mut Pass<'_, COPY>) -> u32 {
    let by_16 = constants(const { factors(16) });
    while pass.left() >= 16 {
        lane = fold(lane, pass.next(), by_16);
    }
    let len = pass.left();
    if len > 0 {
        let last = next_last(pass);
        let up = up_by(16 - len);
        let moved_out = _mm_shuffle_epi8(lane, up);
        let down = _mm_xor_si128(up, _mm_set1_epi8(-128));
        let kept = _mm_shuffle_epi8(lane, down);
        lane = fold(moved_out, _mm_or_si128(kept, _mm_shuffle_epi8(last, up)), by_16);
    }
    reduce(lane)
}

/// The register after fewer than 16 bytes.
#[inline]
#[target_feature(enable = "avx,pclmulqdq")]
fn short<const COPY: bool>(crc: u32, pass: &mut Pass<'_, COPY>) -> u32 {
    let len = pass.left();
    if len == 0 {
        return crc;
    }
    let first = _mm_xor_si128(next_last(pass), _mm_cvtsi32_si128(crc as i32));
    // Fewer than four bytes leave some of the register as it is.
    let untouched = u64::from(crc) >> (8 * len.min(4));
    reduce(_mm_shuffle_epi8(first, up_by(16 - len))) ^ untouched as u32
}

/// The remainder of 16 bytes: the first eight are folded into the next, then the quotient is multiplied back.
#[inline]
#[target_feature(enable = "avx,pclmulqdq")]
fn reduce(lane: __m128i) -> u32 {
    let by_16 = constants(const { factors(16) });
    let folded = _mm_xor_si128(_mm_clmulepi64_si128(lane, by_16, 0x10), _mm_srli_si128(lane, 8));
    let division = constants(const { (RECIPROCAL as i64, DIVISOR as i64) });
    let quotient = _mm_clmulepi64_si128(folded, division, 0x00);
    let product = _mm_clmulepi64_si128(quotient, division, 0x10);
    _mm_extract_epi32(_mm_xor_si128(folded, product), 2) as u32
}

/// `next` plus `lane` moved on by the distance the factors stand for.
#[inline]
#[target_feature(enable = "avx,pclmulqdq")]
fn fold(lane: __m128i, next: __m128i, factors: __m128i) -> __m128i {
    let first = _mm_clmulepi64_si128(lane, factors, 0x00);
    let second = _mm_clmulepi64_si128(lane, factors, 0x11);
    _mm_xor_si128(_mm_xor_si128(next, first), second)
}

#[inline]
#[target_feature(enable = "avx")]
fn constants((low, high): (i64, i64)) -> __m128i {
    _mm_set_epi64x(high, low)
}

/// Shuffle control: bytes move up by `count`, zeros come in below.
#[inline]
#[target_feature(enable = "avx")]
fn up_by(count: usize) -> __m128i {
    let indices = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _mm_sub_epi8(indices, _mm_set1_epi8(count as i8))
}

/// The last bytes, fewer than 16, and zeros.
#[inline]
#[target_feature(enable = "avx")]
fn next_last<const COPY: bool>(pass: &mut Pass<'_, COPY>) -> __m128i {
    let (low, high) = pass.next_below_16();
    _mm_set_epi64x(high as i64, low as i64)
}
