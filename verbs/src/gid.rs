//! GIDs: the addresses of RoCE.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use uroce_stack::wire::MacAddr;

use crate::error::ParseError;

/// A global identifier of 128 bits: on RoCEv2 an IPv6 address, or an IPv4 address as `::ffff:a.b.c.d`.
///
/// ```
/// use uroce::Gid;
/// let gid = Gid::from(std::net::Ipv4Addr::new(192, 0, 2, 1));
/// assert_eq!(gid.to_string(), "::ffff:192.0.2.1");
/// assert_eq!(gid.ip(), std::net::IpAddr::from([192, 0, 2, 1]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gid([u8; 16]);

impl Gid {
    /// The GID of these bytes, in network order.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes, in network order.
    #[must_use]
    pub const fn bytes(self) -> [u8; 16] {
        self.0
    }

    /// The IP address that it stands for: IPv4 when it is a mapped one.
    #[must_use]
    pub fn ip(self) -> IpAddr {
        IpAddr::V6(Ipv6Addr::from(self.0)).to_canonical()
    }

    /// The GID that every port has by default: link-local, with the MAC address as modified EUI-64.
    #[must_use]
    pub const fn link_local(mac: MacAddr) -> Self {
        let [a, b, c, d, e, f] = mac.0;
        Self([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
    }
}

impl From<IpAddr> for Gid {
    fn from(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(ip) => ip.into(),
            IpAddr::V6(ip) => ip.into(),
        }
    }
}

impl From<std::net::Ipv4Addr> for Gid {
    fn from(ip: std::net::Ipv4Addr) -> Self {
        Self(ip.to_ipv6_mapped().octets())
    }
}

impl From<Ipv6Addr> for Gid {
    fn from(ip: Ipv6Addr) -> Self {
        Self(ip.octets())
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ipv6Addr::from(self.0).fmt(f)
    }
}

impl fmt::Debug for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gid({self})")
    }
}

impl FromStr for Gid {
    type Err = ParseError;

    /// Reads an IPv4 or IPv6 address.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        text.parse::<IpAddr>().map(Self::from).map_err(|_| ParseError::gid(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_gid_is_modified_eui_64() {
        let gid = Gid::link_local(MacAddr([0x02, 0x11, 0x22, 0x33, 0x44, 0x55]));
        assert_eq!(gid.to_string(), "fe80::11:22ff:fe33:4455");
    }

    #[test]
    fn text_round_trips() {
        for text in ["::ffff:10.0.0.1", "fe80::1", "2001:db8::2"] {
            assert_eq!(text.parse::<Gid>().expect("a GID").to_string(), text);
        }
        assert!("10.0.0".parse::<Gid>().is_err());
    }
}
