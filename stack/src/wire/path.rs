//! The way to a peer.

use super::{MacAddr, VlanTag};
use core::net::IpAddr;

/// All that stands before the transport header of a packet and stays the same for a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Our interface.
    pub source_mac: MacAddr,
    /// The next hop: the peer, or the gateway to it.
    pub destination_mac: MacAddr,
    /// Tag of the VLAN the addresses belong to.
    pub vlan: Option<VlanTag>,
    /// Our address; of the same IP version as `destination`.
    pub source: IpAddr,
    /// The peer's address.
    pub destination: IpAddr,
    /// UDP source port; see [`super::source_port`].
    pub source_port: u16,
    /// DSCP in bits 7:2, ECN in bits 1:0.
    pub traffic_class: u8,
    /// Hop limit or TTL, at least 1; 64 is usual.
    pub hop_limit: u8,
    /// 20 bits, IPv6 only.
    pub flow_label: u32,
}

/// A path that no packet can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// One address is IPv4 and the other IPv6.
    #[error(
        "source {from} and destination {to} are of different IP versions, so no packet can carry both: \
         use addresses of one version, and for IPv4 the plain form instead of ::ffff:a.b.c.d"
    )]
    Versions {
        /// Our address.
        from: IpAddr,
        /// The peer's address.
        to: IpAddr,
    },
}
