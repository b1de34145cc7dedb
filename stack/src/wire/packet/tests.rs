//! Tests of reading and writing whole frames.

use super::*;
use crate::wire::examples::{self, hex};
use crate::wire::{Aeth, Deth, Psn, Qpn, Reth, Syndrome, icrc};
use crc::{CRC_32_ISO_HDLC, Crc as Oracle};
use std::vec;
use std::vec::Vec;

mod properties;

/// Something done to a frame.
type Change = fn(&mut Vec<u8>);

/// A frame whose IPv4 checksum and ICRC are right again after a change, its lengths taken as they are.
///
/// The ICRC comes from the `crc` crate over bytes masked here, independently of the code under test.
fn seal(mut frame: Vec<u8>) -> Vec<u8> {
    let ip_at = if frame[12..14] == [0x81, 0] { 18 } else { 14 };
    let v4 = frame[ip_at] >> 4 == 4;
    let udp_at = ip_at + if v4 { usize::from(frame[ip_at] & 15) * 4 } else { 40 };
    if v4 {
        seal_checksum(&mut frame[ip_at..udp_at]);
    }
    let udp_len = usize::from(u16::from_be_bytes([frame[udp_at + 4], frame[udp_at + 5]]));
    let icrc_at = udp_at + udp_len - 4;
    let icrc = reference_icrc(&frame[ip_at..icrc_at], v4, udp_at - ip_at);
    frame[icrc_at..icrc_at + 4].copy_from_slice(&icrc.to_le_bytes());
    frame
}

