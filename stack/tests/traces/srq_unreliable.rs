//! Shared receive queues under unreliable services, and under several services at once.

use crate::common::*;
use Position::{First, Last, Only};

/// A queue pair of this kind on a shared receive queue of eight.
fn host(qp_type: QpType) -> Host {
    Host::with(Setup { srq: Some(8), ..Setup::of(qp_type) })
}

/// A queue pair of another kind on the same queue.
fn beside(host: &mut Host, qp_type: QpType, number: u32) -> NewQp {
    let kind = std::mem::replace(&mut host.setup.qp_type, qp_type);
    let qp = host.neighbour(number, host.pd);
    host.setup.qp_type = kind;
    qp
}

fn takers(host: &mut Host) -> Vec<(u64, Qpn)> {
    assert_eq!(host.sent(), []);
    let completions = host.recv_completions();
    assert!(completions.iter().all(|completion| completion.status == WcStatus::Success), "{completions:?}");
    completions.iter().map(|completion| (completion.wr_id, completion.qp_num)).collect()
}

#[test]
fn three_services_take_from_one_queue() {
    let mut host = host(QpType::Rc);
    let (uc, ud) = (beside(&mut host, QpType::Uc, 1), beside(&mut host, QpType::Ud, 2));
    for wr_id in 1..=4 {
        host.post_shared(wr_id, wr_id * 4096, 4096);
    }
    host.recv(send(First, 7, &[1; 1024]).uc().at(&uc));
    host.recv(datagram(0, b"datagram").at(&ud));
    host.recv(send(Only, 100, b"reliable"));
    host.recv(send(Last, 8, b"end").uc().at(&uc));
    host.recv(write(Only, 101, host.at(0), 1, b"a").imm(1));
    assert_eq!(takers(&mut host), [(2, ud.qpn), (3, host.qpn), (1, uc.qpn), (4, host.qpn)]);
    assert_eq!(
        (host.bytes(8192 + 40, 8), host.bytes(12288, 8)),
        (b"datagram".to_vec(), b"reliable".to_vec())
    );
    assert_eq!(host.bytes(4096 + 1024, 3), b"end");
}

#[test]
fn p4_13_without_a_receive_unreliable_messages_are_dropped() {
    let mut host = host(QpType::Uc);
    let ud = beside(&mut host, QpType::Ud, 1);
    host.recv(send(Only, 100, b"a").uc());
    host.recv(datagram(0, b"a").at(&ud));
    assert_eq!((takers(&mut host), host.count(Counter::NoReceive)), (vec![], 2));
    host.post_shared(1, 0, 64);
    host.recv(send(Only, 101, b"a").uc());
    assert_eq!(takers(&mut host), [(1, host.qpn)]);
}

/// rxe completes it with an error; here nobody has to be told of a receive that is still good.
#[test]
fn p4_12_the_receive_of_a_lost_message_is_for_the_next_of_its_queue_pair() {
    let mut host = host(QpType::Uc);
    let other = host.neighbours(1).remove(0);
    host.post_shared(1, 0, 4096);
    host.post_shared(2, 4096, 4096);
    host.recv(send(First, 100, &[1; 1024]).uc());
    host.recv(send(Last, 102, b"late").uc());
    host.recv(send(Only, 7, b"other").uc().at(&other));
    host.recv(send(Only, 103, b"next").uc());
    assert_eq!(takers(&mut host), [(2, other.qpn), (1, host.qpn)]);
    assert_eq!((host.bytes(0, 4), host.bytes(4096, 5)), (b"next".to_vec(), b"other".to_vec()));
}

#[test]
fn p4_12_a_message_that_starts_in_another_keeps_the_receive() {
    let mut host = host(QpType::Uc);
    host.post_shared(1, 0, 4096);
    host.recv_all([100, 200, 300].map(|psn| send(First, psn, &[1; 1024]).uc()));
    host.recv(send(Last, 301, b"a").uc());
    assert_eq!(takers(&mut host), [(1, host.qpn)]);
}

#[test]
fn a_message_too_long_keeps_the_receive() {
    for (qp_type, long) in [(QpType::Uc, send(Only, 100, &[1; 65]).uc()), (QpType::Ud, datagram(0, &[1; 25]))]
    {
        let mut host = host(qp_type);
        let other = host.neighbours(1).remove(0);
        host.post_shared(1, 0, 64);
        host.post_shared(2, 64, 64);
        host.recv(long.clone());
        let short = Pkt { payload: b"fits".to_vec(), ..long };
        host.recv(short.clone().at(&other));
        host.recv(short);
        assert_eq!(takers(&mut host), [(2, other.qpn), (1, host.qpn)], "{qp_type:?}");
        assert_eq!((host.count(Counter::TooLong), host.state()), (1, QpState::Rts));
    }
}

#[test]
fn a_receive_that_is_kept_is_flushed_in_error_and_forgotten_in_reset() {
    for to in [QpState::Err, QpState::Reset] {
        let mut host = host(QpType::Uc);
        host.post_shared(1, 0, 4096);
        host.post_shared(2, 0, 4096);
        host.recv(send(First, 100, &[1; 1024]).uc());
        host.recv(send(Last, 102, b"late").uc());
        host.modify(&QpAttr::to(to));
        let expected = if to == QpState::Err { flushed([1]) } else { vec![] };
        assert_eq!((host.sent(), host.received()), (vec![], expected), "{to:?}");
        host.modify(&QpAttr::to(QpState::Reset));
        host.bring_up();
        host.recv(send(Only, 100, b"a").uc());
        assert_eq!(takers(&mut host), [(2, host.qpn)]);
    }
}

#[test]
fn c65_unreliable_queue_pairs_tell_their_end_too() {
    for qp_type in [QpType::Uc, QpType::Ud] {
        let mut host = host(qp_type);
        host.modify(&QpAttr::to(QpState::Err));
        assert_eq!(host.events(), [AsyncEvent::QpLastWqeReached(host.qpn)], "{qp_type:?}");
    }
}

#[test]
fn c65_the_send_error_of_an_unreliable_service_is_not_the_end() {
    let mut host = host(QpType::Uc);
    host.post_shared(1, 0, 64);
    host.post(
        2,
        SendOp::Send { immediate: None },
        SendFlags::empty(),
        &[Sge { lkey: 0xBAD, ..host.sge(0, 4) }],
    );
    assert_eq!((host.sent(), host.done(), host.events()), (vec![], vec![(2, WcStatus::LocProtErr)], vec![]));
    host.recv(send(Only, 100, b"a").uc());
    assert_eq!((takers(&mut host), host.state()), (vec![(1, host.qpn)], QpState::Sqe));
}

#[test]
fn x05_a_receive_that_is_kept_is_not_taken_again() {
    let mut host = host(QpType::Ud);
    let srq = host.shared().srq;
    host.post_shared(1, 0, 64);
    host.post_shared(2, 0, 64);
    host.engine.set_srq_limit(srq, 1).expect("it holds more");
    host.recv_all([datagram(0, &[1; 25]), datagram(0, &[1; 25]), datagram(0, b"a")]);
    assert_eq!((takers(&mut host), host.events()), (vec![(1, host.qpn)], vec![]));
    host.recv(datagram(0, b"a"));
    assert_eq!(
        (takers(&mut host), host.events()),
        (vec![(2, host.qpn)], vec![AsyncEvent::SrqLimitReached(srq)])
    );
}
