//! Completions: which, when visible, and when a queue is full (protocol section 4.16; C63).

use crate::common::*;
use Position::Only;

fn unsignaled() -> Host {
    Host::with(Setup { sq_sig_all: false, ..Setup::default() })
}

fn post_flagged(host: &mut Host, wr_id: u64, flags: SendFlags) {
    host.post(wr_id, SendOp::Send { immediate: None }, flags, &[host.sge(0, 4)]);
}

#[test]
fn p4_16_only_signaled_sends_report_success() {
    let mut host = unsignaled();
    for (wr_id, flags) in [(1, SendFlags::empty()), (2, SendFlags::SIGNALED), (3, SendFlags::empty())] {
        post_flagged(&mut host, wr_id, flags);
    }
    assert_eq!(host.sent().len(), 3);
    host.recv(ack(502, 3));
    assert_eq!((host.sent(), host.done()), (vec![], ok([2])));
    for wr_id in 4..68 {
        post_flagged(&mut host, wr_id, SendFlags::empty());
    }
    assert_eq!(host.sent().len(), 64, "their places in the queue are free again");
}

#[test]
fn p4_16_with_sq_sig_all_every_send_reports() {
    let mut host = Host::new();
    post_flagged(&mut host, 1, SendFlags::empty());
    assert_eq!(host.sent().len(), 1);
    host.recv(ack(500, 1));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1])));
}

#[test]
fn p4_16_a_failure_is_reported_even_when_unsignaled() {
    let mut host = unsignaled();
    for wr_id in 1..=3 {
        post_flagged(&mut host, wr_id, SendFlags::empty());
    }
    assert_eq!(host.sent().len(), 3);
    host.recv(nak(501, NakCode::RemoteAccessError, 1));
    assert_eq!(host.sent(), []);
    assert_eq!(
        host.done(),
        [(2, WcStatus::RemAccessErr), (3, WcStatus::WrFlushErr)],
        "1 succeeded unreported"
    );
}

#[test]
fn completions_are_invisible_until_published() {
    let mut host = Host::new();
    host.post_send(1, 4);
    assert_eq!(host.sent().len(), 1);
    host.recv(ack(500, 1));
    assert_eq!(host.done(), []);
    assert!(host.engine.has_work());
    host.publish();
    assert_eq!(host.done(), ok([1]));
}

#[test]
fn a_receive_is_not_complete_before_its_acknowledgement_has_left() {
    let mut host = Host::new();
    host.post_recv(1, 0, 64);
    host.recv(send(Only, 100, b"a").ack_req());
    host.publish();
    assert_eq!(host.received(), [], "whatever is published in between");
    assert_eq!(host.transmit(), Some(ack(100, 1)));
    assert_eq!(host.received(), []);
    host.publish();
    assert_eq!(host.received(), ok([1]));
}

#[test]
fn a_receive_behind_a_read_waits_for_the_acknowledgement_too() {
    let mut host = Host::new();
    host.post_recv(1, 0, 64);
    host.recv(read(100, host.at(0), 2048));
    host.recv(send(Only, 102, b"a").ack_req());
    for _ in 0..2 {
        host.transmit().expect("a response");
        host.publish();
        assert_eq!(host.received(), []);
    }
    assert_eq!(host.transmit(), Some(ack(102, 2)));
    host.publish();
    assert_eq!(host.received(), ok([1]));
}

#[test]
fn receives_complete_in_order_when_only_the_first_asks_for_an_acknowledgement() {
    let mut host = Host::new();
    host.post_recv(1, 0, 64);
    host.post_recv(2, 64, 64);
    host.recv(send(Only, 100, b"a").ack_req());
    host.recv(send(Only, 101, b"b"));
    host.publish();
    assert_eq!(host.received(), []);
    assert_eq!((host.sent(), host.received()), (vec![ack(100, 1)], ok([1, 2])));
}

#[test]
fn c63_a_full_queue_takes_its_queue_pairs_down() {
    let mut host = Host::with(Setup { cqe: 4, ..Setup::default() });
    host.post_recv(99, 0, 4);
    for wr_id in 0..10 {
        host.post_send(wr_id, 4);
    }
    assert_eq!(host.sent().len(), 10);
    host.recv(ack(503, 4));
    assert_eq!((host.sent(), host.state()), (vec![], QpState::Rts), "as many as asked for fit");
    host.recv(ack(509, 10));
    assert_eq!((host.sent(), host.state()), (vec![], QpState::Err));
    let events = host.events();
    assert!(events.contains(&AsyncEvent::CqErr(host.send_cq)), "{events:?}");
    assert!(events.contains(&AsyncEvent::QpFatal(host.qpn)), "{events:?}");
    assert_eq!((host.send_reader.overrun(), host.recv_reader.overrun()), (true, false));
    assert_eq!((host.done(), host.received()), (ok(0..4), flushed([99])), "nothing false is told");
    assert_eq!(host.count(Counter::CqOverrun), 1);
}

