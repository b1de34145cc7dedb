//! The datagrams of connection management in a capture.

use std::net::IpAddr;

use uroce_pcap_tests::{Set, frames};
use uroce_stack::wire::{Packet, Qpn};

pub(crate) const SETS: [(Set, &[&str]); 2] = [
    (Set::Rxe, &["cm_rping", "cm_ucmatose", "cm_udaddy", "cm_write_bw"]),
    (Set::Hardware, &["nvme-discover", "read2", "send", "write"]),
];

/// A datagram to queue pair 1.
#[derive(Clone, Debug)]
pub(crate) struct Mad {
    pub(crate) number: usize,
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) bytes: Vec<u8>,
}

/// Every datagram to queue pair 1, in order.
pub(crate) fn mads(set: Set, name: &str) -> Vec<Mad> {
    let frames = frames(&set.file(name)).unwrap_or_else(|error| panic!("{error}"));
    let packets =
        frames.iter().filter_map(|frame| Some((frame.number, Packet::parse(&frame.bytes, &[]).ok()?)));
    let to_gsi = packets.filter(|(_, packet)| packet.bth.dest_qp == Qpn::GSI);
    to_gsi.map(|(number, packet)| mad(number, &packet)).collect()
}

fn mad(number: usize, packet: &Packet<'_>) -> Mad {
    let (source, destination) = (packet.ip.source, packet.ip.destination);
    Mad { number, source, destination, bytes: packet.payload.bytes().collect() }
}