fn seal_checksum(header: &mut [u8]) {
    header[10..12].fill(0);
    let mut sum: u32 = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    let checksum = !sum as u16;
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

fn reference_icrc(packet: &[u8], v4: bool, udp_at: usize) -> u32 {
    let mut masked = vec![0xff; 8];
    masked.extend_from_slice(packet);
    let ip = &mut masked[8..];
    if v4 {
        (ip[1], ip[8], ip[10], ip[11]) = (0xff, 0xff, 0xff, 0xff);
    } else {
        ip[0] |= 0x0f;
        (ip[1], ip[2], ip[3], ip[7]) = (0xff, 0xff, 0xff, 0xff);
    }
    (ip[udp_at + 6], ip[udp_at + 7], ip[udp_at + 12]) = (0xff, 0xff, 0xff);
    Oracle::<u32>::new(&CRC_32_ISO_HDLC).checksum(&masked)
}

/// Example `text` with `change` made to it and all sums right again.
fn changed(text: &str, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut frame = hex(text);
    change(&mut frame);
    seal(frame)
}

fn refusal(frame: &[u8]) -> Option<Malformed> {
    Packet::parse(frame, &[]).err()
}

/// Example J as a router leaves it, which corrects the IPv4 checksum.
fn marked() -> Vec<u8> {
    changed(examples::J, |_| {})
}

fn valid_frames() -> Vec<Vec<u8>> {
    let mut frames = examples::all();
    *frames.last_mut().unwrap() = marked();
    frames
}

/// Protocol section 3.2.
#[test]
fn c02_worked_examples_have_the_right_icrc() {
    for frame in examples::all() {
        let ip_at = if frame[12..14] == [0x81, 0] { 18 } else { 14 };
        let icrc_at = frame.len() - 4;
        assert_eq!(icrc(&frame[ip_at..icrc_at]).unwrap().to_le_bytes(), frame[icrc_at..]);
    }
    assert_eq!(icrc(&[]), None);
    assert_eq!(icrc(&[0x45; 39]), None);
    assert_eq!(icrc(&[0x65; 55]), None);
    assert_eq!(icrc(&[0x55; 64]), None);
}

#[test]
fn worked_examples_are_written_as_they_came() {
    for frame in valid_frames() {
        let mut out = [0xa5; 256];
        let len = Packet::parse(&frame, &[]).unwrap().emit(&mut out);
        assert_eq!(out[..len], frame);
    }
}

#[test]
fn frames_of_roce_v1_are_not_ours() {
    assert_eq!(refusal(&hex(examples::D)), Some(Malformed::NotRoce));
    assert_eq!(refusal(&hex(examples::E)), Some(Malformed::NotRoce));
}

/// Example J as printed keeps the IPv4 checksum of F.
#[test]
fn checksum_of_ipv4_is_verified() {
    assert_eq!(refusal(&hex(examples::J)), Some(Malformed::IpChecksum));
    let packet = Packet::parse(&hex(examples::F), &[]).map(|packet| packet.operation);
    assert_eq!(Packet::parse(&marked(), &[]).map(|packet| packet.operation), packet);
}

#[test]
fn c03_x04_reads_a_notification_of_hardware() {
    let frame = hex(examples::A);
    let packet = Packet::parse(&frame, &[]).unwrap();
    assert_eq!(packet.destination_mac, MacAddr([0xe4, 0x1d, 0x2d, 0xab, 0x2b, 0xc2]));
    assert_eq!(packet.source_mac, MacAddr([0x7c, 0xfe, 0x90, 0x64, 0x3b, 0x32]));
    assert_eq!(packet.ip.source, "10.0.17.1".parse::<core::net::IpAddr>().unwrap());
    assert_eq!(packet.ip.destination, "10.0.18.1".parse::<core::net::IpAddr>().unwrap());
    assert_eq!((packet.ip.traffic_class, packet.ip.hop_limit, packet.ip.ident), (0xc2, 64, 0x718c));
    assert_eq!((packet.source_port, packet.vlan), (0, None));
    assert_eq!((packet.class, packet.operation), (Class::Cnp, Operation::Cnp));
    assert_eq!((packet.bth.becn, packet.bth.fecn, packet.bth.dest_qp), (true, false, Qpn::new(0x118)));
    assert!(packet.payload.is_empty() && packet.pad.is_empty());
    // A switch that marks the notification on its way does not break it.
    assert!(Packet::parse(&changed(examples::A, |frame| frame[46] |= 0x80), &[]).is_ok());
}

/// Pad bytes are covered, and do not count as payload.
#[test]
fn c01_reads_payload_and_padding() {
    let frame = hex(examples::C);
    let packet = Packet::parse(&frame, &[]).unwrap();
    assert_eq!((packet.payload.len(), packet.pad.as_slice()), (18, &[0, 0][..]));
    assert_eq!((packet.ip.traffic_class, packet.ip.flow_label, packet.ip.hop_limit), (0xe2, 0x1face, 255));
    assert_eq!(packet.udp_checksum, 0xe7c5);
    assert_eq!((packet.class, packet.opcode), (Class::Uc, Opcode::UC_SEND_ONLY));
    assert_eq!(packet.ip_header, &frame[14..54]);
    assert!(packet.bth.migrated);
}

#[test]
fn reads_an_acknowledgement_with_a_tag() {
    let frame = hex(examples::I);
    let packet = Packet::parse(&frame, &[]).unwrap();
    assert_eq!(packet.vlan, Some(VlanTag { pcp: 3, dei: false, id: 100 }));
    assert_eq!(packet.operation, Operation::Acknowledge(Aeth { syndrome: Syndrome::UNLIMITED, msn: 1 }));
    assert_eq!(packet.bth.psn, Psn::new(0x16bcef));
    assert_eq!(packet.ip_header, &frame[18..38]);
}

#[test]
fn x07_every_cut_is_refused() {
    for frame in valid_frames() {
        for len in 0..frame.len() {
            let reason = refusal(&frame[..len]);
            assert!(matches!(reason, Some(Malformed::TooShort | Malformed::Truncated)), "{len}: {reason:?}");
        }
    }
}

/// Protocol section 1.1: the length is what UDP says.
#[test]
fn x07_bytes_behind_are_ignored() {
    for mut frame in valid_frames() {
        let want = frame.clone();
        frame.resize(frame.len() + 30, 0x5a);
        assert_eq!(Packet::parse(&frame, &[]), Packet::parse(&want, &[]));
    }
}

#[test]
fn a_frame_may_lie_in_two_buffers() {
    for frame in valid_frames() {
        let whole = Packet::parse(&frame, &[]).unwrap();
        let headers = frame.len() - 4 - whole.pad.len() - whole.payload.len();
        for at in 0..frame.len() {
            let (head, rest) = frame.split_at(at);
            let parsed = Packet::parse(head, rest);
            if at < headers {
                assert!(
                    matches!(parsed, Err(Malformed::HeadersSplit | Malformed::TooShort)),
                    "{at}: {parsed:?}"
                );
                continue;
            }
            let parsed = parsed.unwrap();
            assert_eq!((parsed.operation, parsed.bth, parsed.pad), (whole.operation, whole.bth, whole.pad));
            assert_eq!(parsed.payload.bytes().collect::<Vec<_>>(), whole.payload.head);
            let mut out = [0; 256];
            assert_eq!(parsed.emit(&mut out), frame.len());
            assert_eq!(out[..frame.len()], frame);
        }
    }
}

/// Protocol section 3.1: which bits the ICRC covers, tried one by one.
#[test]
fn every_bit_is_covered_or_masked() {
    for frame in valid_frames() {
        let ip_at = if frame[12..14] == [0x81, 0] { 18 } else { 14 };
        let v4 = frame[ip_at] >> 4 == 4;
        for bit in ip_at * 8..frame.len() * 8 {
            let mut flipped = frame.clone();
            flipped[bit / 8] ^= 0x80 >> (bit % 8);
            let masked = is_masked(bit - ip_at * 8, v4);
            if v4 && masked {
                seal_checksum(&mut flipped[ip_at..ip_at + 20]);
            }
            assert_eq!(Packet::parse(&flipped, &[]).is_ok(), masked, "bit {bit}");
        }
    }
}

/// Whether the bit of an IP packet may change on its way. The IPv4 checksum may, but only to be right.
fn is_masked(bit: usize, v4: bool) -> bool {
    let (byte, udp_at) = (bit / 8, if v4 { 20 } else { 40 });
    let ip = if v4 { [1, 8].contains(&byte) } else { (4..32).contains(&bit) || byte == 7 };
    ip || [udp_at + 6, udp_at + 7, udp_at + 12].contains(&byte)
}

/// What no RoCEv2 sender does below the transport.
#[test]
fn x02_x03_foreign_ip_headers_are_refused_by_name() {
    let cases: [(Malformed, &str, Change); 14] = [
        (Malformed::NotRoce, examples::F, |frame| frame[23] = 6),
        (Malformed::NotRoce, examples::F, |frame| frame[37] = 0xb8),
        (Malformed::NotRoce, examples::G, |frame| frame[20] = 58),
        (Malformed::NotRoce, examples::G, |frame| frame[57] = 0xb8),
        (Malformed::Ipv6Extension, examples::G, |frame| frame[20] = 0),
        (Malformed::Ipv6Extension, examples::G, |frame| frame[20] = 44),
        (Malformed::Fragment, examples::F, |frame| frame[20] |= 0x20),
        (Malformed::Fragment, examples::F, |frame| frame[21] = 1),
        (Malformed::IpLength, examples::F, |frame| frame[17] = 27),
        (Malformed::IpLength, examples::G, |frame| frame[19] = 7),
        (Malformed::Truncated, examples::F, |frame| frame[17] += 1),
        (Malformed::Truncated, examples::G, |frame| frame[19] += 1),
        (Malformed::UdpLength, examples::F, |frame| frame[17] -= 1),
        (Malformed::UdpLength, examples::G, |frame| frame[19] -= 1),
    ];
    for (index, (reason, text, change)) in cases.into_iter().enumerate() {
        assert_eq!(refusal(&changed(text, change)), Some(reason), "case {index}");
    }
}

#[test]
fn x01_ip_versions_and_options_are_refused_by_name() {
    for (at, value) in [(14, 0x65), (14, 0x44)] {
        let mut frame = hex(examples::F);
        frame[at] = value;
        assert_eq!(refusal(&frame), Some(Malformed::IpVersion));
    }
    let mut frame = hex(examples::G);
    frame[14] = 0x40;
    assert_eq!(refusal(&frame), Some(Malformed::IpVersion));

    let with_option = changed(examples::F, |frame| {
        frame.splice(34..34, [1, 1, 1, 1]);
        frame[14] = 0x46;
        frame[17] += 4;
    });
    assert_eq!(refusal(&with_option), Some(Malformed::IpOptions));
}

/// Protocol section 1.1: no filter on source port, traffic class, hop limit, identification, flags.
#[test]
fn c09_any_value_of_the_free_fields_is_accepted() {
    let changes: [Change; 7] = [
        |frame| frame[34..36].copy_from_slice(&[0, 0]),
        |frame| frame[34..36].copy_from_slice(&[0x04, 0xd2]),
        |frame| frame[15] = 0xc2,
        |frame| frame[22] = 1,
        |frame| frame[20] = 0,
        |frame| frame[20] = 0xc0,
        |frame| frame[18..20].fill(0),
    ];
    for change in changes {
        let frame = changed(examples::F, change);
        let mut out = [0; 128];
        let len = Packet::parse(&frame, &[]).unwrap().emit(&mut out);
        assert_eq!(out[..len], frame);
    }
}

/// Sets the length of example F or H so that `len` bytes of transport are left, ICRC included.
fn set_transport_len(frame: &mut Vec<u8>, len: u8) {
    frame[17] = 28 + len;
    frame[39] = 8 + len;
    frame.resize(42 + usize::from(len), 0);
}

#[test]
fn c05_c06_c27_transport_headers_are_refused_by_name() {
    let cases: [(Malformed, Change); 13] = [
        (Malformed::UdpLength, |frame| set_transport_len(frame, 15)),
        (Malformed::HeadersTruncated, |frame| set_transport_len(frame, 16)),
        (Malformed::HeadersTruncated, |frame| set_transport_len(frame, 19)),
        (Malformed::UnknownOpcode, |frame| frame[42] = 0xff),
        (Malformed::UnknownOpcode, |frame| frame[42] = 0x15),
        (Malformed::UnsupportedService, |frame| frame[42] = 0x51),
        (Malformed::UnsupportedService, |frame| frame[42] = 0x55),
        (Malformed::TransportVersion, |frame| frame[43] |= 1),
        (Malformed::PadTruncated, |frame| frame[43] |= 0x10),
        (Malformed::UnexpectedPayload, |frame| set_transport_len(frame, 24)),
        // Padding of nothing is nothing.
        (Malformed::UnexpectedPayload, |frame| {
            set_transport_len(frame, 22);
            frame[43] |= 0x20;
        }),
        // An atomic acknowledgement without the original value.
        (Malformed::HeadersTruncated, |frame| frame[42] = 0x12),
        (Malformed::HeadersTruncated, |frame| frame[42] = 0x0c),
    ];
    for (index, (reason, change)) in cases.into_iter().enumerate() {
        assert_eq!(refusal(&changed(examples::F, change)), Some(reason), "case {index}");
    }
}

/// The reason does not depend on a length that is too short for anything.
#[test]
fn c05_s20_unknown_opcode_comes_before_lengths() {
    let frame = changed(examples::F, |frame| {
        set_transport_len(frame, 16);
        (frame[42], frame[43]) = (0xff, 0x3f);
    });
    assert_eq!(refusal(&frame), Some(Malformed::UnknownOpcode));
}

/// One byte of payload less than the pad count says.
#[test]
fn c06_s21_pad_count_may_take_all_but_not_more() {
    let send = |transport_len, pad: u8| {
        changed(examples::H, |frame| {
            set_transport_len(frame, transport_len);
            frame[43] = pad << 4;
        })
    };
    assert_eq!(refusal(&send(18, 3)), Some(Malformed::PadTruncated));
    assert_eq!(refusal(&send(16, 1)), Some(Malformed::PadTruncated));
    assert_eq!(refusal(&send(19, 3)), None);
    assert_eq!(refusal(&send(16, 0)), None);
}

/// Protocol section 4.1: receivers ignore the value of pad bytes.
#[test]
fn pad_bytes_of_any_value_are_kept() {
    let frame = changed(examples::B, |frame| {
        let at = frame.len() - 6;
        frame[at..at + 2].copy_from_slice(&[0xde, 0xad]);
    });
    let packet = Packet::parse(&frame, &[]).unwrap();
    assert_eq!(packet.pad.as_slice(), [0xde, 0xad]);
    let mut out = [0; 128];
    let len = packet.emit(&mut out);
    assert_eq!(out[..len], frame);
}

#[test]
fn values_that_parse_stay_small() {
    // A packet is made for every frame; it should cost no more than a few cache lines.
    assert!(size_of::<Packet<'_>>() <= 256, "{} bytes", size_of::<Packet<'_>>());
}
