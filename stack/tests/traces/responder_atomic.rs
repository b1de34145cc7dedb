//! The responder and atomic operations.

use crate::common::*;
use Position::Only;

#[test]
fn fetch_add_in_order_answers_with_the_former_value() {
    let mut host = Host::new();
    host.recv(fetch_add(100, host.at(8), 5).ack_req());
    host.recv(fetch_add(101, host.at(8), u64::MAX).ack_req());
    assert_eq!(host.sent(), [atomic_ack(100, 1, 0), atomic_ack(101, 2, 5)]);
    assert_eq!(host.word(8), 4, "C59: host order; modulo 2^64");
}

#[test]
fn compare_swap_stores_only_when_equal() {
    let mut host = Host::new();
    host.fill(16, &7u64.to_ne_bytes());
    host.recv(compare_swap(100, host.at(16), 6, 1).ack_req());
    host.recv(compare_swap(101, host.at(16), 7, 2).ack_req());
    host.recv(compare_swap(102, host.at(16), 7, 3).ack_req());
    assert_eq!(host.sent(), [atomic_ack(100, 1, 7), atomic_ack(101, 2, 7), atomic_ack(102, 3, 2)]);
    assert_eq!(host.word(16), 2);
}

#[test]
fn atomics_are_answered_unasked() {
    let mut host = Host::new();
    host.recv(fetch_add(100, host.at(0), 1));
    assert_eq!(host.sent(), [atomic_ack(100, 1, 0)]);
}

#[test]
fn duplicate_atomic_is_answered_from_what_is_kept() {
    let mut host = Host::new();
    host.recv(fetch_add(100, host.at(0), 3).ack_req());
    host.recv(compare_swap(101, host.at(0), 3, 9).ack_req());
    assert_eq!(host.sent(), [atomic_ack(100, 1, 0), atomic_ack(101, 2, 3)]);
    host.recv(fetch_add(100, host.at(0), 3).ack_req());
    host.recv(compare_swap(101, host.at(0), 3, 9));
    assert_eq!(host.sent(), [atomic_ack(100, 2, 0), atomic_ack(101, 2, 3)]);
    assert_eq!(host.word(0), 9, "carried out once");
}

#[test]
fn duplicate_atomic_is_answered_without_its_region() {
    let mut host = Host::new();
    host.recv(fetch_add(100, host.at(0), 3).ack_req());
    assert_eq!(host.sent(), [atomic_ack(100, 1, 0)]);
    host.engine.deregister_mr(host.keys.lkey).expect("the region is registered");
    host.recv(fetch_add(100, host.at(0), 3).ack_req());
    assert_eq!(host.sent(), [atomic_ack(100, 1, 0)]);
}

#[test]
fn duplicate_atomic_that_nothing_is_kept_of_is_dropped() {
    let mut host = Host::new();
    host.recv(fetch_add(99, host.at(0), 3).ack_req());
    assert_eq!((host.sent(), host.word(0)), (vec![], 0));
    for n in 0..5 {
        host.recv(fetch_add(100 + n, host.at(0), 1));
        assert_eq!(host.sent(), [atomic_ack(100 + n, n + 1, n.into())]);
    }
    host.recv(fetch_add(100, host.at(0), 1));
    assert_eq!(host.sent(), [], "four are kept");
    assert_eq!((host.word(0), host.state()), (5, QpState::Rts));
}

#[test]
fn future_atomic_is_a_gap() {
    let mut host = Host::new();
    host.recv(fetch_add(101, host.at(0), 1).ack_req());
    assert_eq!((host.sent(), host.word(0)), (vec![nak(100, NakCode::SequenceError, 0)], 0));
}

#[test]
fn c27_a_failed_atomic_is_refused_with_a_plain_acknowledge() {
    let mut host = Host::new();
    host.recv(fetch_add(100, FAR, 1).ack_req());
    assert_eq!(host.sent(), [nak(100, NakCode::RemoteAccessError, 0)]);
    assert_eq!((host.state(), host.events()), (QpState::Err, vec![AsyncEvent::QpAccessErr(host.qpn)]));
}

#[test]
fn c59_misaligned_atomics_are_invalid_and_touch_nothing() {
    for offset in 1..8 {
        let mut host = Host::new();
        host.recv(fetch_add(100, host.at(offset), 1).ack_req());
        assert_eq!(host.sent(), [nak(100, NakCode::InvalidRequest, 0)], "{offset}");
        assert_eq!((host.bytes(0, 16), host.state()), (vec![0; 16], QpState::Err));
    }
}

#[test]
fn c59_the_key_is_checked_before_the_alignment() {
    let mut host = Host::new();
    host.recv(compare_swap(100, RemoteAddr { va: VA + 1, ..FAR }, 0, 1).ack_req());
    assert_eq!(host.sent(), [nak(100, NakCode::RemoteAccessError, 0)], "probe: misaligned with bad key");
}

#[test]
fn c30_reads_and_atomics_share_the_depth() {
    let mut host = Host::with(Setup { max_dest_rd_atomic: 2, ..Setup::default() });
    host.recv(read(100, host.at(0), 1).ack_req());
    host.recv(fetch_add(101, host.at(0), 1).ack_req());
    host.recv(fetch_add(102, host.at(0), 1).ack_req());
    let sent = host.sent();
    assert_eq!(sent.len(), 3);
    assert_eq!(sent[2], nak(102, NakCode::InvalidRequest, 2));
    assert_eq!(host.word(0), 1);
}

#[test]
fn a_duplicate_of_an_atomic_not_yet_answered_is_answered_once() {
    let mut host = Host::new();
    host.recv(fetch_add(100, host.at(0), 1).ack_req());
    host.recv(fetch_add(100, host.at(0), 1).ack_req());
    assert_eq!(host.sent(), [atomic_ack(100, 1, 0)]);
}

/// Both answers were slow and the peer asked again; then they arrived and the peer went on.
#[test]
fn c30_late_duplicates_of_atomics_do_not_count() {
    let mut host = Host::with(Setup { max_dest_rd_atomic: 2, ..Setup::default() });
    host.recv_all([100, 101].map(|psn| fetch_add(psn, host.at(0), 1)));
    assert_eq!(host.sent().len(), 2);
    host.recv_all([100, 101, 102, 103].map(|psn| fetch_add(psn, host.at(0), 1)));
    let sent = host.sent();
    assert_eq!(sent[sent.len() - 2..], [atomic_ack(102, 3, 2), atomic_ack(103, 4, 3)]);
    assert_eq!(host.state(), QpState::Rts);
}

#[test]
fn an_atomic_between_messages_is_ordered_with_them() {
    let mut host = Host::new();
    host.post_recv(1, 64, 8);
    host.recv(write(Only, 100, host.at(0), 8, &41u64.to_ne_bytes()));
    host.recv(fetch_add(101, host.at(0), 1).ack_req());
    host.recv(send(Only, 102, b"done").ack_req());
    assert_eq!(host.sent(), [atomic_ack(101, 2, 41), ack(102, 3)]);
    assert_eq!((host.word(0), host.received()), (42, ok([1])));
}
