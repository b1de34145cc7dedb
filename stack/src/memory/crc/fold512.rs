//! Copy and CRC, 64 bytes a step: AVX-512 and VPCLMULQDQ.

use core::arch::x86_64::*;
use core::array;

use super::fold::factors;
use super::{Pass, fold128};

/// The register after all bytes of `pass`.
#[target_feature(enable = "avx512f,vpclmulqdq")]
pub(super) fn crc<const COPY: bool>(crc: u32, pass: &mut Pass<'_, COPY>) -> u32 {
    if pass.left() < 64 {
        return fold128::crc(crc, pass);
    }
    let register = _mm512_zextsi128_si512(_mm_cvtsi32_si128(crc as i32));
    let mut lanes = if pass.left() < 512 {
        _mm512_xor_si512(pass.next(), register)
    } else {
        let [a, b, c, d] = pass.next_array();
        fold_256_bytes([_mm512_xor_si512(a, register), b, c, d], pass)
    };
    let by_64 = constants(const { factors(64) });
    while pass.left() >= 64 {
        lanes = fold(lanes, pass.next(), by_64);
    }
    fold128::finish(fold128::merge(quarters(lanes)), pass)
}

/// Folds 256 bytes a round, and what they come to into 64.
#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
fn fold_256_bytes<const COPY: bool>(mut lanes: [__m512i; 4], pass: &mut Pass<'_, COPY>) -> __m512i {
    let by_256 = constants(const { factors(256) });
    while pass.left() >= 256 {
        let next: [_; 4] = pass.next_array();
        lanes = array::from_fn(|at| fold(lanes[at], next[at], by_256));
    }
    let [a, b, c, d] = lanes;
    let by_128 = constants(const { factors(128) });
    fold(fold(a, c, by_128), fold(b, d, by_128), constants(const { factors(64) }))
}

/// `next` plus `lanes` moved on by the distance the factors stand for.
#[inline]
#[target_feature(enable = "avx512f,vpclmulqdq")]
fn fold(lanes: __m512i, next: __m512i, factors: __m512i) -> __m512i {
    let first = _mm512_clmulepi64_epi128(lanes, factors, 0x00);
    let second = _mm512_clmulepi64_epi128(lanes, factors, 0x11);
    _mm512_xor_si512(_mm512_xor_si512(next, first), second)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn quarters(lanes: __m512i) -> [__m128i; 4] {
    [
        _mm512_castsi512_si128(lanes),
        _mm512_extracti32x4_epi32(lanes, 1),
        _mm512_extracti32x4_epi32(lanes, 2),
        _mm512_extracti32x4_epi32(lanes, 3),
    ]
}

#[inline]
#[target_feature(enable = "avx512f")]
fn constants((low, high): (i64, i64)) -> __m512i {
    _mm512_set_epi64(high, low, high, low, high, low, high, low)
}
