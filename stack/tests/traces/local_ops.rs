//! Work requests of which nothing goes on the wire, between those that do: order, fences, repetition, failure
//! (protocol sections 4.5 and 4.16; C41, C43, C44).

use std::time::Duration;

use crate::common::*;
use Position::Only;
use uroce_stack::{BindMw, MwType};

const SEND: SendOp = SendOp::Send { immediate: None };
const FENCE: SendFlags = SendFlags::FENCE;
const UNREPORTED: SendFlags = SendFlags::empty();

fn psns(packets: &[Pkt]) -> Vec<u32> {
    packets.iter().map(|packet| packet.psn).collect()
}

/// A host, and the operations of C41: a bind, and the ends of that window and of a fast-registered region. Each of them
/// fails when it is carried out a second time.
fn with_local_operations() -> (Host, [SendOp; 3]) {
    let mut host = Host::open();
    let (_, region) = host.registered(64);
    let mw = host.window(MwType::Type2);
    let bind = host.bind(mw, 0, 8);
    let ends = [bind.rkey, region.rkey].map(|rkey| SendOp::LocalInvalidate { rkey });
    (host, [SendOp::BindMw(bind), ends[0], ends[1]])
}

/// SEND, bind, SEND, and both ends, as work requests 1 to 5. What leaves are the two SENDs.
fn posted() -> Host {
    let (mut host, [bind, end_window, end_region]) = with_local_operations();
    host.post_send(1, 4);
    host.post_bare(2, bind);
    host.post_send(3, 4);
    host.post_bare(4, end_window);
    host.post_bare(5, end_region);
    assert_eq!((psns(&host.sent()), host.done()), (vec![500, 501], vec![]));
    host
}

#[test]
fn c41_a_timeout_repeats_what_is_on_the_wire_and_no_local_operation() {
    let mut host = posted();
    host.advance(TIMEOUT);
    assert_eq!(psns(&host.sent()), [500], "the peer is asked whether it is there");
    host.recv(ack(500, 1));
    assert_eq!((psns(&host.sent()), host.done()), (vec![501], ok([1, 2])));
    host.recv(ack(501, 2));
    assert_eq!((host.sent(), host.done()), (vec![], ok([3, 4, 5])));
}

#[test]
fn c41_neither_does_a_gap_nor_a_missing_receive() {
    let mut host = posted();
    host.recv(nak(500, NakCode::SequenceError, 0));
    assert_eq!(psns(&host.sent()), [500, 501]);
    host.recv(rnr(500, 1, 0));
    host.advance(Duration::from_micros(10));
    assert_eq!((psns(&host.sent()), host.done()), (vec![500, 501], vec![]));
    host.recv(ack(501, 2));
    assert_eq!((host.sent(), host.done()), (vec![], ok(1..=5)));
}

#[test]
fn c41_the_timer_stops_with_the_last_acknowledgement() {
    let mut host = posted();
    host.recv(ack(501, 2));
    assert_eq!((host.sent(), host.done()), (vec![], ok(1..=5)));
    for _ in 0..100 {
        host.advance(TIMEOUT);
        assert_eq!(host.sent(), []);
    }
    assert_eq!((host.count(Counter::LocalAckTimeoutErr), host.count(Counter::RetransmittedPkts)), (0, 0));
    assert_eq!(host.engine.next_deadline(), None);
}

#[test]
fn a_bind_is_carried_out_at_once_and_reports_in_its_turn() {
    let (mut host, [bind, ..]) = with_local_operations();
    let SendOp::BindMw(window) = bind else { panic!("the first is the bind") };
    host.post_send(1, 4);
    host.post_bare(2, bind);
    assert_eq!((psns(&host.sent()), host.done()), (vec![500], vec![]), "not before the SEND");
    host.recv(read(100, RemoteAddr { va: window.addr, rkey: window.rkey }, 1));
    assert_eq!(host.sent(), [read_response(Only, 100, 1, &[0])], "but the peer gets in");
    host.recv(ack(500, 1));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1, 2])));
}

