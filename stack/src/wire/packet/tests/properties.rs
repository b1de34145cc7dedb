//! Properties that hold for any bytes and any packet.

use super::{Deth, Reth, reference_icrc, seal, valid_frames};
use crate::memory::Crc;
use crate::wire::opcode_table::ROWS;
use crate::wire::{
    Bth, Class, MAX_HEADER, MacAddr, Malformed, Opcode, Operation, Packet, Path, Position, Psn, Qpn, Service,
    Template, VlanTag, emit, overhead,
};
use core::convert::Infallible;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use proptest::collection::vec;
use proptest::prelude::*;
use std::vec::Vec;

prop_compose! {
    fn any_vlan()(tci: u16) -> VlanTag {
        VlanTag { pcp: (tci >> 13) as u8, dei: tci & 0x1000 != 0, id: tci & 0xfff }
    }
}

fn any_addresses() -> impl Strategy<Value = (IpAddr, IpAddr)> {
    prop_oneof![
        any::<(Ipv4Addr, Ipv4Addr)>().prop_map(|(a, b)| (a.into(), b.into())),
        any::<(Ipv6Addr, Ipv6Addr)>().prop_map(|(a, b)| (a.into(), b.into())),
    ]
}

prop_compose! {
    fn any_path()(
        macs: ([u8; 6], [u8; 6]),
        vlan in proptest::option::of(any_vlan()),
        (source, destination) in any_addresses(),
        source_port: u16,
        traffic_class: u8,
        hop_limit: u8,
        label in 0u32..1 << 20,
    ) -> Path {
        let flow_label = if source.is_ipv6() { label } else { 0 };
        let (source_mac, destination_mac) = (MacAddr(macs.0), MacAddr(macs.1));
        Path { source_mac, destination_mac, vlan, source, destination, source_port, traffic_class, hop_limit, flow_label }
    }
}

prop_compose! {
    fn any_bth()(
        flags: [bool; 5],
        pkey: u16,
        dest_qp: u32,
        psn: u32,
        resv6 in 0u8..64,
        resv7 in 0u8..128,
    ) -> Bth {
        let [solicited, migrated, fecn, becn, ack_request] = flags;
        Bth { solicited, migrated, pkey, fecn, becn, dest_qp: Qpn::new(dest_qp), ack_request, psn: Psn::new(psn), resv6, resv7 }
    }
}

/// An opcode with extended headers of any value.
fn any_operation() -> impl Strategy<Value = (Opcode, Class, Operation)> {
    let opcodes: Vec<_> =
        ROWS.iter().map(|row| row.opcode).filter(|opcode| opcode.service() != Service::Rd).collect();
    (prop::sample::select(opcodes), any::<[u8; 32]>(), any::<[u8; 20]>()).prop_map(
        |(opcode, first, second)| {
            let bytes = [&first[..], &second[..]].concat();
            let mut reader = crate::wire::bytes::Reader(&bytes);
            let class = Class::parse(opcode, &mut reader).unwrap();
            (opcode, class, Operation::parse(opcode, &mut reader).unwrap())
        },
    )
}

fn copy_from<'a>(payload: &'a [u8]) -> impl FnOnce(&mut [u8], Crc) -> Result<Crc, Infallible> + use<'a> {
    |out, crc| {
        out.copy_from_slice(payload);
        Ok(crc.update(payload))
    }
}

