//! The IP header that stands before a datagram in its receive, in the place of a global route header.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes that a receive of a UD queue pair needs before the payload (`sizeof(struct ibv_grh)`); they count in
/// [`Completion::byte_len`](crate::Completion::byte_len).
pub const BYTES: usize = 40;

/// Source and destination of an IPv6 header, or of an IPv4 header behind 20 bytes of zero.
pub(crate) fn addresses(header: &[u8; BYTES]) -> (IpAddr, IpAddr) {
    if header[0] >> 4 == 6 {
        let address = |at: usize| {
            let octets: [u8; 16] = std::array::from_fn(|index| header[at + index]);
            IpAddr::V6(Ipv6Addr::from(octets))
        };
        return (address(8), address(24));
    }
    let address =
        |at: usize| IpAddr::V4(Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]));
    (address(32), address(36))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_both_families_are_read() {
        let mut v4 = [0; BYTES];
        v4[20] = 0x45;
        v4[32..].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        let expected = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        assert_eq!(addresses(&v4), expected);
        let mut v6 = [0; BYTES];
        v6[0] = 0x60;
        (v6[8], v6[23], v6[24], v6[39]) = (0xfd, 1, 0xfd, 2);
        let (source, destination) = addresses(&v6);
        assert_eq!(
            (source.to_string(), destination.to_string()),
            ("fd00::1".to_owned(), "fd00::2".to_owned())
        );
    }
}
