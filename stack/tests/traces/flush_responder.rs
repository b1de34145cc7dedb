//! The responder and FLUSH (IBTA A19; protocol sections 2.4, 4.6 and 4.9).

use crate::common::*;
use Position::Only;
use uroce_stack::wire::Feth;

const INVALID: NakCode = NakCode::InvalidRequest;
const REFUSED: NakCode = NakCode::RemoteAccessError;

fn psns(packets: &[Pkt]) -> Vec<u32> {
    packets.iter().map(|packet| packet.psn).collect()
}

#[test]
fn in_order_is_answered_unasked() {
    let mut host = Host::open();
    host.recv(write(Only, 100, host.at(0), 4, b"data"));
    host.recv(flush(101, host.at(0), 4));
    host.recv(flush(102, host.at(0), AREA as u32).ack_req());
    assert_eq!((host.sent(), host.bytes(0, 4)), (vec![written(101, 2), written(102, 3)], b"data".to_vec()));
    assert_eq!(host.count(Counter::RxFlushRequests), 2);
}

#[test]
fn duplicate_is_answered_again() {
    let mut host = Host::open();
    host.recv(flush(100, host.at(0), 4));
    assert_eq!(host.sent(), [written(100, 1)]);
    for _ in 0..2 {
        host.recv(flush(100, host.at(0), 4));
        assert_eq!(host.sent(), [written(100, 1)]);
    }
    assert_eq!((host.count(Counter::RxFlushRequests), host.count(Counter::DuplicateRequest)), (1, 2));
}

#[test]
fn c17_errors_of_a_duplicate_are_not_reported() {
    let mut host = Host::open();
    host.recv(flush(100, host.at(0), 4));
    assert_eq!(host.sent(), [written(100, 1)]);
    host.engine.deregister_mr(host.keys.lkey).expect("the region is registered");
    host.recv(flush(100, host.at(0), 4));
    host.recv(flush_as(100, Feth { placement: 0, selectivity: 3 }, FAR, 4));
    assert_eq!((host.sent(), host.state()), (vec![written(100, 1)], QpState::Rts), "one for both");
}

#[test]
fn future_is_a_gap() {
    let mut host = Host::open();
    host.recv(flush(101, host.at(0), 4));
    assert_eq!(host.sent(), [nak(100, NakCode::SequenceError, 0)]);
}

#[test]
fn p4_4_it_is_answered_behind_what_came_before() {
    let mut host = Host::open();
    host.recv(write(Only, 100, host.at(0), 4, b"data").ack_req());
    host.recv(read(101, host.at(0), 2048));
    host.recv(flush(103, host.at(0), 4));
    host.recv(write(Only, 104, host.at(0), 4, b"more").ack_req());
    let sent = host.sent();
    assert_eq!(psns(&sent), [100, 101, 102, 103, 104]);
    assert_eq!(sent[3..], [written(103, 3), ack(104, 4)]);
}

/// The queue pair's right is looked at first (section 5.2, step 3), then that of the region.
#[test]
fn p4_14_it_takes_the_right_to_flush() {
    let mut host = Host::new();
    host.grant(Access::FLUSH_GLOBAL);
    host.recv(flush(100, host.at(0), 4));
    assert_eq!((host.sent(), host.state()), (vec![nak(100, INVALID, 0)], QpState::Err), "of the queue pair");
    let mut host = Host::open();
    host.grant(Access::empty());
    host.recv(flush(100, host.at(0), 4));
    assert_eq!((host.sent(), host.state()), (vec![nak(100, REFUSED, 0)], QpState::Err), "of the region");
    let mut host = Host::with(Setup { access: Access::FLUSH_GLOBAL, ..Setup::default() });
    host.grant(Access::FLUSH_GLOBAL);
    host.recv(flush(100, host.at(0), 4));
    assert_eq!(host.sent(), [written(100, 1)], "and no other");
}

