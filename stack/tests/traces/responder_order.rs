//! The responder and the order of requests: in order, past, future (protocol sections 4.2, 4.3, 4.4 and 4.9).

use crate::common::*;
use Position::{First, Last, Middle, Only};

const MTU: usize = 1024;

/// Receives of 4096 bytes each, numbered from 1 on.
fn host_with_receives(count: u64) -> Host {
    let mut host = Host::new();
    for index in 0..count {
        host.post_recv(index + 1, index * 4096, 4096);
    }
    host
}

#[test]
fn send_in_order_is_placed_completed_and_acknowledged() {
    let mut host = host_with_receives(1);
    host.recv(send(Only, 100, b"hello").ack_req());
    assert_eq!(host.sent(), [ack(100, 1)]);
    let [completion] = host.recv_completions()[..] else { panic!("one completion") };
    assert_eq!((completion.wr_id, completion.status, completion.byte_len), (1, WcStatus::Success, 5));
    assert_eq!((completion.opcode, completion.immediate), (WcOpcode::Recv, None));
    assert_eq!((completion.qp_num, completion.src_qp), (host.qpn, PEER_QPN));
    assert_eq!(host.bytes(0, 6), b"hello\0", "C01: the pad is not part of the message");
}

#[test]
fn send_with_immediate_hands_it_over() {
    let mut host = host_with_receives(1);
    host.recv(send(Only, 100, b"x").imm(0x1234_5678).ack_req());
    assert_eq!(host.sent(), [ack(100, 1)]);
    let [completion] = host.recv_completions()[..] else { panic!("one completion") };
    assert_eq!(completion.immediate, Some(0x1234_5678));
    assert_eq!(completion.flags, WcFlags::GRH | WcFlags::WITH_IMM);
}

#[test]
fn c01_every_length_around_the_padding_arrives_as_it_was() {
    for length in 0..=9 {
        let mut host = host_with_receives(1);
        host.recv(send(Only, 100, &pattern(length)).ack_req());
        assert_eq!(host.sent(), [ack(100, 1)]);
        assert_eq!(host.recv_completions()[0].byte_len as usize, length);
        assert_eq!(host.bytes(0, length), pattern(length));
        assert_eq!(host.bytes(length, 4), [0; 4], "{length}: nothing behind the message is touched");
    }
}

#[test]
fn a_message_of_many_packets_is_one_receive() {
    let mut host = host_with_receives(1);
    let data = pattern(2 * MTU + 7);
    host.recv(send(First, 100, &data[..MTU]));
    host.recv(send(Middle, 101, &data[MTU..2 * MTU]));
    assert_eq!(host.sent(), [], "nothing asked");
    assert_eq!(host.received(), []);
    host.recv(send(Last, 102, &data[2 * MTU..]).imm(7).ack_req());
    assert_eq!(host.sent(), [ack(102, 1)]);
    let [completion] = host.recv_completions()[..] else { panic!("one completion") };
    assert_eq!((completion.byte_len as usize, completion.immediate), (data.len(), Some(7)));
    assert_eq!(host.bytes(0, data.len()), data);
}

#[test]
fn a_message_fills_32_entries_in_order() {
    let mut host = Host::new();
    let pieces: Vec<Sge> = (0..32).map(|index| host.sge(60 * (31 - index), 50)).collect();
    host.try_post_recv(1, &pieces).expect("32 entries are allowed");
    let data = pattern(1600);
    host.recv(send(First, 100, &data[..MTU]));
    host.recv(send(Last, 101, &data[MTU..]).ack_req());
    assert_eq!(host.sent(), [ack(101, 1)]);
    assert_eq!(host.received(), ok([1]));
    for index in 0..32 {
        assert_eq!(host.bytes(60 * (31 - index), 50), data[50 * index..50 * (index + 1)], "{index}");
    }
}

#[test]
fn p4_4_nothing_is_acknowledged_unasked() {
    let mut host = host_with_receives(2);
    host.recv(send(Only, 100, b"a"));
    assert_eq!(host.sent(), []);
    assert_eq!(
        host.received(),
        ok([1]),
        "the completion does not wait for an acknowledgement that is not owed"
    );
}

#[test]
fn p4_4_acknowledgements_coalesce() {
    let mut host = host_with_receives(3);
    host.recv_all((0..3).map(|n| send(Only, 100 + n, b"a").ack_req()));
    assert_eq!(host.sent(), [ack(102, 3)], "the newest covers all");
    assert_eq!(host.received(), ok([1, 2, 3]));
}

#[test]
fn p4_4_an_acknowledgement_may_be_asked_for_in_the_middle() {
    let mut host = host_with_receives(1);
    host.recv(send(First, 100, &pattern(MTU)).ack_req());
    assert_eq!(host.sent(), [ack(100, 0)], "the message is not complete");
}

#[test]
fn p4_9_a_gap_is_reported_once() {
    let mut host = host_with_receives(8);
    host.recv(send(Only, 103, b"d").ack_req());
    host.recv(send(Only, 104, b"e").ack_req());
    assert_eq!(host.sent(), [nak(100, NakCode::SequenceError, 0)]);
    host.recv(send(Only, 105, b"f").ack_req());
    assert_eq!(host.sent(), [], "once a gap");
    assert_eq!((host.received(), host.state()), (vec![], QpState::Rts));
    assert_eq!((host.count(Counter::OutOfSequence), host.count(Counter::GapDropped)), (1, 2));
}

