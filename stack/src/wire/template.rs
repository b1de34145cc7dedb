//! The bytes before the transport header, made once per path.

use super::icrc::{FieldDelta, V4_MASK, V6_MASK};
use super::{Ip, MacAddr, Path, PathError, ROCE_PORT, VlanTag};
use crate::memory::Crc;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use etherparse::{
    EtherType, Ethernet2Header, IpDscp, IpEcn, IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header,
    SingleVlanHeader, UdpHeader, VlanId, VlanPcp,
};

/// Ethernet, VLAN tag, IPv6 and UDP: the longest there is.
pub(super) const MAX_LEN: usize = 14 + 4 + 40 + UDP_LEN;

const UDP_LEN: usize = 8;

/// Everything before the base transport header, ready to copy: built once per path.
///
/// Per packet, only lengths, identification and IPv4 checksum are patched; the ICRC continues from a state
/// kept here.
#[derive(Clone, Copy, Debug)]
pub struct Template {
    bytes: [u8; MAX_LEN],
    len: u8,
    /// Where the IP header begins.
    ip_at: u8,
    v4: bool,
    /// Sum of the 16-bit words of the IPv4 header, lengths and identification zero.
    sum: u32,
    /// Behind the masked IP and UDP header, lengths and identification zero.
    crc: Crc,
}

/// The CRC behind IP and UDP header: a register, and the bits to flip in it.
///
/// Flipping bits of the register is the same as flipping them in the four bytes that come next.
pub(super) struct Prefix {
    pub(super) crc: Crc,
    pub(super) flip: u32,
}

impl Template {
    /// The template of `path`.
    ///
    /// # Errors
    ///
    /// [`PathError::Versions`] when one address is IPv4 and the other IPv6.
    pub fn new(path: &Path) -> Result<Self, PathError> {
        let ip = Ip {
            source: path.source,
            destination: path.destination,
            traffic_class: path.traffic_class,
            hop_limit: path.hop_limit,
            flow_label: path.flow_label,
            ident: 0,
            // Receivers in hardware do not reassemble, so packets must not be fragmented.
            dont_fragment: true,
            reserved_flag: false,
        };
        Self::build(path.source_mac, path.destination_mac, path.vlan, &ip, path.source_port)
    }

    /// Length in bytes: how far into the frame the base transport header begins.
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    pub(super) fn build(
        source_mac: MacAddr,
        destination_mac: MacAddr,
        vlan: Option<VlanTag>,
        ip: &Ip,
        source_port: u16,
    ) -> Result<Self, PathError> {
        let mut builder = Builder { bytes: [0; MAX_LEN], len: 0 };
        let v4 = ip.destination.is_ipv4();
        let ether_type = if v4 { EtherType::IPV4 } else { EtherType::IPV6 };
        builder.put_link(source_mac, destination_mac, vlan, ether_type);
        let ip_at = builder.len;
        match (ip.source, ip.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => builder.put_v4(ip, source, destination),
            (IpAddr::V6(source), IpAddr::V6(destination)) => builder.put_v6(ip, source, destination),
            (from, to) => return Err(PathError::Versions { from, to }),
        }
        let udp = UdpHeader { source_port, destination_port: ROCE_PORT, length: 0, checksum: 0 };
        builder.put(&udp.to_bytes());
        Ok(builder.finish(ip_at, v4))
    }

    /// Writes the headers into `frame`, which has room for them, for a UDP payload of `udp_payload` bytes.
    #[inline(always)]
    pub(super) fn emit(&self, frame: &mut [u8], ident: u16, udp_payload: usize) -> Prefix {
        let len = self.len();
        debug_assert!(udp_payload <= 0xffff - 28, "no IP packet has room for {udp_payload} bytes");
        let udp_len = (udp_payload + UDP_LEN) as u16;
        copy_headers(frame, &self.bytes, len);
        frame[len - 4..len - 2].copy_from_slice(&udp_len.to_be_bytes());
        let ip = &mut frame[usize::from(self.ip_at)..len];
        let flip = if self.v4 { self.patch_v4(ip, ident, udp_len) } else { patch_v6(ip, udp_len) };
        Prefix { crc: self.crc, flip }
    }

    #[inline(always)]
    fn patch_v4(&self, ip: &mut [u8], ident: u16, udp_len: u16) -> u32 {
        let total = udp_len + 20;
        ip[2..4].copy_from_slice(&total.to_be_bytes());
        ip[4..6].copy_from_slice(&ident.to_be_bytes());
        let sum = fold(self.sum + u32::from(total) + u32::from(ident));
        ip[10..12].copy_from_slice(&(!sum).to_be_bytes());
        V4_TOTAL.of(total) ^ V4_IDENT.of(ident) ^ UDP_LENGTH.of(udp_len)
    }
}

