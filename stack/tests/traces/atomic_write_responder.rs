//! The responder and ATOMIC WRITE (IBTA A19; protocol sections 2.4, 4.6 and 4.9).

use crate::common::*;
use Position::{First, Only};
use uroce_stack::wire::Operation;

const INVALID: NakCode = NakCode::InvalidRequest;

#[test]
fn in_order_is_placed_as_it_came_and_answered_unasked() {
    let mut host = Host::new();
    host.recv(atomic_write(100, host.at(8), b"ABCDEFGH").ack_req());
    host.recv(atomic_write(101, host.at(16), b"in order"));
    assert_eq!(host.sent(), [written(100, 1), written(101, 2)]);
    assert_eq!(host.bytes(8, 16), b"ABCDEFGHin order", "section 2.3: no byte is swapped");
    assert_eq!(host.count(Counter::RxAtomicWriteRequests), 2);
}

#[test]
fn duplicate_is_answered_and_not_placed_again() {
    let mut host = Host::new();
    host.recv(atomic_write(100, host.at(0), b"first...").ack_req());
    assert_eq!(host.sent(), [written(100, 1)]);
    host.fill(0, b"since...");
    for _ in 0..2 {
        host.recv(atomic_write(100, host.at(0), b"first...").ack_req());
        assert_eq!((host.sent(), host.bytes(0, 8)), (vec![written(100, 1)], b"since...".to_vec()));
    }
}

#[test]
fn duplicate_is_answered_without_its_region() {
    let mut host = Host::new();
    host.recv(atomic_write(100, host.at(0), &[1; 8]));
    assert_eq!(host.sent(), [written(100, 1)]);
    host.engine.deregister_mr(host.keys.lkey).expect("the region is registered");
    host.recv(atomic_write(100, host.at(0), &[1; 8]));
    assert_eq!(host.sent(), [written(100, 1)]);
}

#[test]
fn duplicate_that_is_not_answered_yet_is_answered_once() {
    let mut host = Host::new();
    host.recv(atomic_write(100, host.at(0), &[1; 8]));
    host.recv(atomic_write(100, host.at(0), &[2; 8]));
    assert_eq!((host.sent(), host.bytes(0, 8)), (vec![written(100, 1)], vec![1; 8]));
}

#[test]
fn past_that_nothing_is_kept_of_is_dropped() {
    let mut host = Host::new();
    host.recv(atomic_write(99, host.at(0), &[1; 8]));
    assert_eq!((host.sent(), host.word(0)), (vec![], 0));
    for n in 0..5 {
        host.recv(atomic_write(100 + n, host.at(0), &[n as u8; 8]));
        assert_eq!(host.sent(), [written(100 + n, n + 1)]);
    }
    host.recv(atomic_write(100, host.at(0), &[0; 8]));
    assert_eq!((host.sent(), host.bytes(0, 8)), (vec![], vec![4; 8]), "four are kept");
    assert_eq!(host.count(Counter::DuplicateDropped), 2);
}

/// What was answered at that PSN was another kind of request.
#[test]
fn a_read_does_not_answer_for_an_atomic_write() {
    let mut host = Host::new();
    host.recv(read(100, host.at(0), 0));
    assert_eq!(host.sent(), [written(100, 1)], "with the same packet");
    host.recv(atomic_write(100, host.at(0), &[1; 8]));
    assert_eq!((host.sent(), host.word(0)), (vec![], 0));
}

#[test]
fn future_is_a_gap() {
    let mut host = Host::new();
    host.recv(atomic_write(101, host.at(0), &[1; 8]));
    assert_eq!((host.sent(), host.word(0)), (vec![nak(100, NakCode::SequenceError, 0)], 0));
}

#[test]
fn c26_s22_it_carries_exactly_eight_bytes() {
    for (length, payload) in
        [(0, 0), (4, 4), (16, 16), (0, 8), (8, 0), (8, 4), (8, 7), (8, 12), (16, 8), (7, 7)]
    {
        let mut host = Host::new();
        let reth = reth(host.at(8), length);
        host.recv(Pkt::new(100, Operation::AtomicWrite(reth), &vec![7; payload]));
        assert_eq!(host.sent(), [nak(100, INVALID, 0)], "length {length}, {payload} bytes");
        assert_eq!(host.bytes(0, 32), [0; 32], "length {length}, {payload} bytes");
        assert_eq!((host.state(), host.events()), (QpState::Err, vec![AsyncEvent::QpReqErr(host.qpn)]));
    }
}

