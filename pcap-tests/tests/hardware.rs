//! Every frame that hardware sent is read and written again byte for byte, or refused for the right reason.

mod common;

use common::{Expected, check};
use uroce_pcap_tests::{Outcome, Set, frames, replay};
use uroce_stack::wire::Malformed::{Icrc, NotRoce, UnexpectedPayload, UnsupportedService};
use uroce_stack::wire::{Class, Operation, Packet};

#[test]
fn every_frame_is_written_as_it_was_read_or_refused_by_name() {
    check(Set::Hardware, TABLE);
}

const TABLE: &[Expected] = &[
    // Transport of a vendor, in the opcodes of reliable datagrams. The ICRC of the first file is wrong too, but
    // the opcode is seen first.
    ("dc-small", 0, &[(UnsupportedService, 19)]),
    ("dc-small2_sportfix", 0, &[(UnsupportedService, 29)]),
    ("dc-small_sportfix", 0, &[(UnsupportedService, 19)]),
    // Two frames of RoCEv1, and two acknowledgements four bytes too long.
    ("hexframes", 5, &[(NotRoce, 2), (UnexpectedPayload, 2)]),
    // The TCP connection over which perftest exchanges addresses.
    ("ib_send_bw_over_roce", 10, &[(NotRoce, 35)]),
    // Pings.
    ("nvme-discover", 61, &[(NotRoce, 4)]),
    ("nvme-rdma-25echoTo27", 45, &[]),
    ("nvme-rdma-idle", 4, &[]),
    // A mirror changed the UDP source port after the ICRC was made (case C09).
    ("rc-small", 0, &[(Icrc, 21)]),
    ("rc-small_sportfix", 21, &[]),
    ("read2", 13, &[(NotRoce, 3)]),
    ("rocev2_test", 708, &[]),
    ("send", 9, &[]),
    ("uc-sg", 0, &[(Icrc, 17)]),
    ("uc-sg_sportfix", 17, &[]),
    ("write", 17, &[]),
];

/// The nine frames of `hexframes`, one by one.
#[test]
fn single_frames_end_as_they_should() {
    let frames = frames(&Set::Hardware.file("hexframes")).unwrap_or_else(|error| panic!("{error}"));
    let outcomes: Vec<_> = frames.iter().map(|frame| replay(&frame.bytes)).collect();
    let refused = Outcome::Refused;
    let want = [
        Outcome::Same,
        refused(NotRoce),
        refused(NotRoce),
        Outcome::Same,
        Outcome::Same,
        Outcome::Same,
        refused(UnexpectedPayload),
        refused(UnexpectedPayload),
        Outcome::Same,
    ];
    assert_eq!(outcomes, want);
}

/// Case C03, X04: BECN is set, and not covered by the ICRC.
#[test]
fn notification_of_a_connectx_survives_another_mark() {
    let frames = frames(&Set::Hardware.file("hexframes")).unwrap_or_else(|error| panic!("{error}"));
    let mut bytes = frames[0].bytes.clone();
    // FECN, which a switch sets.
    bytes[46] |= 0x80;
    let packet = Packet::parse(&bytes, &[]).unwrap();
    assert_eq!((packet.class, packet.operation, packet.source_port), (Class::Cnp, Operation::Cnp, 0));
    assert!(packet.bth.becn && packet.bth.fecn);
}

/// Case C01: captured frames whose payload is no multiple of four.
#[test]
fn padding_is_as_long_as_the_payload_needs() {
    let mut padded = 0;
    for name in ["read2", "rc-small_sportfix", "rocev2_test"] {
        for frame in frames(&Set::Hardware.file(name)).unwrap_or_else(|error| panic!("{error}")) {
            let Ok(packet) = Packet::parse(&frame.bytes, &[]) else { continue };
            assert_eq!((packet.payload.len() + packet.pad.len()) % 4, 0, "{name} {}", frame.number);
            padded += usize::from(!packet.pad.is_empty());
        }
    }
    assert!(padded > 0, "no capture has padding");
}
