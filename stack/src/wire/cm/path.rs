//! A path as REQ describes it: primary and alternate look the same.

use super::fields::{bytes_at, gid, gid_at, put};
use crate::wire::bytes::{be16, be32};
use core::net::IpAddr;

/// One of the two paths in a REQ. All zero is no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CmPath {
    /// The sender's LID; 0xFFFF over RoCE.
    pub local_lid: u16,
    /// The receiver's LID; 0xFFFF over RoCE.
    pub remote_lid: u16,
    /// The sender's GID, which over RoCE is its address.
    pub local_gid: IpAddr,
    /// The receiver's GID.
    pub remote_gid: IpAddr,
    /// 20 bits.
    pub flow_label: u32,
    /// Packet rate code, 6 bits; 0 says nothing.
    pub packet_rate: u8,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Hop limit or TTL.
    pub hop_limit: u8,
    /// Service level, 4 bits.
    pub sl: u8,
    /// Whether both ends are in one subnet.
    pub subnet_local: bool,
    /// The sender's ACK timeout exponent, 5 bits: 4.096 us * 2^n.
    pub ack_timeout: u8,
}

impl CmPath {
    /// Length on the wire in bytes.
    pub const LEN: usize = 44;

    /// The LID of whoever has none.
    pub const PERMISSIVE_LID: u16 = 0xffff;

    /// No path.
    pub const NONE: Self = Self {
        local_lid: 0,
        remote_lid: 0,
        local_gid: IpAddr::V6(core::net::Ipv6Addr::UNSPECIFIED),
        remote_gid: IpAddr::V6(core::net::Ipv6Addr::UNSPECIFIED),
        flow_label: 0,
        packet_rate: 0,
        traffic_class: 0,
        hop_limit: 0,
        sl: 0,
        subnet_local: false,
        ack_timeout: 0,
    };

    /// Whether it is one: without a LID it is not (IBTA volume 1, 12.6.5).
    #[must_use]
    pub const fn is_present(&self) -> bool {
        self.local_lid != 0
    }

    pub(super) fn parse(bytes: &[u8; Self::LEN]) -> Self {
        Self {
            local_lid: be16(bytes, 0),
            remote_lid: be16(bytes, 2),
            local_gid: gid_at(bytes, 4),
            remote_gid: gid_at(bytes, 20),
            flow_label: be32(bytes, 36) >> 12,
            packet_rate: bytes[39] & 0x3f,
            traffic_class: bytes[40],
            hop_limit: bytes[41],
            sl: bytes[42] >> 4,
            subnet_local: bytes[42] & 8 != 0,
            ack_timeout: bytes[43] >> 3,
        }
    }

    pub(super) fn emit(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        put(&mut bytes, 0, &self.local_lid.to_be_bytes());
        put(&mut bytes, 2, &self.remote_lid.to_be_bytes());
        put(&mut bytes, 4, &gid(self.local_gid));
        put(&mut bytes, 20, &gid(self.remote_gid));
        put(&mut bytes, 36, &(self.flow_label << 12).to_be_bytes());
        bytes[39] = self.packet_rate & 0x3f;
        bytes[40] = self.traffic_class;
        bytes[41] = self.hop_limit;
        bytes[42] = self.sl << 4 | u8::from(self.subnet_local) << 3;
        bytes[43] = self.ack_timeout << 3;
        bytes
    }

    pub(super) fn at(bytes: &[u8], at: usize) -> Self {
        Self::parse(&bytes_at(bytes, at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips() {
        let path = CmPath {
            local_lid: CmPath::PERMISSIVE_LID,
            remote_lid: 2,
            local_gid: "10.1.0.2".parse().unwrap(),
            remote_gid: "fe80::1".parse().unwrap(),
            flow_label: 0x6_c51f,
            packet_rate: 7,
            traffic_class: 0xc2,
            hop_limit: 64,
            sl: 5,
            subnet_local: true,
            ack_timeout: 17,
        };
        assert_eq!(CmPath::parse(&path.emit()), path);
        assert!(path.is_present());
    }

    #[test]
    fn nothing_is_no_path() {
        assert_eq!(CmPath::NONE.emit(), [0; CmPath::LEN]);
        assert_eq!(CmPath::parse(&[0; CmPath::LEN]), CmPath::NONE);
        assert!(!CmPath::NONE.is_present());
    }
}
