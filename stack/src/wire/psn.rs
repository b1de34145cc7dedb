//! Packet sequence numbers (protocol section 4.2).

use core::fmt;
use core::ops::Add;

/// A packet sequence number: 24 bits, wrapping.
///
/// Not ordered: of two numbers on a circle neither is the larger. Use [`Psn::distance`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Psn(u32);

impl Psn {
    /// How far ahead of another number one can be and still count as ahead: 2^23 - 1.
    pub const MAX_AHEAD: i32 = (1 << 23) - 1;

    const MASK: u32 = 0x00ff_ffff;

    /// The low 24 bits of `value`.
    pub const fn new(value: u32) -> Self {
        Self(value & Self::MASK)
    }

    /// The number, below 2^24.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The number `n` packets later.
    pub const fn add(self, n: u32) -> Self {
        Self::new(self.0.wrapping_add(n))
    }

    /// The number of the packet that follows.
    pub const fn next(self) -> Self {
        self.add(1)
    }

    /// The number of the packet before.
    pub const fn prev(self) -> Self {
        Self::new(self.0.wrapping_sub(1))
    }

    /// How many packets `self` lies after `from`: negative when it lies before, within
    /// -2^23 ..= [`Psn::MAX_AHEAD`].
    pub const fn distance(self, from: Self) -> i32 {
        // The shift puts the sign of the 24-bit difference where an i32 has it.
        (self.0.wrapping_sub(from.0) << 8).cast_signed() >> 8
    }
}

impl Add<u32> for Psn {
    type Output = Self;

    fn add(self, n: u32) -> Self {
        Self::add(self, n)
    }
}

impl fmt::Display for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#08x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn new_keeps_24_bits() {
        assert_eq!(Psn::new(0xff12_3456).get(), 0x12_3456);
        assert_eq!(Psn::new(u32::MAX).get(), 0xff_ffff);
    }

    #[test]
    fn arithmetic_wraps() {
        assert_eq!(Psn::new(0xff_ffff).next(), Psn::new(0));
        assert_eq!(Psn::new(0).prev(), Psn::new(0xff_ffff));
        assert_eq!(Psn::new(0xff_fffa) + 20, Psn::new(14));
        assert_eq!(Psn::new(5) + u32::MAX, Psn::new(4));
    }

    #[test]
    fn distance_is_signed_24_bit() {
        let from = Psn::new(0xff_fffe);
        assert_eq!(from.distance(from), 0);
        assert_eq!((from + 3).distance(from), 3);
        assert_eq!(from.distance(from + 3), -3);
        assert_eq!((from + 0x7f_ffff).distance(from), Psn::MAX_AHEAD);
        assert_eq!((from + 0x80_0000).distance(from), -0x80_0000);
    }

    #[test]
    fn displays_as_six_digits() {
        assert_eq!(format!("{}", Psn::new(0xabcd)), "0x00abcd");
    }
}
