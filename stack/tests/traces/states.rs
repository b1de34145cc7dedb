//! The states of a queue pair (protocol sections 4.15 and 4.16; C60, C61, C69).

use crate::common::*;
use Position::Only;

fn post_both(host: &mut Host) -> (Result<(), PostError>, Result<(), PostError>) {
    let sge = [host.sge(0, 4)];
    let op = SendOp::Send { immediate: None };
    let sent = host.try_post(&SendWr {
        wr_id: 1,
        op,
        flags: SendFlags::empty(),
        data: Gather::Sges(&sge),
        to: Recipient::Peer,
    });
    (sent, host.try_post_recv(2, &sge))
}

#[test]
fn c61_what_may_be_posted_in_which_state() {
    use QpState::{Err, Init, Reset, Rtr, Rts};
    let refused = |state| Result::Err(PostError::State(state));
    for (state, expected) in [
        (Reset, (refused(Reset), refused(Reset))),
        (Init, (refused(Init), Ok(()))),
        (Rtr, (refused(Rtr), Ok(()))),
        (Rts, (Ok(()), Ok(()))),
    ] {
        let mut host = Host::with(Setup { state, ..Setup::default() });
        assert_eq!(post_both(&mut host), expected, "{state:?}");
        assert_eq!((host.sends.state(), host.recvs.state()), (state, state));
    }
    let mut host = Host::new();
    host.modify(&QpAttr::to(Err));
    assert_eq!(post_both(&mut host), (Ok(()), Ok(())));
    assert_eq!(host.sent(), []);
    assert_eq!((host.done(), host.received()), (flushed([1]), flushed([2])), "the drain beacon");
}

#[test]
fn c61_a_beacon_behind_work_completes_behind_it() {
    let mut host = Host::new();
    host.post_send(1, 4);
    host.post_recv(2, 0, 4);
    assert_eq!(host.sent().len(), 1);
    host.modify(&QpAttr::to(QpState::Err));
    host.post_send(3, 4);
    host.post_recv(4, 0, 4);
    assert_eq!(host.sent(), []);
    let completions = host.send_completions();
    assert_eq!(completions.iter().map(|completion| completion.wr_id).collect::<Vec<_>>(), [1, 3]);
    assert!(completions.iter().all(|completion| completion.qp_num == host.qpn));
    assert_eq!(host.received(), flushed([2, 4]));
}

#[test]
fn c60_everything_is_flushed_in_order_signaled_or_not() {
    let mut host = Host::with(Setup { sq_sig_all: false, ..Setup::default() });
    for wr_id in 0..10 {
        host.post_send(wr_id, 4);
        host.post_recv(100 + wr_id, 0, 4);
    }
    assert_eq!(host.sent().len(), 10);
    host.modify(&QpAttr::to(QpState::Err));
    assert_eq!(host.sent(), []);
    assert_eq!((host.done(), host.received()), (flushed(0..10), flushed(100..110)));
    assert_eq!(host.engine.next_deadline().filter(|due| *due <= host.now), None);
}

#[test]
fn c60_one_failure_and_then_a_flush_for_each_post_for_ever() {
    let mut host = Host::new();
    host.post_write(0, 4);
    assert_eq!(host.sent().len(), 1);
    host.recv(ack(500, 1));
    assert_eq!((host.sent(), host.done()), (vec![], ok([0])));
    host.post_write(1, 4);
    assert_eq!(host.sent().len(), 1);
    host.recv(nak(501, NakCode::RemoteAccessError, 1));
    assert_eq!((host.sent(), host.done()), (vec![], vec![(1, WcStatus::RemAccessErr)]));
    for wr_id in 2..500 {
        host.post_write(wr_id, 4);
        host.post_recv(wr_id, 0, 4);
        assert_eq!(host.sent(), []);
        assert_eq!((host.done(), host.received()), (flushed([wr_id]), flushed([wr_id])));
    }
}

