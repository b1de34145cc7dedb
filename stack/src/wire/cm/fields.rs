//! Fields of message bodies, at the offsets of their format.

use crate::wire::MadHeader;
use crate::wire::bytes::be32;
use crate::wire::mad::MAD_LEN;
use core::net::{IpAddr, Ipv6Addr};

/// What follows the header of a management datagram.
pub(super) type Body = [u8; MAD_LEN - MadHeader::LEN];

/// The `N` bytes at `at`; the formats are constant, so they are there.
pub(super) fn bytes_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut taken = [0; N];
    taken.copy_from_slice(&bytes[at..at + N]);
    taken
}

pub(super) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// The low 24 bits of `value`.
pub(super) fn put24(bytes: &mut [u8], at: usize, value: u32) {
    put(bytes, at, &value.to_be_bytes()[1..]);
}

/// The two identifiers that most messages begin with: the sender's, the receiver's.
pub(super) fn comm_ids(body: &Body) -> (u32, u32) {
    (be32(body, 0), be32(body, 4))
}

pub(super) fn put_comm_ids(body: &mut Body, local: u32, remote: u32) {
    put(body, 0, &local.to_be_bytes());
    put(body, 4, &remote.to_be_bytes());
}

/// The address that a GID of RoCEv2 is (protocol section 6.8); every GID is exactly one.
pub(super) fn gid_at(bytes: &[u8], at: usize) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from(bytes_at::<16>(bytes, at))).to_canonical()
}

/// The GID of an address: an IPv4 address in its IPv6-mapped form.
#[must_use]
pub fn gid(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_and_its_gid_are_the_same() {
        for text in ["10.1.0.2", "fe80::1", "::", "2001:db8::7"] {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(gid_at(&gid(address), 0), address);
        }
        assert_eq!(gid("10.1.0.2".parse().unwrap())[10..], [0xff, 0xff, 10, 1, 0, 2]);
    }
}
