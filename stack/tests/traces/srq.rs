//! Shared receive queues under reliable connections (protocol section 4.13; C65, C66, X05).

use crate::common::*;
use Position::{First, Only};
use uroce_stack::Error;

/// A connection on a shared receive queue of eight, and as many neighbours on it.
fn host(neighbours: u32) -> (Host, Vec<NewQp>) {
    let mut host = Host::with(Setup { srq: Some(8), ..Setup::default() });
    let others = host.neighbours(neighbours);
    (host, others)
}

fn srq(host: &mut Host) -> Srq {
    host.shared().srq
}

/// Who received what, in order.
fn receivers(host: &mut Host) -> Vec<(u64, Qpn)> {
    let completions = host.recv_completions();
    assert!(completions.iter().all(|completion| completion.status == WcStatus::Success), "{completions:?}");
    completions.iter().map(|completion| (completion.wr_id, completion.qp_num)).collect()
}

#[test]
fn p4_13_receives_are_taken_in_order_of_arrival() {
    let (mut host, others) = host(2);
    for wr_id in 1..=4 {
        host.post_shared(wr_id, wr_id * 64, 64);
    }
    host.recv(send(Only, 100, b"one").at(&others[1]));
    host.recv(send(Only, 100, b"two"));
    host.recv(send(Only, 100, b"three").at(&others[0]));
    host.recv(send(Only, 101, b"four").at(&others[1]));
    assert_eq!(host.sent(), []);
    let expected = [(1, others[1].qpn), (2, host.qpn), (3, others[0].qpn), (4, others[1].qpn)];
    assert_eq!(receivers(&mut host), expected);
    assert_eq!((host.bytes(64, 3), host.bytes(256, 4)), (b"one".to_vec(), b"four".to_vec()));
}

#[test]
fn messages_in_progress_at_two_queue_pairs_do_not_mix() {
    let (mut host, others) = host(1);
    host.post_shared(1, 0, 4096);
    host.post_shared(2, 4096, 4096);
    let ours = send_message(100, &pattern(1500), None);
    let theirs = send_message(100, &[7; 2000], Some(9));
    host.recv(ours[0].clone());
    host.recv(theirs[0].clone().at(&others[0]));
    host.recv(theirs[1].clone().at(&others[0]));
    host.recv(ours[1].clone());
    assert_eq!(host.sent(), []);
    assert_eq!(receivers(&mut host), [(2, others[0].qpn), (1, host.qpn)]);
    assert_eq!((host.bytes(0, 1500), host.bytes(4096, 2000)), (pattern(1500), vec![7; 2000]));
}

#[test]
fn p4_13_an_empty_queue_is_not_ready() {
    let (mut host, others) = host(1);
    host.recv(send(Only, 100, b"a").ack_req());
    assert_eq!(host.sent(), [rnr(100, 14, 0)]);
    host.post_shared(1, 0, 64);
    host.recv(send(Only, 100, b"b").ack_req().at(&others[0]));
    assert_eq!(host.sent(), [ack(100, 1).to_neighbour(1)], "first come, first served");
    host.recv(send(Only, 100, b"a").ack_req());
    assert_eq!((host.sent(), receivers(&mut host)), (vec![rnr(100, 14, 0)], vec![(1, others[0].qpn)]));
    host.post_shared(2, 0, 64);
    host.recv(send(Only, 100, b"a").ack_req());
    assert_eq!((host.sent(), receivers(&mut host)), (vec![ack(100, 1)], vec![(2, host.qpn)]));
}

#[test]
fn a_write_with_immediate_takes_one_too() {
    let (mut host, _) = host(0);
    let message = write_message(100, host.at(0), &pattern(2000), Some(5));
    host.recv_all(message.clone());
    assert_eq!(host.sent(), [rnr(101, 14, 0)]);
    host.post_shared(1, 0, 0);
    host.recv(message[1].clone());
    assert_eq!((host.sent(), receivers(&mut host)), (vec![], vec![(1, host.qpn)]));
}

#[test]
fn c17_a_duplicate_takes_none() {
    let (mut host, _) = host(0);
    host.post_shared(1, 0, 64);
    host.post_shared(2, 0, 64);
    host.recv_all([send(Only, 100, b"a").ack_req(), send(Only, 100, b"a").ack_req()]);
    host.sent();
    assert_eq!(receivers(&mut host), [(1, host.qpn)]);
    host.recv(send(Only, 101, b"b"));
    assert_eq!((host.sent(), receivers(&mut host)), (vec![], vec![(2, host.qpn)]));
}