#[test]
fn p4_15_sqd_finishes_what_was_started_and_starts_nothing() {
    let mut host = Host::with(Setup { window: 2, ..Setup::default() });
    host.post_send(1, 4096);
    host.post_send(2, 4);
    assert_eq!(host.sent().len(), 2);
    host.modify(&QpAttr { en_sqd_async_notify: Some(true), ..QpAttr::to(QpState::Sqd) });
    assert_eq!((host.sent(), host.events(), host.state()), (vec![], vec![], QpState::Sqd));
    host.recv(ack(501, 0));
    assert_eq!(host.sent().len(), 2, "the rest of the message");
    host.recv(ack(503, 1));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1])));
    assert_eq!(host.events(), [AsyncEvent::SqDrained(host.qpn)]);
    host.post_send(3, 4);
    assert_eq!(host.sent(), []);
    host.modify(&QpAttr::to(QpState::Rts));
    assert_eq!(host.sent(), [504, 505].map(|psn| send(Only, psn, &[0; 4]).ack_req()));
    assert_eq!(host.events(), [], "told once");
}

#[test]
fn p4_15_sqd_with_nothing_outstanding_is_drained_at_once() {
    let mut host = Host::new();
    host.modify(&QpAttr { en_sqd_async_notify: Some(true), ..QpAttr::to(QpState::Sqd) });
    assert_eq!(host.events(), [AsyncEvent::SqDrained(host.qpn)]);
    host.modify(&QpAttr::to(QpState::Rts));
    host.modify(&QpAttr { en_sqd_async_notify: Some(false), ..QpAttr::to(QpState::Sqd) });
    assert_eq!(host.events(), [], "not asked for");
}

#[test]
fn p4_15_sqd_goes_on_receiving_and_retrying() {
    let mut host = Host::new();
    host.post_send(1, 4);
    let sent = host.sent();
    host.modify(&QpAttr::to(QpState::Sqd));
    host.recv(write(Only, 100, host.at(64), 1, b"a").ack_req());
    assert_eq!(host.sent(), [ack(100, 1)]);
    host.advance(TIMEOUT);
    assert_eq!(host.sent(), sent);
    host.recv(ack(500, 1));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1])));
}

#[test]
fn p4_15_sqd_takes_other_timers_and_depths() {
    let mut host = Host::new();
    host.recv(fetch_add(100, host.at(0), 1));
    assert_eq!(host.sent(), [atomic_ack(100, 1, 0)]);
    host.modify(&QpAttr::to(QpState::Sqd));
    let attr = QpAttr {
        timeout: Some(11),
        max_rd_atomic: Some(1),
        max_dest_rd_atomic: Some(2),
        ..QpAttr::default()
    };
    host.modify(&attr);
    host.modify(&QpAttr::to(QpState::Rts));
    host.recv(fetch_add(100, host.at(0), 1));
    assert_eq!((host.sent(), host.word(0)), (vec![atomic_ack(100, 1, 0)], 1), "what was kept is still kept");
    host.post_read(1, 4);
    host.post_read(2, 4);
    assert_eq!(host.sent().len(), 1);
    host.advance(TIMEOUT);
    assert_eq!(host.sent(), []);
    host.advance(TIMEOUT);
    assert_eq!(host.sent().len(), 1);
}

#[test]
fn a_reset_forgets_everything_and_the_queue_pair_is_used_again() {
    let mut host = Host::new();
    host.post_recv(1, 0, 4096);
    host.post_send(2, 4096);
    host.post_read(3, 4);
    host.recv(read(100, host.at(0), 4));
    host.recv(send(Position::First, 101, &pattern(1024)));
    host.transmit().expect("something leaves");
    host.modify(&QpAttr::to(QpState::Reset));
    assert_eq!((host.sent(), host.done(), host.received()), (vec![], vec![], vec![]), "no completions");
    host.advance(TIMEOUT * 10);
    host.recv(ack(500, 1));
    host.recv(send(Only, 100, b"a").ack_req());
    assert_eq!((host.sent(), host.state(), host.events()), (vec![], QpState::Reset, vec![]));
    host.setup = Setup { rq_psn: 7, sq_psn: 9, ..Setup::default() };
    host.bring_up();
    host.post_recv(4, 0, 64);
    host.post_send(5, 4);
    host.recv(send(Only, 7, b"hello").ack_req());
    let sent = host.sent();
    assert!(
        sent.contains(&ack(7, 1)) && sent.contains(&send(Only, 9, &host.bytes(0, 4)).ack_req()),
        "{sent:?}"
    );
    host.recv(ack(9, 1));
    assert_eq!((host.sent(), host.done(), host.received()), (vec![], ok([5]), ok([4])));
    host.recv(read(8, host.at(0), 0));
    assert_eq!(host.sent(), [read_response(Only, 8, 2, b"")], "the message count started anew");
}

