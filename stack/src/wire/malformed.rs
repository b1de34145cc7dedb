//! Why a frame is no packet.

/// Why a frame was refused, one variant a reason. Nothing is ever sent in answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Malformed {
    /// The frame ends inside the Ethernet, IP or UDP header.
    #[error("the frame ends inside the Ethernet, IP or UDP header")]
    TooShort,
    /// Not IP, not UDP, or another UDP port: the frame is for somebody else.
    #[error("not UDP to port 4791")]
    NotRoce,
    /// The IP version or header length is one that no IP header of this EtherType has.
    #[error("the IP version or header length does not fit the EtherType")]
    IpVersion,
    /// IPv4 options, which the ICRC is not defined over.
    #[error("the IPv4 header has options")]
    IpOptions,
    /// The IPv4 header checksum is wrong.
    #[error("the IPv4 header checksum is wrong")]
    IpChecksum,
    /// The IP length has no room for a UDP header.
    #[error("the IP length leaves no room for a UDP header")]
    IpLength,
    /// A fragment; RoCEv2 packets are never fragmented.
    #[error("an IPv4 fragment")]
    Fragment,
    /// An IPv6 extension header before UDP.
    #[error("an IPv6 extension header")]
    Ipv6Extension,
    /// The frame ends before the IP length says.
    #[error("the frame is shorter than its IP length")]
    Truncated,
    /// The UDP length is larger than the IP payload or has no room for a transport header and the ICRC.
    #[error("the UDP length does not fit")]
    UdpLength,
    /// The headers reach into the second buffer.
    #[error("the headers do not lie in one buffer")]
    HeadersSplit,
    /// No such opcode.
    #[error("an unknown opcode")]
    UnknownOpcode,
    /// An opcode of reliable datagrams, which nobody implements. Hardware uses these codes for a transport of
    /// its own, with other headers, so they must not be read as what they say.
    #[error("an opcode of reliable datagrams or of a vendor's transport")]
    UnsupportedService,
    /// The transport version is not 0.
    #[error("a transport version other than 0")]
    TransportVersion,
    /// No room for the extended headers of the opcode.
    #[error("no room for the extended headers of the opcode")]
    HeadersTruncated,
    /// The pad count is larger than what follows the headers.
    #[error("the pad count exceeds the payload")]
    PadTruncated,
    /// Bytes behind the headers of an opcode that carries no payload.
    #[error("payload behind an opcode that carries none")]
    UnexpectedPayload,
    /// The invariant CRC is wrong.
    #[error("the ICRC is wrong")]
    Icrc,
}

impl Malformed {
    /// Every reason, in the order of declaration.
    pub const ALL: &'static [Self] = &[
        Self::TooShort,
        Self::NotRoce,
        Self::IpVersion,
        Self::IpOptions,
        Self::IpChecksum,
        Self::IpLength,
        Self::Fragment,
        Self::Ipv6Extension,
        Self::Truncated,
        Self::UdpLength,
        Self::HeadersSplit,
        Self::UnknownOpcode,
        Self::UnsupportedService,
        Self::TransportVersion,
        Self::HeadersTruncated,
        Self::PadTruncated,
        Self::UnexpectedPayload,
        Self::Icrc,
    ];

    /// The name of the counter for this reason.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooShort => "too_short",
            Self::NotRoce => "not_roce",
            Self::IpVersion => "ip_version",
            Self::IpOptions => "ip_options",
            Self::IpChecksum => "ip_checksum",
            Self::IpLength => "ip_length",
            Self::Fragment => "fragment",
            Self::Ipv6Extension => "ipv6_extension",
            Self::Truncated => "truncated",
            Self::UdpLength => "udp_length",
            Self::HeadersSplit => "headers_split",
            Self::UnknownOpcode => "unknown_opcode",
            Self::UnsupportedService => "unsupported_service",
            Self::TransportVersion => "transport_version",
            Self::HeadersTruncated => "headers_truncated",
            Self::PadTruncated => "pad_truncated",
            Self::UnexpectedPayload => "unexpected_payload",
            Self::Icrc => "icrc",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn all_is_in_order_and_names_differ() {
        for (index, &reason) in Malformed::ALL.iter().enumerate() {
            assert_eq!(reason as usize, index);
        }
        let names: HashSet<_> = Malformed::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), Malformed::ALL.len());
        assert_eq!(Malformed::Icrc as usize + 1, Malformed::ALL.len());
    }
}