/// The peer still writes to the window while the requests before its end are not complete.
#[test]
fn c43_an_invalidation_waits_for_everything_before_it() {
    let mut host = Host::open();
    let window = host.bound(MwType::Type2, 0, 8);
    host.post_send(1, 4);
    host.post_read(2, 4);
    host.post_bare(3, SendOp::LocalInvalidate { rkey: window.rkey });
    host.post_send(4, 4);
    assert_eq!(psns(&host.sent()), [500, 501], "and holds up what follows it");
    let write = |psn| write(Only, psn, window, 1, b"a").ack_req();
    host.recv(write(100));
    host.recv(ack(500, 1));
    assert_eq!((host.sent(), host.done()), (vec![ack(100, 1)], ok([1])));
    host.recv(write(101));
    assert_eq!(host.sent(), [ack(101, 2)], "the READ is not complete");
    host.recv(read_response(Only, 501, 2, &[0; 4]));
    assert_eq!((psns(&host.sent()), host.done()), (vec![502], ok([2, 3])));
    host.recv(write(102));
    assert_eq!(host.sent(), [nak(102, NakCode::RemoteAccessError, 2)]);
}

#[test]
fn c43_a_fenced_bind_waits_for_reads_and_not_for_sends() {
    let (mut host, [bind, ..]) = with_local_operations();
    let SendOp::BindMw(window) = bind else { panic!("the first is the bind") };
    host.post_read(1, 4);
    host.post_send(2, 4);
    host.post(3, bind, FENCE, &[]);
    assert_eq!(psns(&host.sent()), [500, 501]);
    host.recv(read_response(Only, 500, 1, &[0; 4]));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1])));
    host.recv(write(Only, 100, RemoteAddr { va: window.addr, rkey: window.rkey }, 1, b"a").ack_req());
    assert_eq!(host.sent(), [ack(100, 1)], "it is bound though the SEND is not acknowledged");
}

#[test]
fn c44_a_fence_behind_unsignaled_local_operations_holds_nothing_up() {
    let setup = Setup { sq_sig_all: false, ..Setup::default() };
    let mut host = Host::with(setup);
    host.grant(Access::MW_BIND);
    let mw = host.window(MwType::Type2);
    let (_, mr) = host.allocated(64);
    let bind = host.bind(mw, 0, 8);
    let register = register(mr, 64);
    host.post_bare(1, SendOp::BindMw(bind));
    host.post_bare(2, SendOp::RegisterMr(register));
    host.post(3, SEND, FENCE | SendFlags::SIGNALED, &[host.sge(0, 4)]);
    host.post_bare(4, SendOp::LocalInvalidate { rkey: bind.rkey });
    host.post(5, SEND, FENCE | SendFlags::SIGNALED, &[host.sge(0, 4)]);
    assert_eq!(psns(&host.sent()), [500]);
    host.recv(ack(500, 1));
    assert_eq!((psns(&host.sent()), host.done()), (vec![501], ok([3])));
    host.recv(ack(501, 2));
    assert_eq!((host.sent(), host.done()), (vec![], ok([5])));
}

#[test]
fn c44_a_fence_behind_a_read_and_a_local_operation_waits_for_the_read_alone() {
    let (mut host, [bind, ..]) = with_local_operations();
    host.post_read(1, 4);
    host.post_bare(2, bind);
    host.post(3, SEND, FENCE, &[host.sge(0, 4)]);
    assert_eq!(psns(&host.sent()), [500]);
    host.recv(read_response(Only, 500, 1, &[0; 4]));
    assert_eq!((psns(&host.sent()), host.done()), (vec![501], ok([1, 2])));
}

#[test]
fn local_operations_free_their_places_in_the_queue() {
    for sq_sig_all in [true, false] {
        let mut host = Host::with(Setup { depth: 4, sq_sig_all, ..Setup::default() });
        host.grant(Access::MW_BIND);
        let mw = host.window(MwType::Type1);
        for round in 0..100 {
            let bind = BindMw { rkey: mw, ..host.bind(mw, round, 8) };
            for wr_id in 0..4 {
                host.post_bare(wr_id, SendOp::BindMw(bind));
            }
            let done = if sq_sig_all { ok(0..4) } else { vec![] };
            assert_eq!((host.sent(), host.done()), (vec![], done));
        }
    }
}

