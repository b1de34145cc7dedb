//! Queue pair numbers.

use core::fmt;

/// A queue pair number: 24 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Qpn(u32);

impl Qpn {
    /// The general services interface, where connection management datagrams arrive.
    pub const GSI: Self = Self(1);
    /// The destination of every multicast packet.
    pub const MULTICAST: Self = Self(0xff_ffff);

    /// The low 24 bits of `value`.
    pub const fn new(value: u32) -> Self {
        Self(value & 0x00ff_ffff)
    }

    /// The number, below 2^24.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Qpn {
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
        assert_eq!(Qpn::new(0x0100_0001), Qpn::GSI);
        assert_eq!(Qpn::new(u32::MAX), Qpn::MULTICAST);
    }

    #[test]
    fn displays_as_six_digits() {
        assert_eq!(format!("{}", Qpn::new(0x1f)), "0x00001f");
    }
}
