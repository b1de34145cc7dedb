//! The IP CM header: who the active side is in terms of IP (protocol section 6.5; IBTA annex A11).

use super::PrivateData;
use super::fields::{bytes_at, put};
use crate::wire::bytes::be16;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What private data of REQ and SIDR_REQ begins with when the service is one of `rdma_cm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpCmHeader {
    /// Port of the active side. The passive side's is in the service identifier.
    pub source_port: u16,
    /// Address of the active side; of the same IP version as `destination`.
    pub source: IpAddr,
    /// Address of the passive side.
    pub destination: IpAddr,
}

impl IpCmHeader {
    /// Length on the wire in bytes.
    pub const LEN: usize = 36;

    /// The header at the start of `data`; `None` when it is of another version or of no version of IP.
    #[must_use]
    pub fn parse<const N: usize>(data: &PrivateData<N>) -> Option<Self> {
        let bytes: &[u8; Self::LEN] = data.as_bytes().first_chunk()?;
        if bytes[0] != 0 {
            return None;
        }
        let address: fn(&[u8; Self::LEN], usize) -> IpAddr = match bytes[1] >> 4 {
            4 => |bytes, at| Ipv4Addr::from(bytes_at::<4>(bytes, at + 12)).into(),
            6 => |bytes, at| Ipv6Addr::from(bytes_at::<16>(bytes, at)).into(),
            _ => return None,
        };
        Some(Self { source_port: be16(bytes, 2), source: address(bytes, 4), destination: address(bytes, 20) })
    }

    /// The header, and behind it `data`; `None` when that is longer than what is left of `N` bytes.
    #[must_use]
    pub fn emit<const N: usize>(&self, data: &[u8]) -> Option<PrivateData<N>> {
        let mut bytes = [0; N];
        let (header, behind) = bytes.split_at_mut_checked(Self::LEN)?;
        header[1] = if self.source.is_ipv4() { 0x40 } else { 0x60 };
        put(header, 2, &self.source_port.to_be_bytes());
        put(header, 4, &padded(self.source));
        put(header, 20, &padded(self.destination));
        behind.get_mut(..data.len())?.copy_from_slice(data);
        Some(bytes.into())
    }
}

/// An IPv4 address fills the last four bytes.
fn padded(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_compatible().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(source: &str, destination: &str) -> IpCmHeader {
        let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
        IpCmHeader { source_port: 0xb9b4, source, destination }
    }

    #[test]
    fn round_trips() {
        for header in [header("10.1.0.2", "10.1.0.1"), header("fe80::1", "::ffff:1.2.3.4")] {
            let data = header.emit::<92>(b"hello").unwrap();
            assert_eq!(IpCmHeader::parse(&data), Some(header));
            assert_eq!(data.as_bytes()[36..41], *b"hello");
        }
    }

    #[test]
    fn bytes_are_those_of_linux() {
        let data = header("10.1.0.2", "10.1.0.1").emit::<92>(&[]).unwrap();
        assert_eq!(data.as_bytes()[..4], [0, 0x40, 0xb9, 0xb4]);
        assert_eq!(
            (&data.as_bytes()[16..20], &data.as_bytes()[32..36]),
            (&[10, 1, 0, 2][..], &[10, 1, 0, 1][..])
        );
    }

    #[test]
    fn other_versions_and_too_much_data_are_refused() {
        let good = *header("10.1.0.2", "10.1.0.1").emit::<92>(&[]).unwrap().as_bytes();
        for (at, value) in [(0, 0x10), (0, 0x01), (1, 0x00), (1, 0x50), (1, 0x04)] {
            let mut bytes = good;
            bytes[at] = value;
            assert_eq!(IpCmHeader::parse(&PrivateData::from(bytes)), None);
        }
        assert_eq!(header("1.1.1.1", "1.1.1.2").emit::<92>(&[0; 57]), None);
        assert_eq!(header("1.1.1.1", "1.1.1.2").emit::<8>(&[]), None);
    }
}
