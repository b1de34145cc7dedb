//! Copy and CRC, 32 bytes a step: AVX2 and VPCLMULQDQ.

use core::arch::x86_64::*;

use super::fold::factors;
use super::{Pass, fold128};

/// Below this the wider loop does not repay its setting up.
const WORTHWHILE: usize = 256;

/// The register after all bytes of `pass`.
#[target_feature(enable = "avx2,vpclmulqdq")]
pub(super) fn crc<const COPY: bool>(crc: u32, pass: &mut Pass<'_, COPY>) -> u32 {
    if pass.left() < WORTHWHILE {
        return fold128::crc(crc, pass);
    }
    let [a, b, c, d] = pass.next_four();
    let register = _mm256_zextsi128_si256(_mm_cvtsi32_si128(crc as i32));
    let lanes = fold_all([_mm256_xor_si256(a, register), b, c, d], pass);
    let lanes = fold128::fold_all(halve(lanes), pass);
    fold128::finish(fold128::merge(lanes), pass)
}

/// Folds 128 bytes a round; fewer stay for the caller.
#[inline]
#[target_feature(enable = "avx2,vpclmulqdq")]
fn fold_all<const COPY: bool>(mut lanes: [__m256i; 4], pass: &mut Pass<'_, COPY>) -> [__m256i; 4] {
    let by_128 = constants(const { factors(128) });
    while pass.left() >= 128 {
        let [a, b, c, d] = pass.next_four();
        lanes = [
            fold(lanes[0], a, by_128),
            fold(lanes[1], b, by_128),
            fold(lanes[2], c, by_128),
            fold(lanes[3], d, by_128),
        ];
    }
    lanes
}

/// Folds the first 64 bytes into the second, and hands these out by 16.
#[inline]
#[target_feature(enable = "avx2,vpclmulqdq")]
fn halve([a, b, c, d]: [__m256i; 4]) -> [__m128i; 4] {
    let by_64 = constants(const { factors(64) });
    let (first, second) = (fold(a, c, by_64), fold(b, d, by_64));
    [
        _mm256_castsi256_si128(first),
        _mm256_extracti128_si256(first, 1),
        _mm256_castsi256_si128(second),
        _mm256_extracti128_si256(second, 1),
    ]
}

/// `next` plus `lanes` moved on by the distance the factors stand for.
#[inline]
#[target_feature(enable = "avx2,vpclmulqdq")]
fn fold(lanes: __m256i, next: __m256i, factors: __m256i) -> __m256i {
    let first = _mm256_clmulepi64_epi128(lanes, factors, 0x00);
    let second = _mm256_clmulepi64_epi128(lanes, factors, 0x11);
    _mm256_xor_si256(_mm256_xor_si256(next, first), second)
}

#[inline]
#[target_feature(enable = "avx2")]
fn constants((low, high): (i64, i64)) -> __m256i {
    _mm256_set_epi64x(high, low, high, low)
}