#[test]
fn misaligned_is_invalid_and_touches_nothing() {
    for offset in 1..8 {
        let mut host = Host::new();
        host.recv(atomic_write(100, host.at(offset), &[7; 8]));
        assert_eq!((host.sent(), host.bytes(0, 16)), (vec![nak(100, INVALID, 0)], vec![0; 16]));
    }
}

#[test]
fn the_key_is_checked_before_the_alignment() {
    let mut host = Host::new();
    host.recv(atomic_write(100, RemoteAddr { va: VA + 1, ..FAR }, &[7; 8]));
    assert_eq!(host.sent(), [nak(100, NakCode::RemoteAccessError, 0)]);
}

#[test]
fn p4_14_it_takes_the_right_to_write() {
    let without = |access| Setup { access, ..Setup::default() };
    let mut host = Host::with(without(Access::REMOTE_READ | Access::REMOTE_ATOMIC));
    host.recv(atomic_write(100, host.at(0), &[7; 8]));
    assert_eq!((host.sent(), host.word(0)), (vec![nak(100, INVALID, 0)], 0), "of the queue pair");
    let mut host = Host::with(without(Access::REMOTE_WRITE));
    host.recv(atomic_write(100, host.at(0), &[7; 8]));
    assert_eq!(host.sent(), [written(100, 1)], "and no other");
    let mut host = Host::new();
    let access = Access::LOCAL_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
    let keys = host.engine.register_mr(host.pd, Region::alloc(64), 0, access).expect("room");
    host.recv(atomic_write(100, RemoteAddr { va: 0, rkey: keys.rkey }, &[7; 8]));
    assert_eq!(host.sent(), [nak(100, NakCode::RemoteAccessError, 0)], "of the region");
}

#[test]
fn c30_it_counts_against_the_depth() {
    let mut host = Host::with(Setup { max_dest_rd_atomic: 2, ..Setup::default() });
    host.recv(atomic_write(100, host.at(0), &[1; 8]));
    host.recv(read(101, host.at(0), 1));
    host.recv(atomic_write(102, host.at(0), &[3; 8]));
    assert_eq!(host.sent(), [written(100, 1), read_response(Only, 101, 2, &[1]), nak(102, INVALID, 2)]);
    assert_eq!(host.bytes(0, 8), [1; 8]);
}

#[test]
fn c30_what_is_answered_again_does_not_count() {
    let mut host = Host::with(Setup { max_dest_rd_atomic: 1, ..Setup::default() });
    host.recv(atomic_write(100, host.at(0), &[1; 8]));
    assert_eq!(host.sent(), [written(100, 1)]);
    host.recv(atomic_write(100, host.at(0), &[1; 8]));
    host.recv(atomic_write(101, host.at(0), &[2; 8]));
    assert_eq!(host.sent().last(), Some(&written(101, 2)));
    assert_eq!(host.state(), QpState::Rts);
}

#[test]
fn c67_with_depth_0_it_is_invalid() {
    let mut host = Host::with(Setup { max_dest_rd_atomic: 0, ..Setup::default() });
    host.recv(atomic_write(100, host.at(0), &[1; 8]));
    assert_eq!((host.sent(), host.word(0)), (vec![nak(100, INVALID, 0)], 0));
}

#[test]
fn p4_5_it_is_ordered_with_what_is_around_it() {
    let mut host = Host::new();
    host.post_recv(1, 64, 8);
    host.recv(write(Only, 100, host.at(0), 8, &1u64.to_ne_bytes()));
    host.recv(atomic_write(101, host.at(0), &2u64.to_ne_bytes()));
    host.recv(fetch_add(102, host.at(0), 1));
    host.recv(send(Only, 103, b"done").ack_req());
    assert_eq!(host.sent(), [written(101, 2), atomic_ack(102, 3, 2), ack(103, 4)]);
    assert_eq!((host.word(0), host.received()), (3, ok([1])));
}

#[test]
fn it_does_not_stand_inside_a_message() {
    let mut host = Host::new();
    host.recv(write(First, 100, host.at(0), 2048, &[1; 1024]));
    host.recv(atomic_write(101, host.at(0), &[7; 8]));
    assert_eq!((host.sent(), host.state()), (vec![nak(101, INVALID, 0)], QpState::Err));
}
