//! Packets that must not touch a queue pair (protocol section 5.1; S03): dropped, counted, nothing else.

use crate::common::*;
use Position::Only;
use uroce_stack::wire::{Class, Deth, Operation};

/// A good request that is not for the queue pair, or not from its peer, and how it is counted.
fn intruders() -> Vec<(Pkt, Counter)> {
    let good = || send(Only, 100, b"hello").ack_req();
    let deth = Deth { qkey: 0, source_qp: PEER_QPN };
    vec![
        (good().from(STRANGER), Counter::WrongSource),
        (good().to(STRANGER), Counter::WrongSource),
        (good().from(HOST).to(PEER), Counter::WrongSource),
        (good().pkey(0x8001), Counter::BadPkey),
        (good().pkey(0), Counter::BadPkey),
        (good().class(Class::Uc), Counter::WrongService),
        (good().class(Class::Ud(deth)), Counter::WrongService),
        (good().class(Class::Xrc { srqn: Some(1) }), Counter::WrongService),
        (Pkt { dest_qp: Some(PEER_QPN), ..good() }, Counter::UnknownQp),
        (Pkt { dest_qp: Some(Qpn::new(0)), ..good() }, Counter::UnknownQp),
        (Pkt { dest_qp: Some(Qpn::GSI), ..good() }, Counter::UnknownQp),
        (Pkt { dest_qp: Some(Qpn::MULTICAST), ..good() }, Counter::NoGroup),
    ]
}

#[test]
fn s03_what_is_not_from_the_peer_is_dropped_and_counted() {
    for (packet, counter) in intruders() {
        let mut host = Host::new();
        host.post_recv(1, 0, 64);
        host.recv(packet.clone());
        assert_eq!(
            (host.sent(), host.received(), host.state()),
            (vec![], vec![], QpState::Rts),
            "{packet:?}"
        );
        assert_eq!((host.count(counter), host.count(Counter::RcvdPkts)), (1, 0), "{packet:?}");
        host.recv(send(Only, 100, b"hello").ack_req());
        assert_eq!((host.sent(), host.received()), (vec![ack(100, 1)], ok([1])), "{packet:?}");
    }
}

#[test]
fn p2_2_limited_members_of_the_partition_are_heard() {
    let mut host = Host::new();
    host.post_recv(1, 0, 64);
    host.recv(send(Only, 100, b"hello").ack_req().pkey(0x7FFF));
    assert_eq!(host.sent(), [ack(100, 1)]);
}

#[test]
fn s03_a_foreign_answer_is_dropped() {
    let mut host = Host::new();
    host.post_send(1, 5);
    assert_eq!(host.sent().len(), 1);
    for foreign in [ack(500, 1), nak(500, NakCode::InvalidRequest, 0), rnr(500, 1, 0)] {
        host.recv(foreign.from(STRANGER));
    }
    assert_eq!((host.sent(), host.done(), host.state()), (vec![], vec![], QpState::Rts));
    assert_eq!(host.count(Counter::WrongSource), 3);
    host.recv(ack(500, 1));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1])));
}

#[test]
fn p4_15_requests_are_heard_from_rtr_on() {
    for (state, heard) in
        [(QpState::Reset, false), (QpState::Init, false), (QpState::Rtr, true), (QpState::Rts, true)]
    {
        let mut host = Host::with(Setup { state, ..Setup::default() });
        host.recv(write(Only, 100, host.at(0), 1, b"a").ack_req());
        let expected = if heard { vec![ack(100, 1)] } else { vec![] };
        assert_eq!((host.sent(), host.count(Counter::WrongState) == 0), (expected, heard), "{state:?}");
    }
}

#[test]
fn p4_15_answers_are_heard_from_rts_on() {
    let mut host = Host::with(Setup { state: QpState::Rtr, ..Setup::default() });
    host.recv(nak(499, NakCode::InvalidRequest, 0));
    assert_eq!((host.count(Counter::WrongState), host.state()), (1, QpState::Rtr));
}

#[test]
fn c84_the_first_request_before_rts_establishes_the_connection() {
    let mut host = Host::with(Setup { state: QpState::Rtr, ..Setup::default() });
    host.recv(send(Only, 100, b"a").from(STRANGER));
    assert_eq!(host.events(), []);
    host.recv(write(Only, 100, host.at(0), 1, b"a").ack_req());
    host.recv(write(Only, 101, host.at(0), 1, b"b").ack_req());
    assert_eq!(host.sent(), [ack(101, 2)]);
    assert_eq!(host.events(), [AsyncEvent::CommEst(host.qpn)], "once");
}

#[test]
fn x04_s10_a_congestion_notification_touches_nothing() {
    let mut host = Host::new();
    host.post_send(1, 5);
    assert_eq!(host.sent().len(), 1);
    let cnp = Pkt::new(0, Operation::Cnp, &[]).class(Class::Cnp);
    host.recv(cnp.clone().from(STRANGER));
    assert_eq!((host.count(Counter::RpCnpHandled), host.count(Counter::WrongSource)), (0, 1));
    host.recv(cnp);
    assert_eq!((host.count(Counter::RpCnpHandled), host.sent(), host.done()), (1, vec![], vec![]));
    host.recv(ack(500, 1));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1])));
}

#[test]
fn a_frame_that_lies_in_two_buffers_is_one_packet() {
    let mut host = Host::new();
    let data = pattern(1000);
    let frame = write(Only, 100, host.at(0), 1000, &data).ack_req().frame(host.qpn);
    let mut answered = 0;
    for split in 70..=frame.len() {
        host.engine.receive(host.now, &frame[..split], &frame[split..]);
        answered += host.sent().len();
    }
    assert_eq!(answered, frame.len() - 69, "the first is carried out, the others are duplicates");
    assert_eq!(host.bytes(0, 1000), data);
}

#[test]
fn bytes_behind_the_packet_are_ignored() {
    let mut host = Host::new();
    let mut frame = write(Only, 100, host.at(0), 1, b"a").ack_req().frame(host.qpn);
    frame.extend([0xEE; 30]);
    host.engine.receive(host.now, &frame, &[]);
    assert_eq!(host.sent(), [ack(100, 1)]);
}

#[test]
fn a_damaged_frame_is_dropped_whichever_bit_it_is() {
    let mut host = Host::new();
    let frame = write(Only, 100, host.at(0), 5, b"hello").ack_req().frame(host.qpn);
    for bit in 14 * 8..frame.len() * 8 {
        let mut damaged = frame.clone();
        damaged[bit / 8] ^= 0x80 >> (bit % 8);
        host.engine.receive(host.now, &damaged, &[]);
        // The UDP checksum is never looked at; the byte of FECN and BECN changes on the way (C03).
        let free = matches!(bit / 8, 40 | 41 | 46);
        assert_eq!(!host.sent().is_empty(), free, "bit {bit}");
    }
}
