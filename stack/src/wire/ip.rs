//! IP and UDP header, as far as a RoCEv2 endpoint looks at them (protocol section 1.1).

use super::template::{fold, sum_words};
use super::{Bth, Malformed, Payload, ROCE_PORT, icrc};
use crate::memory::Crc;
use core::net::IpAddr;
use core::ops::Range;
use etherparse::err::{ipv4, ipv6};
use etherparse::{IpNumber, Ipv4HeaderSlice, Ipv6HeaderSlice, UdpHeaderSlice};

/// The fields of an IPv4 or IPv6 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip {
    /// Sender; of the same version as `destination`.
    pub source: IpAddr,
    /// Receiver.
    pub destination: IpAddr,
    /// DSCP in bits 7:2, ECN in bits 1:0.
    pub traffic_class: u8,
    /// TTL of IPv4.
    pub hop_limit: u8,
    /// 20 bits; 0 for IPv4.
    pub flow_label: u32,
    /// Identification; 0 for IPv6.
    pub ident: u16,
    /// Do not fragment; false for IPv6, where nobody fragments on the way.
    pub dont_fragment: bool,
    /// The reserved flag of IPv4, ignored on receipt.
    pub reserved_flag: bool,
}

const UDP_LEN: usize = 8;
const ICRC_LEN: usize = 4;

/// The operation of a FLUSH in its opcode, and all of its transport headers in bytes.
const FLUSH: u8 = 0x1c;
const FLUSH_LEN: usize = icrc::FLUSH_LEN;

/// The shortest UDP packet with a transport header and an ICRC.
const MIN_UDP_LEN: usize = UDP_LEN + Bth::LEN + ICRC_LEN;

/// A UDP datagram to the port of RoCEv2, its lengths checked.
pub(super) struct IpPacket<'a> {
    header: Header<'a>,
    udp: UdpHeaderSlice<'a>,
    /// The frame from the IP header on.
    frame: Payload<'a>,
    /// Where in `frame` the ICRC begins.
    icrc_at: usize,
}

#[derive(Clone, Copy)]
enum Header<'a> {
    V4(Ipv4HeaderSlice<'a>),
    V6(Ipv6HeaderSlice<'a>),
}

impl<'a> IpPacket<'a> {
    /// `head` begins with the IP header.
    #[inline(always)]
    pub(super) fn parse(v4: bool, head: &'a [u8], rest: &'a [u8]) -> Result<Self, Malformed> {
        let frame = Payload { head, rest };
        let (header, udp) = if v4 { parse_v4(frame)? } else { parse_v6(frame)? };
        // Both are what IP says of UDP and what follows.
        let payload_len = match header {
            Header::V4(header) => usize::from(header.total_len()).checked_sub(header.slice().len()),
            Header::V6(header) => Some(usize::from(header.payload_length())),
        };
        let payload_len = payload_len.filter(|&len| len >= UDP_LEN).ok_or(Malformed::IpLength)?;
        let header_len = header.bytes().len();
        if header_len + payload_len > frame.len() {
            return Err(Malformed::Truncated);
        }
        let udp_len = usize::from(udp.length());
        if !(MIN_UDP_LEN..=payload_len).contains(&udp_len) {
            return Err(Malformed::UdpLength);
        }
        Ok(Self { header, udp, frame, icrc_at: header_len + udp_len - ICRC_LEN })
    }

    /// The IP header as it came.
    #[inline(always)]
    pub(super) fn header(&self) -> &'a [u8] {
        self.header.bytes()
    }

    #[inline(always)]
    pub(super) fn udp(&self) -> &UdpHeaderSlice<'a> {
        &self.udp
    }

    /// From the base transport header to the last byte before the ICRC: the frame, and where in it.
    #[inline(always)]
    pub(super) fn transport(&self) -> (Payload<'a>, Range<usize>) {
        (self.frame, self.header().len() + UDP_LEN..self.icrc_at)
    }

    /// Compares the ICRC of the packet to what it ought to be (protocol section 3).
    #[inline(always)]
    pub(super) fn check_icrc(&self) -> Result<(), Malformed> {
        let crc = self.covered_crc().ok_or(Malformed::HeadersSplit)?;
        let wire = self.frame.range(self.icrc_at..self.icrc_at + ICRC_LEN).ok_or(Malformed::Truncated)?;
        let wire = u32::from_le_bytes(wire.to_array());
        if crc.finish() == wire || self.is_doubled_flush(crc, wire) { Ok(()) } else { Err(Malformed::Icrc) }
    }

    /// Whether this is a FLUSH of `rdma_rxe` (see [`double_icrc`](super::double_icrc)).
    #[cold]
    fn is_doubled_flush(&self, crc: Crc, wire: u32) -> bool {
        let headers = self.transport().1;
        let Some(headers) = self.frame.head.get(headers).filter(|headers| headers.len() == FLUSH_LEN) else {
            return false;
        };
        headers[0] & 0x1f == FLUSH && crc.update(headers).finish() == wire
    }

    #[inline(always)]
    fn covered_crc(&self) -> Option<Crc> {
        let covered = self.frame.range(0..self.icrc_at)?;
        let (crc, behind) = match self.header {
            Header::V4(_) => {
                covered.head.split_first_chunk().map(|(b, behind)| (icrc::v4_headers(b), behind))?
            }
            Header::V6(_) => {
                covered.head.split_first_chunk().map(|(b, behind)| (icrc::v6_headers(b), behind))?
            }
        };
        let crc = if behind.is_empty() { crc } else { crc.update(behind) };
        Some(if covered.rest.is_empty() { crc } else { crc.update(covered.rest) })
    }

    /// What the IP header says.
    #[inline(always)]
    pub(super) fn fields(&self) -> Ip {
        match self.header {
            Header::V4(header) => Ip {
                source: IpAddr::V4(header.source_addr()),
                destination: IpAddr::V4(header.destination_addr()),
                traffic_class: header.slice()[1],
                hop_limit: header.ttl(),
                flow_label: 0,
                ident: header.identification(),
                dont_fragment: header.dont_fragment(),
                reserved_flag: header.slice()[6] & 0x80 != 0,
            },
            Header::V6(header) => Ip {
                source: IpAddr::V6(header.source_addr()),
                destination: IpAddr::V6(header.destination_addr()),
                traffic_class: header.traffic_class(),
                hop_limit: header.hop_limit(),
                flow_label: header.flow_label().value(),
                ident: 0,
                dont_fragment: false,
                reserved_flag: false,
            },
        }
    }
}

