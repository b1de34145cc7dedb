//! Frames of one flow, as a RoCEv2 endpoint sends them.

use std::net::IpAddr;

use super::VethPair;
use crate::ROCE_PORT;

/// What the frames of a flow from the left end of a [`VethPair`] to its right end have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// IPv6, not IPv4.
    pub v6: bool,
    /// With a tag of VLAN 5, priority 3.
    pub vlan: bool,
    /// UDP source port.
    pub port: u16,
}

impl Flow {
    /// A frame with a UDP payload of `payload` bytes that depends on `number`, as the IPv4 identification does, by its
    /// low 16 bits. The UDP checksum is zero.
    pub fn frame(&self, number: u32, payload: usize) -> Vec<u8> {
        let mut frame = [VethPair::RIGHT_MAC, VethPair::LEFT_MAC].concat();
        if self.vlan {
            frame.extend([0x81, 0x00, 0x60, 0x05]);
        }
        let datagram = (payload + 8) as u16;
        match self.v6 {
            true => put_v6(&mut frame, datagram),
            false => put_v4(&mut frame, datagram, number as u16),
        }
        for half in [self.port, ROCE_PORT, datagram, 0] {
            frame.extend(half.to_be_bytes());
        }
        frame.extend((0..payload as u32).map(|at| (at.wrapping_mul(7) ^ number.wrapping_mul(at + 3)) as u8));
        frame
    }
}

fn put_v4(frame: &mut Vec<u8>, datagram: u16, ident: u16) {
    let start = frame.len() + 2;
    frame.extend([0x08, 0x00, 0x45, 0]);
    frame.extend((datagram + 20).to_be_bytes());
    frame.extend(ident.to_be_bytes());
    frame.extend([0x40, 0, 64, 17, 0, 0]);
    put_addresses(frame, VethPair::LEFT_V4, VethPair::RIGHT_V4);
    let sum = !ones_sum(&frame[start..]);
    frame[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
}

fn put_v6(frame: &mut Vec<u8>, datagram: u16) {
    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
    frame.extend(datagram.to_be_bytes());
    frame.extend([17, 64]);
    put_addresses(frame, VethPair::LEFT_V6, VethPair::RIGHT_V6);
}

fn put_addresses(frame: &mut Vec<u8>, from: IpAddr, to: IpAddr) {
    for address in [from, to] {
        match address {
            IpAddr::V4(v4) => frame.extend(v4.octets()),
            IpAddr::V6(v6) => frame.extend(v6.octets()),
        }
    }
}

/// Takes the UDP checksum of a [`Flow`]'s frame out. Whether it was right: zero, or complete, or begun with addresses,
/// protocol and length and left to the interface, as a veth pair leaves it for ever.
pub fn take_udp_checksum(frame: &mut [u8]) -> bool {
    let ip = if frame[12..14] == [0x81, 0x00] { 18 } else { 14 };
    let (addresses, udp) =
        if frame[ip] >> 4 == 4 { (ip + 12..ip + 20, ip + 20) } else { (ip + 8..ip + 40, ip + 40) };
    let found = [frame[udp + 6], frame[udp + 7]];
    frame[udp + 6..udp + 8].fill(0);
    let mut covered = frame[addresses].to_vec();
    covered.extend([0, 17]);
    covered.extend(((frame.len() - udp) as u16).to_be_bytes());
    let begun = ones_sum(&covered);
    covered.extend(&frame[udp..]);
    let complete = !ones_sum(&covered);
    [0, begun, complete].map(u16::to_be_bytes).contains(&found)
}

/// Sum of the 16-bit words, the last filled up with zero, with carries added back in.
fn ones_sum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
    let mut sum: u32 = bytes.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}
