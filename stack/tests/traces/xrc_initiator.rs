//! The initiator of an extended reliable connection, and both ends together (IBTA annex A14).

use crate::common::*;
use Position::{First, Last, Middle, Only};
use uroce_stack::{FlushPlacement, FlushScope, MwType};

const SRQN: u32 = 0x01_0203;

fn host() -> Host {
    Host::with(Setup::of(QpType::XrcIni))
}

fn requests(packets: Vec<Pkt>) -> Vec<Pkt> {
    each(packets, |packet| packet.xrc(SRQN))
}

fn post(host: &mut Host, wr_id: u64, op: SendOp, length: u32) {
    post_to_queue(host, wr_id, op, length, SRQN);
}

fn post_to_queue(host: &mut Host, wr_id: u64, op: SendOp, length: u32, srqn: u32) {
    let sges = [host.sge(0, length)];
    let (flags, to) = (SendFlags::empty(), Recipient::Xrc { srqn });
    host.try_post(&SendWr { wr_id, op, flags, data: Gather::Sges(&sges), to })
        .expect("the request is accepted");
}

const SEND: SendOp = SendOp::Send { immediate: None };

#[test]
fn every_packet_of_a_request_names_the_queue() {
    let mut host = host();
    host.fill(0, &pattern(2500));
    post(&mut host, 1, SendOp::Send { immediate: Some(5) }, 2500);
    post(&mut host, 2, SendOp::Write { remote: FAR, immediate: None }, 1500);
    let mut expected = send_message(500, &pattern(2500), Some(5));
    expected.extend(write_message(503, FAR, &pattern(1500), None));
    for last in [2, 4] {
        expected[last] = expected[last].clone().ack_req();
    }
    assert_eq!(host.sent(), requests(expected));
    host.recv(ack(504, 2).xrc_response());
    assert_eq!((host.sent(), host.done()), (vec![], ok([1, 2])));
}

#[test]
fn every_operation_that_is_answered_names_it_and_takes_answers_of_xrc() {
    let mut host = host();
    let flush = SendOp::Flush {
        remote: FAR,
        length: 16,
        placement: FlushPlacement::Global,
        scope: FlushScope::Range,
    };
    post(&mut host, 1, SendOp::Read { remote: FAR }, 2000);
    post(&mut host, 2, SendOp::FetchAdd { remote: FAR, add: 1 }, 8);
    post(&mut host, 3, SendOp::AtomicWrite { remote: FAR }, 8);
    post(&mut host, 4, flush, 0);
    let sent = host.sent();
    assert!(sent.iter().all(|packet| packet.class == Class::Xrc { srqn: Some(SRQN) }), "{sent:?}");
    assert_eq!(sent.iter().map(|packet| packet.psn).collect::<Vec<_>>(), [500, 502, 503, 504]);
    let answers = vec![
        read_response(First, 500, 1, &pattern(1024)),
        read_response(Last, 501, 1, &pattern(976)),
        atomic_ack(502, 2, 0x1234),
        written(503, 3),
        written(504, 4),
    ];
    host.recv_all(each(answers, Pkt::xrc_response));
    assert_eq!((host.sent(), host.done()), (vec![], ok(1..=4)));
    assert_eq!((host.word(0), host.bytes(8, 8)), (0x1234, pattern(16)[8..].to_vec()));
}

#[test]
fn each_request_may_name_another_queue() {
    let mut host = host();
    for (wr_id, srqn) in [7, 8, 0xFF_FFFF, 7].into_iter().enumerate() {
        post_to_queue(&mut host, wr_id as u64, SEND, 4, srqn);
    }
    let named: Vec<Class> = host.sent().iter().map(|packet| packet.class).collect();
    assert_eq!(named, [7, 8, 0xFF_FFFF, 7].map(|srqn| Class::Xrc { srqn: Some(srqn) }));
}

#[test]
fn what_is_sent_again_names_it_too() {
    let mut host = host();
    post(&mut host, 1, SEND, 3000);
    let sent = host.sent();
    host.recv(nak(501, NakCode::SequenceError, 0).xrc_response());
    assert_eq!(host.sent(), sent[1..]);
    host.advance(TIMEOUT);
    assert_eq!(host.sent(), requests(vec![send(Middle, 501, &[0; 1024]).ack_req()]));
}