#[test]
fn p4_10_acknowledgements_say_unlimited() {
    let (mut host, _) = host(0);
    host.post_shared(1, 0, 64);
    host.recv(send(Only, 100, b"a").ack_req());
    assert_eq!(host.sent(), [acknowledge(100, Syndrome::UNLIMITED, 1)]);
}

#[test]
fn x05_below_its_limit_it_tells_once() {
    let (mut host, _) = host(0);
    let srq = srq(&mut host);
    for wr_id in 0..6 {
        host.post_shared(wr_id, 0, 64);
    }
    host.engine.set_srq_limit(srq, 4).expect("it holds more");
    let mut told = Vec::new();
    for psn in 100..106 {
        host.recv(send(Only, psn, b"a"));
        told.push(host.events());
    }
    let expected: Vec<Vec<AsyncEvent>> = (0..6)
        .map(|taken| if taken == 2 { vec![AsyncEvent::SrqLimitReached(srq)] } else { vec![] })
        .collect();
    assert_eq!(told, expected, "three left is below four");
    assert_eq!(host.engine.query_srq(srq).expect("it exists").srq_limit, 0, "disarmed");
}

#[test]
fn x05_it_is_armed_again_by_setting_it_again() {
    let (mut host, _) = host(0);
    let srq = srq(&mut host);
    for round in 0..3 {
        host.post_shared(round, 0, 64);
        host.engine.set_srq_limit(srq, 1).expect("it holds more");
        assert_eq!(host.engine.query_srq(srq).expect("it exists").srq_limit, 1);
        host.recv(send(Only, 100 + round as u32, b"a"));
        assert_eq!(host.events(), [AsyncEvent::SrqLimitReached(srq)]);
    }
    host.post_shared(3, 0, 64);
    host.engine.set_srq_limit(srq, 1).expect("it holds more");
    host.engine.set_srq_limit(srq, 0).expect("taken back");
    host.recv(send(Only, 103, b"a"));
    assert_eq!((host.events(), host.sent()), (vec![], vec![]));
}

#[test]
fn x05_a_limit_that_it_is_below_already_is_told_with_the_next_receive() {
    let (mut host, _) = host(0);
    let srq = srq(&mut host);
    host.engine.set_srq_limit(srq, 8).expect("as many as it holds");
    assert_eq!(host.events(), []);
    host.post_shared(1, 0, 64);
    host.recv(send(Only, 100, b"a"));
    assert_eq!(host.events(), [AsyncEvent::SrqLimitReached(srq)]);
    let refused = host.engine.set_srq_limit(srq, 9);
    assert_eq!(refused, Err(Error::OutOfRange { what: "srq_limit", found: 9, low: 0, high: 8 }));
}

#[test]
fn c66_it_grows_and_shrinks_while_messages_take_from_it() {
    let (mut host, _) = host(0);
    let srq = srq(&mut host);
    for wr_id in 0..8 {
        host.post_shared(wr_id, 0, 2048);
    }
    let sge = host.sge(0, 4);
    assert_eq!(host.shared().queue.push(8, &[sge]), Err(PostError::QueueFull));
    let message = send_message(100, &pattern(1500), None);
    host.recv(message[0].clone());
    resize(&mut host, 20).expect("room for more");
    assert!(host.engine.query_srq(srq).expect("it exists").max_wr >= 20);
    for wr_id in 8..20 {
        host.post_shared(wr_id, 0, 2048);
    }
    host.recv(message[1].clone());
    for psn in 102..114 {
        host.recv(send(Only, psn, b"a"));
    }
    assert_eq!(host.sent(), []);
    assert_eq!(receivers(&mut host), (0..13).map(|wr_id| (wr_id, host.qpn)).collect::<Vec<_>>());
    assert!(resize(&mut host, 4).is_err(), "seven are posted");
    resize(&mut host, 7).expect("seven fit");
    host.recv_all((114..121).map(|psn| send(Only, psn, b"a")));
    assert_eq!(host.sent(), []);
    assert_eq!(receivers(&mut host), (13..20).map(|wr_id| (wr_id, host.qpn)).collect::<Vec<_>>());
}

fn resize(host: &mut Host, max_wr: u32) -> Result<(), Error> {
    let shared = host.srq.as_mut().expect("the setup has one");
    host.engine.resize_srq(shared.srq, &mut shared.queue, max_wr)
}

#[test]
fn c66_a_size_below_the_limit_or_above_the_devices_is_refused() {
    let (mut host, _) = host(0);
    let srq = srq(&mut host);
    host.engine.set_srq_limit(srq, 6).expect("it holds more");
    assert!(matches!(resize(&mut host, 5), Err(Error::Invalid(_))));
    assert!(matches!(resize(&mut host, 0), Err(Error::OutOfRange { .. })));
    assert!(matches!(resize(&mut host, 1 << 20), Err(Error::OutOfRange { .. })));
    let attr = host.engine.query_srq(srq).expect("it exists");
    assert_eq!((attr.max_wr, attr.max_sge, attr.srq_limit), (8, 4, 6), "as it was");
}

