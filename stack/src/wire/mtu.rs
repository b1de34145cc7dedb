//! Path MTUs (protocol sections 1.3 and 4.1).

use core::fmt;

/// A path MTU: how many payload bytes a packet carries at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mtu {
    /// 256 bytes.
    B256 = 1,
    /// 512 bytes.
    B512 = 2,
    /// 1024 bytes, what a link MTU of 1500 gives.
    B1024 = 3,
    /// 2048 bytes.
    B2048 = 4,
    /// 4096 bytes.
    B4096 = 5,
}

impl Mtu {
    /// Every path MTU, smallest first.
    pub const ALL: [Self; 5] = [Self::B256, Self::B512, Self::B1024, Self::B2048, Self::B4096];

    /// What headers take of a link MTU at most, by the rule rxe uses.
    const HEADROOM: u32 = 80;

    /// The MTU in bytes.
    pub const fn bytes(self) -> usize {
        128 << self.code()
    }

    /// The code of the verbs and of the connection manager, 1..=5.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The MTU of exactly `bytes` bytes.
    pub fn from_bytes(bytes: usize) -> Option<Self> {
        Self::ALL.into_iter().find(|mtu| mtu.bytes() == bytes)
    }

    /// The MTU of a verbs code.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|mtu| mtu.code() == code)
    }

    /// The largest MTU that a link of `link_mtu` bytes carries (the MTU of the network interface), or `None`
    /// when not even 256 bytes fit.
    pub fn for_link(link_mtu: u32) -> Option<Self> {
        let room = link_mtu.checked_sub(Self::HEADROOM)? as usize;
        Self::ALL.into_iter().rev().find(|mtu| mtu.bytes() <= room)
    }
}

impl fmt::Display for Mtu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_codes_round_trip() {
        for mtu in Mtu::ALL {
            assert_eq!(Mtu::from_bytes(mtu.bytes()), Some(mtu));
            assert_eq!(Mtu::from_code(mtu.code()), Some(mtu));
        }
        assert_eq!(Mtu::ALL.map(Mtu::bytes), [256, 512, 1024, 2048, 4096]);
        assert_eq!((Mtu::from_code(0), Mtu::from_code(6)), (None, None));
        assert_eq!((Mtu::from_bytes(0), Mtu::from_bytes(1500)), (None, None));
    }

    #[test]
    fn link_mtu_decides_the_path_mtu() {
        assert_eq!(Mtu::for_link(1500), Some(Mtu::B1024));
        assert_eq!(Mtu::for_link(4200), Some(Mtu::B4096));
        assert_eq!(Mtu::for_link(4176), Some(Mtu::B4096));
        assert_eq!(Mtu::for_link(4175), Some(Mtu::B2048));
        assert_eq!(Mtu::for_link(9000), Some(Mtu::B4096));
        assert_eq!(Mtu::for_link(336), Some(Mtu::B256));
        assert_eq!((Mtu::for_link(335), Mtu::for_link(0)), (None, None));
    }
}