#[test]
fn it_takes_no_requests() {
    let mut host = host();
    host.recv_all([send(Only, 100, b"a").xrc(SRQN), read(100, host.at(0), 1).xrc(SRQN)]);
    host.recv_all([send(Only, 100, b"a"), ack(500, 1)]);
    assert_eq!((host.sent(), host.state(), host.events()), (vec![], QpState::Rts, vec![]));
    assert_eq!(host.count(Counter::WrongService), 4);
    assert!(matches!(host.try_post_recv(1, &[host.sge(0, 4)]), Err(PostError::Invalid(_))));
}

#[test]
fn a_request_without_a_queue_is_refused() {
    let mut host = host();
    let sges = [host.sge(0, 4)];
    let ah = host.handle(PEER);
    for to in [Recipient::Peer, Recipient::Datagram { ah: &ah, qpn: PEER_QPN, qkey: QKEY }] {
        assert!(matches!(host.try_post_to(1, &sges, to), Err(PostError::Invalid(_))), "{to:?}");
    }
    let mut connection = Host::new();
    let refused = connection.try_post_to(1, &sges, Recipient::Xrc { srqn: 1 });
    assert!(matches!(refused, Err(PostError::Invalid(_))), "{refused:?}");
}

/// The initiator, the target, and what one sends to the other.
fn pair() -> (Host, Host) {
    (host(), Host::with(Setup { rq_psn: 500, sq_psn: 100, ..Setup::of(QpType::XrcTgt) }))
}

/// Lets both speak until nothing is under way.
fn settle(initiator: &mut Host, target: &mut Host) {
    loop {
        let requests = initiator.sent();
        target.recv_all(requests.clone());
        let responses = target.sent();
        initiator.recv_all(responses.clone());
        if requests.is_empty() && responses.is_empty() {
            return;
        }
    }
}

#[test]
fn the_two_ends_understand_each_other() {
    let (mut ini, mut tgt) = pair();
    let srqn = tgt.shared().number;
    tgt.post_shared(1, 0, 8192);
    ini.fill(0, &pattern(5000));
    let there = tgt.at(16384);
    post_to_queue(&mut ini, 1, SendOp::Send { immediate: Some(3) }, 5000, srqn);
    post_to_queue(&mut ini, 2, SendOp::Write { remote: there, immediate: None }, 4000, srqn);
    post_to_queue(&mut ini, 3, SendOp::FetchAdd { remote: tgt.at(32768), add: 5 }, 8, srqn);
    post_to_queue(&mut ini, 4, SendOp::Read { remote: there }, 3000, srqn);
    settle(&mut ini, &mut tgt);
    assert_eq!((ini.done(), tgt.received()), (ok(1..=4), ok([1])));
    assert_eq!((tgt.bytes(0, 5000), tgt.bytes(16384, 4000)), (pattern(5000), pattern(4000)));
    assert_eq!((tgt.word(32768), ini.bytes(0, 3000)), (5, pattern(3000)));
}

#[test]
fn a_refusal_reaches_the_initiator() {
    let (mut ini, mut tgt) = pair();
    let srqn = tgt.shared().number ^ 1;
    post_to_queue(&mut ini, 1, SEND, 4, srqn);
    post_to_queue(&mut ini, 2, SEND, 4, srqn);
    settle(&mut ini, &mut tgt);
    assert_eq!(ini.done(), [(1, WcStatus::RemInvReqErr), (2, WcStatus::WrFlushErr)]);
    assert_eq!((ini.state(), tgt.state()), (QpState::Err, QpState::Err));
}

#[test]
fn rnr_and_flush_are_those_of_a_reliable_connection() {
    let (mut ini, mut tgt) = pair();
    let srqn = tgt.shared().number;
    post_to_queue(&mut ini, 1, SEND, 4, srqn);
    settle(&mut ini, &mut tgt);
    assert_eq!((ini.done(), tgt.count(Counter::SendRnrErr)), (vec![], 1));
    tgt.post_shared(7, 0, 64);
    ini.advance(TIMEOUT);
    settle(&mut ini, &mut tgt);
    assert_eq!((ini.done(), tgt.received()), (ok([1]), ok([7])));
    post_to_queue(&mut ini, 2, SEND, 4, srqn);
    ini.modify(&QpAttr::to(QpState::Err));
    post_to_queue(&mut ini, 3, SEND, 4, srqn);
    assert_eq!((ini.sent(), ini.done(), ini.events()), (vec![], flushed([2, 3]), vec![]));
}

#[test]
fn local_operations_need_no_peer_at_all() {
    let mut host = host();
    host.grant(Access::MW_BIND);
    let window = host.window(MwType::Type2);
    let bind = host.bind(window, 0, 64);
    post(&mut host, 1, SendOp::BindMw(bind), 0);
    assert_eq!((host.sent(), host.done()), (vec![], ok([1])));
}