#[test]
fn c66_sizes_of_an_own_queue_are_ignored_and_receives_refused() {
    let (mut host, _) = host(0);
    let init = QpInit { max_recv_wr: 1_000_000, max_recv_sge: 1_000, ..host.init() };
    let mut qp = host.engine.create_qp(host.pd, &init).expect("the sizes are not looked at");
    assert!(matches!(qp.recv.push(1, &[]), Err(PostError::Invalid(_))));
    let refused = host.try_post_recv(1, &[host.sge(0, 4)]);
    assert!(matches!(refused, Err(PostError::Invalid(_))), "{refused:?}");
}

#[test]
fn a_receive_has_as_many_pieces_as_the_queue_was_made_for() {
    let (mut host, _) = host(0);
    let pieces = [0, 10, 20, 30].map(|offset| host.sge(offset, 3));
    let too_many = [host.sge(0, 1); 5];
    let queue = &mut host.shared().queue;
    assert_eq!(queue.push(1, &too_many), Err(PostError::TooManySges { found: 5, limit: 4 }));
    queue.push(1, &pieces).expect("four are allowed");
    host.recv(send(Only, 100, b"early"));
    assert_eq!(host.sent(), [rnr(100, 14, 0)], "without a doorbell it is not there");
    host.shared().queue.ring_doorbell();
    host.recv(send(Only, 100, b"0123456789"));
    assert_eq!((host.sent(), receivers(&mut host)), (vec![], vec![(1, host.qpn)]));
    assert_eq!((host.bytes(0, 3), host.bytes(30, 1)), (b"012".to_vec(), b"9".to_vec()));
}

#[test]
fn what_was_queued_is_taken_back_before_the_doorbell() {
    let (mut host, _) = host(0);
    let sge = host.sge(0, 64);
    let queue = &mut host.shared().queue;
    queue.push(1, &[sge]).expect("room");
    queue.abort();
    queue.push(2, &[sge]).expect("room");
    queue.ring_doorbell();
    host.recv(send(Only, 100, b"a"));
    assert_eq!((host.sent(), receivers(&mut host)), (vec![], vec![(2, host.qpn)]));
}

#[test]
fn c65_in_error_it_tells_once_that_it_takes_no_more() {
    let (mut host, others) = host(1);
    host.post_shared(1, 0, 64);
    let last = AsyncEvent::QpLastWqeReached(host.qpn);
    host.modify(&QpAttr::to(QpState::Err));
    host.modify(&QpAttr::to(QpState::Err));
    assert_eq!((host.sent(), host.events()), (vec![], vec![last]));
    host.recv(send(Only, 100, b"a").at(&others[0]));
    assert_eq!((host.sent(), host.received(), host.events()), (vec![], ok([1]), vec![]));
    host.modify(&QpAttr::to(QpState::Reset));
    host.bring_up();
    host.modify(&QpAttr::to(QpState::Err));
    assert_eq!(host.events(), [last], "a new life, a new end");
}

#[test]
fn c65_it_tells_also_when_the_peer_broke_the_connection() {
    let (mut host, _) = host(0);
    host.post_shared(1, 0, 4096);
    host.post_shared(2, 0, 4096);
    host.recv(send(First, 100, &[1; 1024]));
    host.recv(send(Only, 101, b"a"));
    assert_eq!(host.sent(), [nak(101, NakCode::InvalidRequest, 0)]);
    assert_eq!(
        host.received(),
        [(1, WcStatus::RemInvReqErr)],
        "what it had taken ends; the rest is for others"
    );
    assert_eq!(host.events(), [AsyncEvent::QpReqErr(host.qpn), AsyncEvent::QpLastWqeReached(host.qpn)]);
}

#[test]
fn c65_without_a_shared_queue_it_is_never_told() {
    for qp_type in [QpType::Rc, QpType::Uc, QpType::Ud, QpType::XrcIni, QpType::XrcTgt] {
        let mut host = Host::with(Setup::of(qp_type));
        host.modify(&QpAttr::to(QpState::Err));
        assert_eq!((host.sent(), host.events()), (vec![], vec![]), "{qp_type:?}");
    }
}