/// Bytes of IP and UDP header that follow each patched field.
static V4_TOTAL: FieldDelta = FieldDelta::new(28 - 4);
static V4_IDENT: FieldDelta = FieldDelta::new(28 - 6);
static UDP_LENGTH: FieldDelta = FieldDelta::new(2);
/// The IPv6 payload length and the UDP length are the same number.
static V6_LENGTHS: FieldDelta = FieldDelta::twice(48 - 6, 2);

#[inline(always)]
fn patch_v6(ip: &mut [u8], udp_len: u16) -> u32 {
    ip[4..6].copy_from_slice(&udp_len.to_be_bytes());
    V6_LENGTHS.of(udp_len)
}

/// Copies all of `bytes` where there is room, which is cheaper than copying `len` of them: the transport
/// header overwrites what is too much.
#[inline(always)]
fn copy_headers(frame: &mut [u8], bytes: &[u8; MAX_LEN], len: usize) {
    match frame.first_chunk_mut() {
        Some(start) => *start = *bytes,
        None => frame[..len].copy_from_slice(&bytes[..len]),
    }
}

/// One's complement sum of two bytes from a sum of few.
#[inline(always)]
pub(super) fn fold(sum: u32) -> u16 {
    let once = (sum >> 16) + (sum & 0xffff);
    ((once >> 16) + (once & 0xffff)) as u16
}

/// Sum of the 16-bit words of an IPv4 header.
#[inline(always)]
pub(super) fn sum_words(header: &[u8; 20]) -> u32 {
    let sum: u64 = header.as_chunks::<4>().0.iter().map(|&words| u64::from(u32::from_be_bytes(words))).sum();
    // Adding the halves does not change a one's complement sum.
    let halves = (sum >> 32) + (sum & 0xffff_ffff);
    (halves >> 16) as u32 + (halves & 0xffff) as u32
}

struct Builder {
    bytes: [u8; MAX_LEN],
    len: usize,
}

impl Builder {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    fn put_link(
        &mut self,
        source: MacAddr,
        destination: MacAddr,
        vlan: Option<VlanTag>,
        ether_type: EtherType,
    ) {
        let outer = if vlan.is_some() { EtherType::VLAN_TAGGED_FRAME } else { ether_type };
        let header = Ethernet2Header { source: source.0, destination: destination.0, ether_type: outer };
        self.put(&header.to_bytes());
        if let Some(tag) = vlan {
            let header = SingleVlanHeader {
                pcp: VlanPcp::try_new(tag.pcp & 7).unwrap_or_default(),
                drop_eligible_indicator: tag.dei,
                vlan_id: VlanId::try_new(tag.id & 0xfff).unwrap_or_default(),
                ether_type,
            };
            self.put(&header.to_bytes());
        }
    }

    fn put_v4(&mut self, ip: &Ip, source: Ipv4Addr, destination: Ipv4Addr) {
        let header = Ipv4Header {
            dscp: IpDscp::try_new(ip.traffic_class >> 2).unwrap_or_default(),
            ecn: IpEcn::try_new(ip.traffic_class & 3).unwrap_or_default(),
            dont_fragment: ip.dont_fragment,
            time_to_live: ip.hop_limit,
            protocol: IpNumber::UDP,
            source: source.octets(),
            destination: destination.octets(),
            ..Ipv4Header::default()
        };
        let mut bytes = header.to_bytes();
        bytes[6] |= u8::from(ip.reserved_flag) << 7;
        // Lengths, identification and checksum belong to a packet, not to the path.
        for field in [2..6, 10..12] {
            bytes[field].fill(0);
        }
        self.put(&bytes);
    }

    fn put_v6(&mut self, ip: &Ip, source: Ipv6Addr, destination: Ipv6Addr) {
        let header = Ipv6Header {
            traffic_class: ip.traffic_class,
            flow_label: Ipv6FlowLabel::try_new(ip.flow_label & 0xf_ffff).unwrap_or_default(),
            payload_length: 0,
            next_header: IpNumber::UDP,
            hop_limit: ip.hop_limit,
            source: source.octets(),
            destination: destination.octets(),
        };
        self.put(&header.to_bytes());
    }

    fn finish(self, ip_at: usize, v4: bool) -> Template {
        let mask: &[u8] = if v4 { &V4_MASK } else { &V6_MASK };
        let headers = &self.bytes[ip_at..self.len];
        let sum = headers.first_chunk().map_or(0, sum_words);
        let mut crc = Crc::ICRC_PREFIX;
        for (byte, mask) in headers.iter().zip(mask) {
            crc = crc.update(&[byte | mask]);
        }
        Template { bytes: self.bytes, len: self.len as u8, ip_at: ip_at as u8, v4, sum, crc }
    }
}
