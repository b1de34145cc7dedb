//! The constants of folding, derived from the polynomial.
//!
//! Bits are reflected, as the CRC has them: a register's least significant bit is the coefficient of the highest
//! power. A message is a polynomial, its CRC the remainder of that times x^32, and a multiple of the polynomial may
//! be added at will. So 64 bits may be moved `distance` bits on in the message by multiplying them with
//! x^distance mod P: that is folding, and one carry-less multiplication does it.

/// x^32 + x^26 + ... + 1 without its highest power.
const POLYNOMIAL: u32 = 0xEDB8_8320;

/// All 33 coefficients of the polynomial.
pub(super) const DIVISOR: u64 = (POLYNOMIAL as u64) << 1 | 1;

/// Multiplied with `DIVISOR` it is 1 modulo 2^64 (carry-less): its product with the 64 highest coefficients is their
/// quotient.
pub(super) const RECIPROCAL: u64 = reciprocal();

/// The factors that move 16 bytes on by `bytes` bytes: of the first eight, and of the second.
pub(super) const fn factors(bytes: u32) -> (i64, i64) {
    (power(8 * bytes + 32), power(8 * bytes - 32))
}

/// x^exponent mod P, as a factor: one bit up, since the product of two reflected numbers comes out one bit low.
pub(super) const fn power(exponent: u32) -> i64 {
    let mut remainder = 1 << 31;
    let mut left = exponent;
    while left > 0 {
        remainder = (remainder >> 1) ^ if remainder & 1 == 1 { POLYNOMIAL } else { 0 };
        left -= 1;
    }
    (remainder as i64) << 1
}

/// The quotient of 1 and `DIVISOR`, bit by bit.
const fn reciprocal() -> u64 {
    let (mut quotient, mut rest) = (0, 1u64);
    while rest != 0 {
        let bit = rest & rest.wrapping_neg();
        quotient |= bit;
        rest ^= DIVISOR.wrapping_mul(bit);
    }
    quotient
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The polynomial as the standard prints it, highest power first.
    const PRINTED: u128 = 0x1_04C1_1DB7;

    fn remainder(mut dividend: u128, divisor: u128) -> u128 {
        while dividend >> 32 != 0 {
            dividend ^= divisor << (95 - dividend.leading_zeros());
        }
        dividend
    }

    fn multiply(a: u64, b: u64) -> u128 {
        (0..64).filter(|bit| b >> bit & 1 == 1).fold(0, |sum, bit| sum ^ u128::from(a) << bit)
    }

    #[test]
    fn the_divisor_is_the_reflected_polynomial() {
        assert_eq!(u128::from(DIVISOR), PRINTED.reverse_bits() >> 95);
    }

    #[test]
    fn a_power_is_the_remainder_of_long_division() {
        let mut expected = 1;
        for exponent in 0..5000 {
            assert_eq!(power(exponent), i64::from((expected as u32).reverse_bits()) << 1, "x^{exponent}");
            expected = remainder(expected << 1, PRINTED);
        }
    }

    #[test]
    fn the_reciprocal_divides() {
        assert_eq!(multiply(RECIPROCAL, DIVISOR) as u64, 1);
    }
}