#[test]
fn p4_16_a_flush_leaves_what_others_may_take() {
    let (mut host, others) = host(1);
    for wr_id in 1..=3 {
        host.post_shared(wr_id, 0, 4096);
    }
    host.recv(send(First, 100, &[1; 1024]));
    host.modify(&QpAttr::to(QpState::Err));
    assert_eq!((host.sent(), host.received()), (vec![], flushed([1])), "the one of the open message");
    host.recv_all([100, 101].map(|psn| send(Only, psn, b"a").at(&others[0])));
    assert_eq!((host.sent(), host.received()), (vec![], ok([2, 3])));
}

#[test]
fn a_reset_forgets_the_receive_of_the_open_message() {
    let (mut host, _) = host(0);
    host.post_shared(1, 0, 4096);
    host.post_shared(2, 0, 4096);
    host.recv(send(First, 100, &[1; 1024]));
    host.modify(&QpAttr::to(QpState::Reset));
    host.bring_up();
    host.recv(send(Only, 100, b"a"));
    assert_eq!((host.sent(), host.received()), (vec![], ok([2])));
}

#[test]
fn it_stays_while_queue_pairs_are_on_it() {
    let (mut host, others) = host(1);
    let srq = srq(&mut host);
    let busy = Err(Error::Busy("shared receive queue"));
    assert_eq!(host.engine.destroy_srq(srq), busy);
    host.engine.destroy_qp(host.qpn).expect("it exists");
    assert_eq!(host.engine.destroy_srq(srq), busy);
    host.engine.destroy_qp(others[0].qpn).expect("it exists");
    host.engine.destroy_srq(srq).expect("nothing uses it");
    let gone = Error::NotFound("shared receive queue");
    assert_eq!(host.engine.destroy_srq(srq), Err(gone.clone()));
    assert_eq!(host.engine.query_srq(srq), Err(gone.clone()));
    assert_eq!(host.engine.set_srq_limit(srq, 0), Err(gone.clone()));
    let init = QpInit { srq: Some(srq), ..host.init() };
    assert_eq!(host.engine.create_qp(host.pd, &init).map(|qp| qp.qpn), Err(gone));
}

#[test]
fn its_protection_domain_stays_while_it_exists() {
    let mut host = Host::new();
    let pd = host.engine.alloc_pd().expect("room for a protection domain");
    let shared = SharedReceives::new(&mut host.engine, pd, 4, None);
    assert_eq!(host.engine.dealloc_pd(pd), Err(Error::Busy("protection domain")));
    host.engine.destroy_srq(shared.srq).expect("nothing uses it");
    assert_eq!(host.engine.dealloc_pd(pd), Ok(()));
    let init = SrqInit { max_wr: 4, max_sge: 1, xrc: None };
    let refused = host.engine.create_srq(pd, &init).map(|(srq, _)| srq);
    assert_eq!(refused, Err(Error::NotFound("protection domain")));
}

#[test]
fn the_keys_of_its_receives_are_of_its_own_protection_domain() {
    let (mut host, _) = host(0);
    let other = host.engine.alloc_pd().expect("room for a protection domain");
    let qp = host.neighbour(1, other);
    host.post_shared(1, 0, 64);
    host.recv(send(Only, 100, b"hello").at(&qp));
    assert_eq!(
        (host.sent(), receivers(&mut host), host.bytes(0, 5)),
        (vec![], vec![(1, qp.qpn)], b"hello".to_vec())
    );
    let access = Access::LOCAL_WRITE | Access::REMOTE;
    let keys = host.engine.register_mr(other, Region::alloc(64), VA, access).expect("room for a region");
    host.shared().post(2, Sge { addr: VA, length: 64, lkey: keys.lkey });
    host.recv(send(Only, 101, b"hello").ack_req().at(&qp));
    assert_eq!(host.sent(), [nak(101, NakCode::RemoteOperationalError, 1).to_neighbour(1)]);
    assert_eq!(host.received(), [(2, WcStatus::LocProtErr)]);
}

#[test]
fn sizes_out_of_range_are_refused() {
    let mut host = Host::new();
    for (max_wr, max_sge) in [(0, 1), ((1 << 14) + 1, 1), (1, 33)] {
        let init = SrqInit { max_wr, max_sge, xrc: None };
        assert!(matches!(host.engine.create_srq(host.pd, &init), Err(Error::OutOfRange { .. })), "{init:?}");
    }
}

#[test]
fn s02_numbers_cannot_be_guessed() {
    let mut host = Host::new();
    let numbers: Vec<u32> =
        (0..100).map(|_| SharedReceives::new(&mut host.engine, host.pd, 1, None).number).collect();
    let steps: std::collections::HashSet<u32> =
        numbers.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
    assert!(steps.len() > 95, "no progression");
    assert!(numbers.iter().all(|number| (1..1 << 24).contains(number)));
}