/// Whatever parses is written again; only reserved bits and slack between IP and UDP length may be lost.
fn check_again(frame: &[u8], rest: &[u8]) {
    let Ok(packet) = Packet::parse(frame, rest) else { return };
    let mut out = std::vec![0; frame.len() + rest.len() + 4];
    let len = packet.emit(&mut out);
    let again = Packet::parse(&out[..len], &[]).expect("written by this crate");
    assert_eq!(again.payload.bytes().collect::<Vec<_>>(), packet.payload.bytes().collect::<Vec<_>>());
    let comparable = Packet { payload: packet.payload, ip_header: packet.ip_header, ..again };
    assert_eq!(comparable, packet);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_answered(head in vec(any::<u8>(), 0..200), rest in vec(any::<u8>(), 0..50)) {
        check_again(&head, &rest);
    }

    /// Bytes behind right link headers, so that the later checks are reached.
    #[test]
    fn any_bytes_behind_a_udp_header_are_answered(
        which in 0usize..8,
        tail in vec(any::<u8>(), 0..200),
        split in 0usize..200,
    ) {
        let mut frame = valid_frames()[which].clone();
        frame.truncate(42 + split % 20);
        frame.extend_from_slice(&tail);
        let (head, rest) = frame.split_at(split.min(frame.len()));
        check_again(head, rest);
    }

    #[test]
    fn changed_frames_are_answered(
        which in 0usize..8,
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        sealed: bool,
    ) {
        let mut frame = valid_frames()[which].clone();
        let lengths = frame.clone();
        for (at, value) in changes {
            let at = at.index(frame.len());
            frame[at] = value;
        }
        // Sealing reads lengths off the frame, so it needs those of a frame that is one.
        let ip_at = if lengths[12..14] == [0x81, 0] { 18 } else { 14 };
        if sealed && frame[..ip_at + 1] == lengths[..ip_at + 1] {
            let udp_at = ip_at + if frame[ip_at] >> 4 == 4 { 20 } else { 40 };
            frame[udp_at + 4..udp_at + 6].copy_from_slice(&lengths[udp_at + 4..udp_at + 6]);
            frame = seal(frame);
        }
        check_again(&frame, &[]);
    }

    #[test]
    fn every_packet_is_read_as_it_was_written(
        path in any_path(),
        bth in any_bth(),
        ident: u16,
        (opcode, class, operation) in any_operation(),
        data in vec(any::<u8>(), 0..300),
        split: prop::sample::Index,
    ) {
        let payload = if opcode.carries_payload() { &data[..] } else { &[] };
        let template = Template::new(&path).unwrap();
        let mut frame = [0x5a; 300 + MAX_HEADER];
        let len = emit(
            &mut frame, &template, ident, &bth, opcode, &class, &operation, payload.len(), copy_from(payload),
        ).unwrap();
        let frame = &frame[..len];
        prop_assert_eq!(len, overhead(&template, opcode) + payload.len().next_multiple_of(4));
        prop_assert_eq!(&seal(frame.to_vec())[..], frame, "checksum and ICRC");

        let packet = Packet::parse(frame, &[]).unwrap();
        prop_assert_eq!((packet.opcode, packet.class, packet.operation), (opcode, class, operation));
        prop_assert_eq!((packet.bth, packet.payload.head), (bth, payload));
        prop_assert_eq!((packet.source_mac, packet.destination_mac), (path.source_mac, path.destination_mac));
        prop_assert_eq!((packet.vlan, packet.source_port), (path.vlan, path.source_port));
        prop_assert_eq!((packet.ip.source, packet.ip.destination), (path.source, path.destination));
        prop_assert_eq!((packet.ip.traffic_class, packet.ip.hop_limit), (path.traffic_class, path.hop_limit));
        prop_assert_eq!(packet.ip.flow_label, path.flow_label);
        prop_assert_eq!(packet.ip.dont_fragment, path.source.is_ipv4());
        check_again(frame, &[]);

        let headers = len - 4 - payload.len().next_multiple_of(4);
        let (head, rest) = frame.split_at(headers + split.index(len - headers));
        check_again(head, rest);
        prop_assert!(Packet::parse(head, rest).is_ok());
        check_oracle(frame, &path);
    }

    /// A change of any one bit under the ICRC is seen (protocol section 3.1).
    #[test]
    fn one_changed_bit_is_refused(
        path in any_path(),
        data in vec(any::<u8>(), 1..100),
        bit: prop::sample::Index,
    ) {
        let reth = Reth { va: 0x1000, rkey: 7, length: data.len() as u32 };
        let operation = Operation::Write { position: Position::Only, reth: Some(reth), immediate: None };
        let template = Template::new(&path).unwrap();
        let mut frame = [0; 100 + MAX_HEADER];
        let len = emit(
            &mut frame, &template, 1, &Bth::default(), Opcode::RC_RDMA_WRITE_ONLY, &Class::Rc, &operation,
            data.len(), copy_from(&data),
        ).unwrap();
        // From the extended headers on nothing is masked.
        let covered = template.len() + Bth::LEN;
        let bit = covered * 8 + bit.index((len - covered) * 8);
        frame[bit / 8] ^= 1 << (bit % 8);
        prop_assert_eq!(Packet::parse(&frame[..len], &[]), Err(Malformed::Icrc));
    }
}