#[test]
fn p4_9_a_new_gap_is_reported_again() {
    let mut host = host_with_receives(8);
    host.recv(send(Only, 101, b"b").ack_req());
    assert_eq!(host.sent(), [nak(100, NakCode::SequenceError, 0)]);
    host.recv(send(Only, 100, b"a").ack_req());
    host.recv(send(Only, 102, b"c").ack_req());
    assert_eq!(host.sent(), [ack(100, 1), nak(101, NakCode::SequenceError, 1)]);
    host.recv_all([send(Only, 101, b"b"), send(Only, 102, b"c").ack_req()]);
    assert_eq!(host.sent(), [ack(102, 3)]);
    assert_eq!(host.received(), ok([1, 2, 3]));
}

#[test]
fn p4_9_a_gap_inside_a_message_leaves_it_open() {
    let mut host = host_with_receives(1);
    let data = pattern(3 * MTU);
    host.recv(send(First, 100, &data[..MTU]));
    host.recv(send(Last, 102, &data[2 * MTU..]).ack_req());
    assert_eq!(host.sent(), [nak(101, NakCode::SequenceError, 0)]);
    host.recv(send(Middle, 101, &data[MTU..2 * MTU]));
    host.recv(send(Last, 102, &data[2 * MTU..]).ack_req());
    assert_eq!(host.sent(), [ack(102, 1)]);
    assert_eq!(host.bytes(0, data.len()), data);
}

#[test]
fn c17_duplicate_send_is_acked_not_executed() {
    let mut host = host_with_receives(2);
    host.recv(send(Only, 100, b"hello").ack_req());
    assert_eq!((host.sent(), host.received()), (vec![ack(100, 1)], ok([1])));
    for duplicate in [send(Only, 100, b"WORLD").ack_req(), send(Only, 100, b"WORLD")] {
        host.recv(duplicate);
        assert_eq!(host.sent(), [ack(100, 1)], "asked for or not (probe t01)");
    }
    assert_eq!((host.received(), host.bytes(0, 5)), (vec![], b"hello".to_vec()));
    assert_eq!(host.count(Counter::DuplicateRequest), 2);
    host.recv(send(Only, 101, b"next").ack_req());
    assert_eq!((host.sent(), host.received()), (vec![ack(101, 2)], ok([2])), "no receive was used up");
}

#[test]
fn c17_a_duplicate_is_answered_with_the_newest_psn() {
    let mut host = host_with_receives(4);
    host.recv_all((0..4).map(|n| send(Only, 100 + n, b"a")));
    assert_eq!(host.sent(), []);
    host.recv(send(Only, 101, b"a").ack_req());
    assert_eq!(host.sent(), [ack(103, 4)]);
}

#[test]
fn c17_errors_of_a_duplicate_are_not_reported() {
    let mut host = host_with_receives(2);
    host.recv(write(Only, 100, host.at(0), 1, b"a").ack_req());
    assert_eq!(host.sent(), [ack(100, 1)]);
    host.recv(write(Only, 100, FAR, 1, b"a"));
    host.recv(send(Middle, 100, b"short"));
    assert_eq!(host.sent(), [ack(100, 1)]);
    assert_eq!(host.state(), QpState::Rts);
}

#[test]
fn c17_a_duplicate_of_the_open_message_does_not_disturb_it() {
    let mut host = host_with_receives(1);
    let data = pattern(2 * MTU);
    host.recv(send(First, 100, &data[..MTU]));
    host.recv(send(First, 100, &[0xEE; MTU]));
    assert_eq!(host.sent(), [ack(100, 0)]);
    host.recv(send(Last, 101, &data[MTU..]).ack_req());
    assert_eq!(host.sent(), [ack(101, 1)]);
    assert_eq!(host.bytes(0, data.len()), data);
}

#[test]
fn c16_psns_wrap() {
    let mut host = Host::with(Setup { rq_psn: 0xFF_FFFA, ..Setup::default() });
    for index in 0..20 {
        host.post_recv(index, index * 64, 64);
    }
    for index in 0..20 {
        host.recv(send(Only, 0xFF_FFFA + index, b"a").ack_req());
        assert_eq!(host.sent(), [ack(0xFF_FFFA + index, index + 1)]);
    }
    assert_eq!(host.received(), ok(0..20));
    host.recv(send(Only, 0xFF_FFFF, b"a").ack_req());
    assert_eq!(host.sent(), [ack(13, 20)], "before the wrap is the past");
    host.recv(send(Only, 15, b"a").ack_req());
    assert_eq!(host.sent(), [nak(14, NakCode::SequenceError, 20)]);
}

#[test]
fn c16_half_the_circle_is_future_and_half_is_past() {
    for (ahead, expected) in [
        (1, nak(100, NakCode::SequenceError, 0)),
        (0x7F_FFFF, nak(100, NakCode::SequenceError, 0)),
        (0x80_0000, ack(99, 0)),
        (0xFF_FFFF, ack(99, 0)),
    ] {
        let mut host = host_with_receives(1);
        host.recv(send(Only, 100 + ahead, b"a"));
        assert_eq!(host.sent(), [expected], "{ahead:#x}");
    }
}