#[test]
fn a_reset_after_an_error_is_a_new_start() {
    let mut host = Host::new();
    host.post_send(1, 4);
    assert_eq!(host.sent().len(), 1);
    host.recv(nak(500, NakCode::RemoteOperationalError, 0));
    assert_eq!((host.sent(), host.done()), (vec![], vec![(1, WcStatus::RemOpErr)]));
    host.modify(&QpAttr::to(QpState::Reset));
    host.bring_up();
    host.post_send(2, 4);
    assert_eq!(host.sent(), [send(Only, 500, &[0; 4]).ack_req()]);
    host.recv(ack(500, 1));
    assert_eq!((host.sent(), host.done()), (vec![], ok([2])));
}

#[test]
fn s25_destroying_under_traffic_leaves_no_trace() {
    let mut host = Host::new();
    host.post_recv(1, 0, 64);
    host.post_send(2, 4096);
    host.recv(read(100, host.at(0), 4096));
    host.transmit().expect("something leaves");
    host.engine.destroy_qp(host.qpn).expect("the queue pair exists");
    host.advance(TIMEOUT * 10);
    host.recv(ack(500, 1));
    host.recv(send(Only, 104, b"a").ack_req());
    assert_eq!((host.sent(), host.done(), host.received(), host.events()), (vec![], vec![], vec![], vec![]));
    assert_eq!((host.count(Counter::UnknownQp), host.engine.next_deadline()), (2, None));
    assert!(host.engine.query_qp(host.qpn).is_err() && host.engine.destroy_qp(host.qpn).is_err());
    let refused = Err(PostError::State(QpState::Reset));
    assert_eq!(post_both(&mut host), (refused, refused), "the application's halves stay safe to use");
    host.engine.destroy_cq(host.send_cq).expect("nothing uses it any more");
}

#[test]
fn completions_outlive_their_queue_pair() {
    let mut host = Host::new();
    host.post_send(1, 4);
    assert_eq!(host.sent().len(), 1);
    host.recv(ack(500, 1));
    host.engine.destroy_qp(host.qpn).expect("the queue pair exists");
    assert_eq!((host.sent(), host.done()), (vec![], ok([1])));
}

#[test]
fn c69_every_state_is_told_as_it_is() {
    let mut host = Host::with(Setup { state: QpState::Reset, ..Setup::default() });
    for state in [QpState::Init, QpState::Rtr, QpState::Rts, QpState::Sqd] {
        host.modify(&attr_to(state, &Setup::default()));
        assert_eq!(host.state(), state);
    }
    host.recv(read(100, FAR, 1));
    assert_eq!(host.state(), QpState::Err, "an error that the wire caused");
    host.modify(&QpAttr::to(QpState::Reset));
    assert_eq!(host.state(), QpState::Reset);
}

#[test]
fn c69_attributes_are_told_as_they_were_set() {
    let host = Host::new();
    let (attr, init) = host.engine.query_qp(host.qpn).expect("the queue pair exists");
    let Setup { timeout, retry_cnt, rnr_retry, min_rnr_timer, max_rd_atomic, max_dest_rd_atomic, .. } =
        host.setup;
    assert_eq!(
        (attr.timeout, attr.retry_cnt, attr.rnr_retry),
        (Some(timeout), Some(retry_cnt), Some(rnr_retry))
    );
    assert_eq!(attr.min_rnr_timer, Some(min_rnr_timer));
    assert_eq!(
        (attr.max_rd_atomic, attr.max_dest_rd_atomic),
        (Some(max_rd_atomic), Some(max_dest_rd_atomic))
    );
    assert_eq!((attr.sq_psn, attr.rq_psn), (Some(Psn::new(500)), Some(Psn::new(100))));
    assert_eq!((attr.dest_qpn, attr.path_mtu), (Some(PEER_QPN), Some(Mtu::B1024)));
    assert_eq!((attr.path, attr.access), (Some(path(HOST, PEER)), Some(Access::REMOTE)));
    assert_eq!((init.send_cq, init.recv_cq), (host.send_cq, host.recv_cq));
}