#[test]
fn c63_a_full_queue_takes_down_every_queue_pair_on_it() {
    let mut host = Host::with(Setup { cqe: 1, ..Setup::default() });
    let (other_cq, _reader) = host.engine.create_cq(8).expect("room for a completion queue");
    let shared = qp_init(&host.setup, other_cq, host.recv_cq);
    let apart = qp_init(&host.setup, other_cq, other_cq);
    let [shared, apart] =
        [shared, apart].map(|init| host.engine.create_qp(host.pd, &init).expect("room").qpn);
    for qpn in [shared, apart] {
        let attr = attr_to(QpState::Init, &host.setup);
        host.engine.modify_qp(host.now, qpn, &attr).expect("allowed");
    }
    host.post_recv(1, 0, 64);
    host.post_recv(2, 0, 64);
    host.recv_all([100, 101].map(|psn| send(Only, psn, b"a")));
    assert_eq!(host.sent(), []);
    let state = |qpn| host.engine.query_qp(qpn).expect("it exists").0.state;
    assert_eq!((state(shared), state(apart)), (Some(QpState::Err), Some(QpState::Init)));
    assert_eq!((host.state(), host.received()), (QpState::Err, ok([1])));
}

#[test]
fn a_queue_that_is_polled_in_time_never_overflows() {
    let mut host = Host::with(Setup { cqe: 4, ..Setup::default() });
    for round in 0..100 {
        for wr_id in 0..4 {
            host.post_send(wr_id, 4);
        }
        assert_eq!(host.sent().len(), 4);
        host.recv(ack(503 + 4 * round, 0));
        assert_eq!((host.sent(), host.done()), (vec![], ok(0..4)));
    }
    assert_eq!(host.events(), []);
}

#[test]
fn an_armed_queue_fires_once_at_the_next_completion() {
    let mut host = Host::new();
    for wr_id in 0..3 {
        host.post_send(wr_id, 4);
    }
    assert_eq!(host.sent().len(), 3);
    assert!(!host.send_reader.arm(false));
    assert_eq!((host.sent(), host.notified.clone()), (vec![], vec![]));
    host.recv(ack(501, 2));
    assert_eq!((host.sent(), host.notified.clone()), (vec![], vec![host.send_cq]), "once for both");
    host.recv(ack(502, 3));
    assert_eq!((host.sent(), host.notified.len()), (vec![], 1), "one shot");
    assert!(host.send_reader.arm(false), "completions are waiting already");
    assert_eq!(host.done(), ok(0..3));
}

#[test]
fn p4_16_a_queue_armed_for_solicited_events_waits_for_one() {
    let mut host = Host::new();
    for index in 0..3 {
        host.post_recv(index, 64 * index, 64);
    }
    host.recv_reader.arm(true);
    host.recv(send(Only, 100, b"a").ack_req());
    assert_eq!((host.sent(), host.notified.clone()), (vec![ack(100, 1)], vec![]));
    host.recv(send(Only, 101, b"b").ack_req().solicited());
    assert_eq!((host.sent(), host.notified.clone()), (vec![ack(101, 2)], vec![host.recv_cq]));
    host.recv(send(Only, 102, b"c").ack_req().solicited());
    assert_eq!((host.sent(), host.notified.len()), (vec![ack(102, 3)], 1));
}

#[test]
fn p4_16_a_failure_is_as_good_as_a_solicited_event() {
    let mut host = Host::new();
    host.post_send(1, 4);
    host.post_recv(2, 0, 4);
    assert_eq!(host.sent().len(), 1);
    host.send_reader.arm(true);
    host.recv_reader.arm(true);
    host.recv(nak(500, NakCode::InvalidRequest, 0));
    assert_eq!(host.sent(), []);
    assert!(host.notified.contains(&host.send_cq) && host.notified.contains(&host.recv_cq));
}

#[test]
fn arming_for_all_is_not_narrowed_by_arming_for_solicited() {
    let mut host = Host::new();
    host.post_send(1, 4);
    assert_eq!(host.sent().len(), 1);
    host.send_reader.arm(false);
    host.send_reader.arm(true);
    host.recv(ack(500, 1));
    assert_eq!((host.sent(), host.notified.clone()), (vec![], vec![host.send_cq]));
}

#[test]
fn s27_when_the_interface_is_lost_everything_ends() {
    let mut host = Host::new();
    host.post_recv(1, 0, 64);
    host.post_recv(2, 64, 64);
    host.post_send(3, 4);
    assert_eq!(host.sent().len(), 1);
    host.recv(send(Only, 100, b"a").ack_req());
    host.engine.fail_all();
    assert_eq!((host.sent(), host.state()), (vec![], QpState::Err));
    assert_eq!(host.received(), [(1, WcStatus::Success), (2, WcStatus::WrFlushErr)]);
    assert_eq!((host.done(), host.events()), (flushed([3]), vec![AsyncEvent::QpFatal(host.qpn)]));
    assert_eq!(host.engine.next_deadline().filter(|due| *due <= host.now), None);
    host.engine.fail_all();
    assert_eq!(host.events(), [], "once");
}
