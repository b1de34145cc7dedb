//! The responder without a receive (protocol section 4.7).

use crate::common::*;
use Position::{First, Last, Middle, Only};

const MTU: usize = 1024;

#[test]
fn p4_7_a_send_without_a_receive_is_refused_for_now() {
    let mut host = Host::new();
    host.recv(send(Only, 100, b"a").ack_req());
    assert_eq!(host.sent(), [rnr(100, 14, 0)]);
    assert_eq!((host.state(), host.events()), (QpState::Rts, vec![]));
    assert_eq!(host.count(Counter::SendRnrErr), 1);
}

#[test]
fn p4_7_what_follows_is_dropped_in_silence() {
    let mut host = Host::new();
    host.recv(send(Only, 100, b"a").ack_req());
    host.recv(send(Only, 101, b"b").ack_req());
    assert_eq!(host.sent(), [rnr(100, 14, 0)]);
    host.recv(send(Only, 102, b"c").ack_req());
    host.recv(write(Only, 103, host.at(0), 1, b"d").ack_req());
    assert_eq!(host.sent(), []);
    assert_eq!(host.bytes(0, 1), [0]);
}

#[test]
fn p4_7_it_goes_on_when_a_receive_is_there() {
    let mut host = Host::new();
    host.recv(send(Only, 100, b"a").ack_req());
    assert_eq!(host.sent(), [rnr(100, 14, 0)]);
    host.recv(send(Only, 100, b"a").ack_req());
    assert_eq!(host.sent(), [rnr(100, 14, 0)], "each attempt is answered");
    host.post_recv(1, 0, 16);
    host.recv(send(Only, 100, b"a").ack_req());
    assert_eq!((host.sent(), host.received()), (vec![ack(100, 1)], ok([1])));
}

#[test]
fn p4_7_of_many_messages_those_with_receives_are_acknowledged_first() {
    let mut host = Host::new();
    for index in 0..4 {
        host.post_recv(index, 64 * index, 64);
    }
    host.recv_all((0..16).map(|n| send(Only, 100 + n, b"a").ack_req()));
    assert_eq!(host.sent(), [ack(103, 4), rnr(104, 14, 4)], "probe t04, without rxe's NAK 60 behind it");
    assert_eq!(host.received(), ok(0..4));
}

#[test]
fn a_gap_after_recovery_is_reported_again() {
    let mut host = Host::new();
    host.recv(send(Only, 100, b"a").ack_req());
    assert_eq!(host.sent(), [rnr(100, 14, 0)]);
    host.post_recv(1, 0, 16);
    host.post_recv(2, 0, 16);
    host.recv(send(Only, 100, b"a").ack_req());
    host.recv(send(Only, 102, b"c").ack_req());
    assert_eq!(host.sent(), [ack(100, 1), nak(101, NakCode::SequenceError, 1)]);
}

#[test]
fn only_the_first_packet_of_a_send_needs_a_receive() {
    let mut host = Host::new();
    let data = pattern(2 * MTU);
    host.recv(send(First, 100, &data[..MTU]));
    assert_eq!(host.sent(), [rnr(100, 14, 0)]);
    host.post_recv(1, 0, 4096);
    host.recv(send(First, 100, &data[..MTU]));
    host.recv(send(Last, 101, &data[MTU..]).ack_req());
    assert_eq!((host.sent(), host.received()), (vec![ack(101, 1)], ok([1])));
}

#[test]
fn the_timer_that_is_told_can_be_changed_while_ready() {
    let mut host = Host::new();
    host.modify(&QpAttr { min_rnr_timer: Some(31), ..QpAttr::default() });
    host.recv(send(Only, 100, b"a").ack_req());
    assert_eq!(host.sent(), [rnr(100, 31, 0)], "C40");
    host.modify(&QpAttr { min_rnr_timer: Some(0), ..QpAttr::default() });
    host.recv(send(Only, 100, b"a").ack_req());
    assert_eq!(host.sent(), [rnr(100, 0, 0)]);
}

#[test]
fn duplicates_are_answered_while_there_is_no_receive() {
    let mut host = Host::new();
    host.post_recv(1, 0, 16);
    host.recv(send(Only, 100, b"a").ack_req());
    host.recv(send(Only, 101, b"b").ack_req());
    assert_eq!(host.sent(), [ack(100, 1), rnr(101, 14, 1)]);
    host.recv(send(Only, 100, b"a").ack_req());
    assert_eq!(host.sent(), [ack(100, 1)]);
}

#[test]
fn reads_and_plain_writes_need_no_receive() {
    let mut host = Host::new();
    host.recv(write(First, 100, host.at(0), 3000, &[7; MTU]));
    host.recv(write_more(Middle, 101, &[7; MTU]));
    host.recv(write_more(Last, 102, &[7; 3000 - 2 * MTU]).ack_req());
    host.recv(read(103, host.at(0), 2));
    host.recv(fetch_add(104, host.at(4096), 1));
    assert_eq!(host.sent(), [ack(102, 1), read_response(Only, 103, 2, &[7, 7]), atomic_ack(104, 3, 0)]);
}