impl<'a> Header<'a> {
    #[inline(always)]
    fn bytes(&self) -> &'a [u8] {
        match self {
            Self::V4(header) => header.slice(),
            Self::V6(header) => header.slice(),
        }
    }
}

#[inline(always)]
fn parse_v4(frame: Payload<'_>) -> Result<(Header<'_>, UdpHeaderSlice<'_>), Malformed> {
    let header = Ipv4HeaderSlice::from_slice(frame.head).map_err(|error| match error {
        ipv4::HeaderSliceError::Len(_) => cut_short(frame),
        ipv4::HeaderSliceError::Content(_) => Malformed::IpVersion,
    })?;
    if header.protocol() != IpNumber::UDP {
        return Err(Malformed::NotRoce);
    }
    if header.fragments_offset().value() != 0 {
        // Only the first fragment could tell which port it is for.
        return Err(Malformed::Fragment);
    }
    let udp = udp_header(frame, header.slice().len())?;
    check_v4(&header)?;
    Ok((Header::V4(header), udp))
}

/// What RoCEv2 asks of an IPv4 header beyond being one (cases X01, X02).
#[inline(always)]
fn check_v4(header: &Ipv4HeaderSlice<'_>) -> Result<(), Malformed> {
    if header.more_fragments() {
        return Err(Malformed::Fragment);
    }
    let Ok(bytes) = header.slice().try_into() else { return Err(Malformed::IpOptions) };
    if fold(sum_words(bytes)) == 0xffff { Ok(()) } else { Err(Malformed::IpChecksum) }
}

#[inline(always)]
fn parse_v6(frame: Payload<'_>) -> Result<(Header<'_>, UdpHeaderSlice<'_>), Malformed> {
    let header = Ipv6HeaderSlice::from_slice(frame.head).map_err(|error| match error {
        ipv6::HeaderSliceError::Len(_) => cut_short(frame),
        ipv6::HeaderSliceError::Content(_) => Malformed::IpVersion,
    })?;
    match header.next_header() {
        IpNumber::UDP => {}
        other if other.is_ipv6_ext_header_value() => return Err(Malformed::Ipv6Extension),
        _ => return Err(Malformed::NotRoce),
    }
    let udp = udp_header(frame, header.slice().len())?;
    Ok((Header::V6(header), udp))
}

/// The UDP header at `at`, if it is to the port of RoCEv2.
#[inline(always)]
fn udp_header(frame: Payload<'_>, at: usize) -> Result<UdpHeaderSlice<'_>, Malformed> {
    let udp = UdpHeaderSlice::from_slice(&frame.head[at..]).map_err(|_| cut_short(frame))?;
    if udp.destination_port() == ROCE_PORT { Ok(udp) } else { Err(Malformed::NotRoce) }
}

/// Headers that the first buffer does not hold: cut off, or gone on in the second.
#[cold]
fn cut_short(frame: Payload<'_>) -> Malformed {
    if frame.rest.is_empty() { Malformed::TooShort } else { Malformed::HeadersSplit }
}
