//! The ICRC of FLUSH in both forms: as specified, and as rdma_rxe computes it (protocol section 3.3).

use crate::common::*;
use Position::Only;
use uroce_stack::wire::{double_icrc, icrc};
use uroce_stack::{FlushPlacement, FlushScope};

const FLUSH: SendOp =
    SendOp::Flush { remote: FAR, length: 4096, placement: FlushPlacement::Global, scope: FlushScope::Range };

/// The bytes that leave, from the IP header to the ICRC.
fn flush_frame(rxe_flush_icrc: bool) -> Vec<u8> {
    let mut host = Host::with(Setup { rxe_flush_icrc, ..Setup::default() });
    let remote = RemoteAddr { va: 0x1122_3344_5566_7788, rkey: 0x99AA_BBCC };
    let (placement, scope) = (FlushPlacement::Persistent, FlushScope::Region);
    host.post_bare(1, SendOp::Flush { remote, length: 0x0102_0304, placement, scope });
    let mut frame = [0; 256];
    let len = host.engine.transmit(host.now, &mut frame).expect("the request");
    frame[14..len].to_vec()
}

#[test]
fn p3_3_the_frame_is_as_specified_byte_by_byte() {
    let packet = flush_frame(false);
    assert_eq!(packet.len(), 20 + 8 + 12 + 4 + 16 + 4);
    let transport = [
        &[0x1C, 0x40, 0xFF, 0xFF, 0, 0x00, 0x43, 0x21, 0x80, 0x00, 0x01, 0xF4][..],
        &[0, 0, 0, 0x12],
        &[0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xAA, 0xBB, 0xCC, 1, 2, 3, 4],
    ];
    assert_eq!(packet[28..60], transport.concat());
    assert_eq!(packet[60..], reference_icrc(&packet[..60], &[]));
}

#[test]
fn p3_3_for_rxe_the_transport_headers_are_covered_twice() {
    let (packet, specified) = (flush_frame(true), flush_frame(false));
    assert_eq!(packet[..60], specified[..60], "nothing else differs");
    assert_eq!(packet[60..], reference_icrc(&packet[..60], &packet[28..60]));
    assert_ne!(packet[60..], specified[60..]);
}

#[test]
fn p3_3_a_repeated_request_is_doubled_too_and_nothing_else_is() {
    let mut host = Host::with(Setup { rxe_flush_icrc: true, ..Setup::default() });
    host.post_write(1, 4);
    host.post_bare(2, FLUSH);
    host.post(3, SendOp::AtomicWrite { remote: FAR }, SendFlags::empty(), &[host.sge(0, 8)]);
    let mut frame = [0; 256];
    for _ in 0..2 {
        for is_flush in [false, true, false] {
            let len = host.engine.transmit(host.now, &mut frame).expect("three requests");
            let (covered, wire) = frame[14..len].split_last_chunk::<4>().expect("a frame has an ICRC");
            let specified = icrc(covered).expect("a whole packet").to_le_bytes();
            assert_eq!(*wire != specified, is_flush);
        }
        host.recv(nak(500, NakCode::SequenceError, 0));
    }
}

/// Whatever we send: a peer may do either.
#[test]
fn p3_3_both_forms_are_taken() {
    for rxe_flush_icrc in [false, true] {
        let access = Access::REMOTE | Access::FLUSH_GLOBAL;
        let mut host = Host::with(Setup { access, rxe_flush_icrc, ..Setup::default() });
        host.grant(Access::FLUSH_GLOBAL);
        let specified = flush(100, host.at(0), 4).frame(host.qpn);
        let mut doubled = flush(101, host.at(0), 4).frame(host.qpn);
        double_icrc(&mut doubled);
        for (frame, psn) in [(specified, 100), (doubled, 101)] {
            host.engine.receive(host.now, &frame, &[]);
            assert_eq!(host.sent(), [written(psn, psn - 99)], "{rxe_flush_icrc}");
        }
    }
}

/// Any bit but those that the ICRC never covers, in either form.
#[test]
fn p3_3_a_damaged_flush_is_dropped_in_both_forms() {
    for twice in [false, true] {
        let mut host = Host::open();
        let mut good = flush(100, host.at(0), 4).frame(host.qpn);
        if twice {
            double_icrc(&mut good);
        }
        for bit in 42 * 8..good.len() * 8 {
            let mut damaged = good.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            // FECN and BECN change on the way; where they are covered the second time, they must not.
            if bit / 8 != 46 {
                host.engine.receive(host.now, &damaged, &[]);
            }
            assert_eq!(host.sent(), [], "bit {bit}");
        }
        assert_eq!(host.count(Counter::RxFlushRequests), 0);
        host.engine.receive(host.now, &good, &[]);
        assert_eq!(host.sent(), [written(100, 1)]);
    }
}

/// Only of a FLUSH: another packet whose ICRC is computed like that is damaged.
#[test]
fn p3_3_no_other_packet_may_be_doubled() {
    let mut host = Host::new();
    let mut frame = write(Only, 100, host.at(0), 4, b"data").frame(host.qpn);
    double_icrc(&mut frame);
    host.engine.receive(host.now, &frame, &[]);
    assert_eq!((host.sent(), host.word(0), host.count(Counter::IcrcErrors)), (vec![], 0, 1));
}