/// No region here can be registered as persistent, so nobody is told that anything is.
#[test]
fn nothing_is_flushed_to_persistence() {
    let everything = Access::REMOTE | Access::FLUSH_GLOBAL | Access::FLUSH_PERSISTENT;
    for placement in [Feth::PERSISTENT, Feth::PERSISTENT | Feth::GLOBAL] {
        let feth = Feth { placement, selectivity: Feth::RANGE };
        let mut host = Host::open();
        host.recv(flush_as(100, feth, host.at(0), 4));
        assert_eq!(host.sent(), [nak(100, INVALID, 0)], "the queue pair has not the right");
        let mut host = Host::with(Setup { access: everything, ..Setup::default() });
        host.grant(Access::FLUSH_GLOBAL);
        host.recv(flush_as(100, feth, host.at(0), 4));
        assert_eq!(host.sent(), [nak(100, REFUSED, 0)], "the region has not the right");
    }
}

#[test]
fn a_flush_to_nowhere_is_invalid() {
    for placement in [0, 4, 8] {
        let mut host = Host::open();
        host.recv(flush_as(100, Feth { placement, selectivity: Feth::RANGE }, host.at(0), 4));
        assert_eq!((host.sent(), host.state()), (vec![nak(100, INVALID, 0)], QpState::Err), "{placement}");
    }
}

#[test]
fn a_range_lies_inside_its_region() {
    let area = AREA as u64;
    for (offset, length) in
        [(0, AREA as u32 + 1), (area, 1), (area + 1, 0), (u64::MAX - VA, 2), (0, u32::MAX)]
    {
        let mut host = Host::open();
        let remote = RemoteAddr { va: VA.wrapping_add(offset), rkey: host.keys.rkey };
        host.recv(flush(100, remote, length));
        assert_eq!(host.sent(), [nak(100, REFUSED, 0)], "{offset} {length}");
    }
}

#[test]
fn a_whole_region_is_named_by_its_key_alone() {
    let feth = Feth { placement: Feth::GLOBAL, selectivity: Feth::REGION };
    let mut host = Host::open();
    host.recv(flush_as(100, feth, RemoteAddr { va: 0, rkey: host.keys.rkey }, u32::MAX));
    assert_eq!(host.sent(), [written(100, 1)]);
    host.recv(flush_as(101, feth, RemoteAddr { rkey: !host.keys.rkey, ..host.at(0) }, 4));
    assert_eq!(host.sent(), [nak(101, REFUSED, 1)]);
}

/// Unlike a READ of nothing (C22): a FLUSH of no bytes still names the region.
#[test]
fn a_flush_of_nothing_needs_its_key() {
    let mut host = Host::open();
    host.recv(flush(100, host.at(0), 0));
    assert_eq!(host.sent(), [written(100, 1)]);
    host.recv(flush(101, FAR, 0));
    assert_eq!(host.sent(), [nak(101, REFUSED, 1)]);
}

#[test]
fn p4_6_it_does_not_count_against_the_depth() {
    let access = Access::REMOTE | Access::FLUSH_GLOBAL;
    for max_dest_rd_atomic in [0, 1] {
        let mut host = Host::with(Setup { access, max_dest_rd_atomic, ..Setup::default() });
        host.grant(Access::FLUSH_GLOBAL);
        host.recv_all((100..103).map(|psn| flush(psn, host.at(0), 4)).collect::<Vec<_>>());
        assert_eq!(host.sent(), [written(100, 1), written(101, 2), written(102, 3)]);
        assert_eq!(host.state(), QpState::Rts);
    }
}

/// More than the queue of responses holds: what found no room is asked for again, and nothing is lost for good.
#[test]
fn a_flood_of_flushes_is_answered_in_the_end() {
    let mut host = Host::open();
    let requests: Vec<Pkt> = (100..160).map(|psn| flush(psn, host.at(0), 4)).collect();
    let mut answered = 0;
    for _ in 0..60 {
        host.recv_all(requests[answered..].iter().cloned());
        let sent = host.sent();
        let expected: Vec<u32> = (100 + answered as u32..).take(sent.len()).collect();
        assert_eq!(psns(&sent), expected, "in order, each once");
        answered += sent.len();
        if answered == requests.len() {
            return assert_eq!((host.state(), host.count(Counter::RxFlushRequests)), (QpState::Rts, 60));
        }
    }
    panic!("{answered} of 60");
}
