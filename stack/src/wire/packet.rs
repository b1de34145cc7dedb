//! A received packet.

use super::bytes::Reader;
use super::emit::{Transport, emit_padded};
use super::ip::IpPacket;
use super::link::Link;
use super::{
    Bth, Class, Ip, MacAddr, Malformed, Opcode, Operation, Pad, Payload, Service, Template, VlanTag,
};
use crate::memory::Crc;
use core::convert::Infallible;

/// A packet that passed every check that needs no queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Who the frame is for.
    pub destination_mac: MacAddr,
    /// Who sent the frame.
    pub source_mac: MacAddr,
    /// The 802.1Q tag.
    pub vlan: Option<VlanTag>,
    /// IP addresses and what else the IP header says.
    pub ip: Ip,
    /// UDP source port: any value (case C09).
    pub source_port: u16,
    /// UDP checksum as it came; 0 is usual, and it is never checked.
    pub udp_checksum: u16,
    /// What kind of packet.
    pub opcode: Opcode,
    /// Its service, with the header of the service.
    pub class: Class,
    /// The base transport header.
    pub bth: Bth,
    /// What it asks or answers.
    pub operation: Operation,
    /// The payload.
    pub payload: Payload<'a>,
    /// What pads the payload.
    pub pad: Pad,
    /// The IP header as it came, 20 or 40 bytes: a datagram hands it to its receiver.
    pub ip_header: &'a [u8],
}

impl<'a> Packet<'a> {
    /// The packet in a frame that begins with its Ethernet header and has no frame check sequence. A frame
    /// may lie in two buffers; its headers lie in the first.
    ///
    /// The length is what UDP says: bytes behind are ignored. The IPv4 header checksum and the ICRC are
    /// verified, the UDP checksum is not.
    ///
    /// # Errors
    ///
    /// Why it is no packet.
    pub fn parse(head: &'a [u8], rest: &'a [u8]) -> Result<Self, Malformed> {
        let link = Link::parse(head)?;
        let ip = IpPacket::parse(link.is_v4, link.payload, rest)?;
        let headers = TransportHeaders::parse(&ip)?;
        ip.check_icrc()?;
        let mut reader = Reader(headers.extended);
        let class = Class::parse(headers.opcode, &mut reader).ok_or(Malformed::HeadersTruncated)?;
        let operation = Operation::parse(headers.opcode, &mut reader).ok_or(Malformed::HeadersTruncated)?;
        Ok(Self {
            destination_mac: link.destination,
            source_mac: link.source,
            vlan: link.vlan,
            ip: ip.fields(),
            source_port: ip.udp().source_port(),
            udp_checksum: ip.udp().checksum(),
            opcode: headers.opcode,
            class,
            bth: Bth::parse(headers.base),
            operation,
            payload: headers.payload,
            pad: Pad::from_pieces(headers.pad),
            ip_header: ip.header(),
        })
    }

    /// Writes the packet again, byte for byte as it came, but for the reserved bits of extended headers,
    /// which are zero. Returns the length of the frame in bytes.
    ///
    /// # Panics
    ///
    /// When `frame` is too short, or the addresses are of different IP versions, which no parsed packet's are.
    pub fn emit(&self, frame: &mut [u8]) -> usize {
        let template =
            Template::build(self.source_mac, self.destination_mac, self.vlan, &self.ip, self.source_port)
                .expect("a parsed packet has addresses of one version");
        let Self { bth, opcode, class, operation, pad, payload, .. } = self;
        let transport = Transport { bth, opcode: *opcode, class, operation, pad: pad.as_slice() };
        let fill = |out: &mut [u8], crc: Crc| {
            payload.copy_to(out);
            Ok::<_, Infallible>(crc.update(out))
        };
        let Ok(len) = emit_padded(frame, &template, self.ip.ident, &transport, payload.len(), fill);
        // The ICRC does not cover it.
        frame[template.len() - 2..template.len()].copy_from_slice(&self.udp_checksum.to_be_bytes());
        len
    }
}

/// The transport part of a packet, its lengths checked.
struct TransportHeaders<'a> {
    opcode: Opcode,
    base: &'a [u8; Bth::LEN],
    /// Headers behind the base transport header.
    extended: &'a [u8],
    payload: Payload<'a>,
    pad: Payload<'a>,
}

impl<'a> TransportHeaders<'a> {
    #[inline(always)]
    fn parse(ip: &IpPacket<'a>) -> Result<Self, Malformed> {
        let (frame, place) = ip.transport();
        let (base, _) = frame.head[place.start..].split_first_chunk().ok_or(Malformed::HeadersSplit)?;
        let opcode = parse_opcode(base)?;
        let payload_len = payload_len(place.len(), opcode, Bth::pad_count(base))?;
        let headers_end = place.start + opcode.header_len();
        let payload_end = headers_end + payload_len;
        Ok(Self {
            opcode,
            base,
            extended: frame.head.get(place.start + Bth::LEN..headers_end).ok_or(Malformed::HeadersSplit)?,
            payload: frame.range(headers_end..payload_end).ok_or(Malformed::Truncated)?,
            pad: frame.range(payload_end..place.end).ok_or(Malformed::Truncated)?,
        })
    }
}

/// The opcode, before any arithmetic with lengths that depend on it (case C05).
#[inline(always)]
fn parse_opcode(base: &[u8; Bth::LEN]) -> Result<Opcode, Malformed> {
    let opcode = Opcode::parse(base[0]).ok_or(Malformed::UnknownOpcode)?;
    if opcode.service() == Service::Rd {
        return Err(Malformed::UnsupportedService);
    }
    if Bth::version(base) == 0 { Ok(opcode) } else { Err(Malformed::TransportVersion) }
}

/// What `transport_len` bytes leave for payload beside headers and pad bytes (case C06).
#[inline(always)]
fn payload_len(transport_len: usize, opcode: Opcode, pad: usize) -> Result<usize, Malformed> {
    let behind = transport_len.checked_sub(opcode.header_len()).ok_or(Malformed::HeadersTruncated)?;
    if behind > 0 && !opcode.carries_payload() {
        return Err(Malformed::UnexpectedPayload);
    }
    behind.checked_sub(pad).ok_or(Malformed::PadTruncated)
}

#[cfg(test)]
mod tests;