/// What `etherparse` makes of a frame of ours.
fn check_oracle(frame: &[u8], path: &Path) {
    let sliced = SlicedPacket::from_ethernet(frame).unwrap();
    let udp_len = frame.len() - Template::new(path).unwrap().len() + 8;
    let Some(TransportSlice::Udp(udp)) = sliced.transport else { panic!("not UDP") };
    assert_eq!((udp.destination_port(), udp.checksum(), usize::from(udp.length())), (4791, 0, udp_len));
    match sliced.net {
        Some(NetSlice::Ipv4(ip)) => {
            let header = ip.header().to_header();
            assert_eq!(header.calc_header_checksum(), header.header_checksum);
            assert_eq!(usize::from(header.total_len), udp_len + 20);
        }
        Some(NetSlice::Ipv6(ip)) => assert_eq!(usize::from(ip.header().payload_length()), udp_len),
        other => panic!("not IP: {other:?}"),
    }
}

#[test]
fn mixed_versions_have_no_template() {
    let path = Path {
        source_mac: MacAddr::default(),
        destination_mac: MacAddr::default(),
        vlan: None,
        source: Ipv4Addr::LOCALHOST.into(),
        destination: Ipv6Addr::LOCALHOST.into(),
        source_port: 0xc000,
        traffic_class: 0,
        hop_limit: 64,
        flow_label: 0,
    };
    assert!(Template::new(&path).is_err());
    assert!(Template::new(&Path { source: path.destination, destination: path.source, ..path }).is_err());
}

#[test]
fn error_of_the_filler_passes_through() {
    let frame = &valid_frames()[0];
    let packet = Packet::parse(frame, &[]).unwrap();
    let template = Template::build(
        packet.source_mac,
        packet.destination_mac,
        packet.vlan,
        &packet.ip,
        packet.source_port,
    )
    .unwrap();
    let mut out = [0; 200];
    let deth = Deth { qkey: 1, source_qp: Qpn::GSI };
    let send = Operation::Send { position: Position::Only, immediate: None, invalidate: None };
    let result = emit(
        &mut out,
        &template,
        0,
        &packet.bth,
        Opcode::UD_SEND_ONLY,
        &Class::Ud(deth),
        &send,
        5,
        |bytes, _| Err(bytes.len()),
    );
    assert_eq!(result, Err(5));
}

/// The ICRC of the table-driven prefix equals that of the `crc` crate, for lengths near every carry.
#[test]
fn c08_lengths_and_identification_enter_the_icrc() {
    let frame = &valid_frames()[0];
    let packet = Packet::parse(frame, &[]).unwrap();
    let template = Template::build(
        packet.source_mac,
        packet.destination_mac,
        packet.vlan,
        &packet.ip,
        packet.source_port,
    )
    .unwrap();
    let send = Operation::Send { position: Position::Only, immediate: None, invalidate: None };
    let mut out = std::vec![0; 4096 + MAX_HEADER];
    for (payload_len, ident) in (0..=4096).step_by(13).zip((0..=u16::MAX).step_by(211)) {
        let data = std::vec![0xa7; payload_len];
        let len = emit(
            &mut out,
            &template,
            ident,
            &Bth::default(),
            Opcode::RC_SEND_ONLY,
            &Class::Rc,
            &send,
            payload_len,
            copy_from(&data),
        )
        .unwrap();
        let want = reference_icrc(&out[14..len - 4], true, 20).to_le_bytes();
        assert_eq!(out[len - 4..len], want, "{payload_len} bytes, identification {ident:#x}");
    }
}