#[test]
fn c52_what_cannot_be_invalidated_fails_locally_and_reports_though_unsignaled() {
    let cases: [fn(&mut Host) -> u32; 5] = [
        |host| host.keys.rkey,
        |host| !host.keys.rkey,
        |host| host.bound(MwType::Type1, 0, 8).rkey,
        |host| host.window(MwType::Type2),
        |host| host.allocated(64).1,
    ];
    for (index, key) in cases.into_iter().enumerate() {
        let mut host = Host::open();
        let rkey = key(&mut host);
        host.post_recv(9, 0, 8);
        host.post_send(1, 4);
        host.post(2, SendOp::LocalInvalidate { rkey }, UNREPORTED, &[]);
        host.post_send(3, 4);
        assert_eq!(psns(&host.sent()), [500], "case {index}");
        host.recv(ack(500, 1));
        assert_eq!(host.sent(), []);
        let end = [(1, WcStatus::Success), (2, WcStatus::LocQpOpErr), (3, WcStatus::WrFlushErr)];
        assert_eq!((host.done(), host.received()), (end.to_vec(), flushed([9])), "case {index}");
        assert_eq!(host.state(), QpState::Err, "case {index}");
    }
}

/// What was bound stays bound: a flushed request may or may not have taken effect (section 4.16).
#[test]
fn a_local_operation_behind_a_failure_is_flushed_though_it_was_carried_out() {
    let (mut host, [bind, ..]) = with_local_operations();
    host.post_send(1, 4);
    host.post_bare(2, bind);
    assert_eq!(psns(&host.sent()), [500]);
    host.recv(nak(500, NakCode::InvalidRequest, 0));
    assert_eq!(host.sent(), []);
    assert_eq!(host.done(), [(1, WcStatus::RemInvReqErr), (2, WcStatus::WrFlushErr)]);
    assert!(host.engine.deregister_mr(host.keys.lkey).is_err(), "the window is in the way");
}

#[test]
fn in_error_local_operations_are_flushed_and_not_carried_out() {
    let (mut host, [bind, ..]) = with_local_operations();
    host.modify(&QpAttr::to(QpState::Err));
    host.post_bare(1, bind);
    assert_eq!((host.sent(), host.done()), (vec![], flushed([1])));
    assert!(host.engine.deregister_mr(host.keys.lkey).is_ok(), "no window is bound");
}

#[test]
fn in_sqd_local_operations_wait_like_all_others() {
    let (mut host, [bind, ..]) = with_local_operations();
    host.modify(&QpAttr::to(QpState::Sqd));
    host.post_bare(1, bind);
    assert_eq!((host.sent(), host.done()), (vec![], vec![]));
    host.modify(&QpAttr::to(QpState::Rts));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1])));
}

/// SQD with a bind that was carried out behind a SEND: it is drained when both are complete.
#[test]
fn p4_15_sqd_is_drained_when_started_local_operations_have_ended() {
    let (mut host, [bind, ..]) = with_local_operations();
    host.post_send(1, 4);
    host.post_bare(2, bind);
    assert_eq!(psns(&host.sent()), [500]);
    host.modify(&QpAttr { en_sqd_async_notify: Some(true), ..QpAttr::to(QpState::Sqd) });
    assert_eq!(host.events(), []);
    host.recv(ack(500, 1));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1, 2])));
    assert_eq!(host.events(), [AsyncEvent::SqDrained(host.qpn)]);
}

#[test]
fn a_local_operation_carries_no_data() {
    let (mut host, operations) = with_local_operations();
    for op in operations {
        for data in [Gather::Sges(&[host.sge(0, 1)]), Gather::Inline(b"a")] {
            let wr = SendWr { wr_id: 1, op, flags: UNREPORTED, data, to: Recipient::Peer };
            assert!(matches!(host.try_post(&wr), Err(PostError::Invalid(_))), "{op:?}");
        }
    }
}
