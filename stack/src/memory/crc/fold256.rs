//! Copy and CRC, 32 bytes a step: AVX2 and VPCLMULQDQ.

use core::arch::x86_64::*;
use core::array;

use super::fold::factors;
use super::{Pass, fold128, sparse};

/// The register after all bytes of `pass`.
#[target_feature(enable = "avx2,vpclmulqdq")]
pub(super) fn crc<const COPY: bool>(crc: u32, pass: &mut Pass<'_, COPY>) -> u32 {
    if pass.left() < 64 {
        return fold128::crc(crc, pass);
    }
    let register = _mm256_zextsi128_si256(_mm_cvtsi32_si128(crc as i32));
    let mut pair = if pass.left() < 256 {
        let [a, b] = pass.next_array();
        [_mm256_xor_si256(a, register), b]
    } else {
        let lanes = if COPY || pass.left() < sparse::LEN {
            let [a, b, c, d] = pass.next_array();
            [_mm256_xor_si256(a, register), b, c, d]
        } else {
            sparse::fold_block(register, pass.next_block())
        };
        fold_128_bytes(lanes, pass)
    };
    let by_64 = constants(const { factors(64) });
    while pass.left() >= 64 {
        let next: [_; 2] = pass.next_array();
        pair = array::from_fn(|at| fold(pair[at], next[at], by_64));
    }
    fold128::finish(fold128::merge(quarters(pair)), pass)
}

/// Folds 128 bytes a round, and what they come to into 64.
#[inline]
#[target_feature(enable = "avx2,vpclmulqdq")]
fn fold_128_bytes<const COPY: bool>(mut lanes: [__m256i; 4], pass: &mut Pass<'_, COPY>) -> [__m256i; 2] {
    let by_128 = constants(const { factors(128) });
    while pass.left() >= 128 {
        let next: [_; 4] = pass.next_array();
        lanes = array::from_fn(|at| fold(lanes[at], next[at], by_128));
    }
    let [a, b, c, d] = lanes;
    let by_64 = constants(const { factors(64) });
    [fold(a, c, by_64), fold(b, d, by_64)]
}

/// `next` plus `lanes` moved on by the distance the factors stand for.
#[inline]
#[target_feature(enable = "avx2,vpclmulqdq")]
pub(super) fn fold(lanes: __m256i, next: __m256i, factors: __m256i) -> __m256i {
    let first = _mm256_clmulepi64_epi128(lanes, factors, 0x00);
    let second = _mm256_clmulepi64_epi128(lanes, factors, 0x11);
    _mm256_xor_si256(_mm256_xor_si256(next, first), second)
}

#[inline]
#[target_feature(enable = "avx2")]
fn quarters([a, b]: [__m256i; 2]) -> [__m128i; 4] {
    [
        _mm256_castsi256_si128(a),
        _mm256_extracti128_si256(a, 1),
        _mm256_castsi256_si128(b),
        _mm256_extracti128_si256(b, 1),
    ]
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn constants((low, high): (i64, i64)) -> __m256i {
    _mm256_set_epi64x(high, low, high, low)
}
