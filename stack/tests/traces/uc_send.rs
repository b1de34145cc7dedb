//! Sending on an unreliable connection: complete as soon as the last packet is in a frame, stopped by local errors alone
//! (protocol sections 4.12, 4.15 and 4.16).

use crate::common::*;
use Position::{First, Last, Middle, Only};
use uroce_stack::{FlushPlacement, FlushScope, MwType};

const SEND: SendOp = SendOp::Send { immediate: None };

fn host() -> Host {
    Host::with(Setup::of(QpType::Uc))
}

#[test]
fn messages_of_every_length_leave_with_and_without_immediate() {
    let mut host = host();
    let mut psn = 500;
    for (len, immediate) in LENGTHS.into_iter().flat_map(|len| [(len, None), (len, Some(0xFEED))]) {
        host.fill(0, &pattern(len));
        let sges = [host.sge(0, len as u32)];
        host.post(1, SendOp::Send { immediate }, SendFlags::empty(), &sges);
        host.post(2, SendOp::Write { remote: FAR, immediate }, SendFlags::empty(), &sges);
        let mut expected = send_message(psn, &pattern(len), immediate);
        expected.extend(write_message(psn + expected.len() as u32, FAR, &pattern(len), immediate));
        psn += expected.len() as u32;
        assert_eq!(host.sent(), each(expected, Pkt::uc), "no packet asks for an acknowledgement (C12)");
        assert_eq!(host.done(), ok([1, 2]));
    }
}

#[test]
fn p4_12_a_send_completes_with_its_last_packet() {
    let mut host = host();
    host.post_send(1, 3000);
    for position in [First, Middle] {
        let sent = host.transmit().expect("a packet");
        assert_eq!(sent.operation, send(position, 0, &[]).operation);
        host.publish();
        assert_eq!(host.done(), []);
    }
    assert!(host.transmit().is_some());
    host.publish();
    assert_eq!((host.done(), host.transmit(), host.engine.next_deadline()), (ok([1]), None, None));
}

#[test]
fn only_what_is_signaled_is_reported() {
    let mut host = Host::with(Setup { sq_sig_all: false, ..Setup::of(QpType::Uc) });
    let sges = [host.sge(0, 4)];
    for wr_id in 0..6 {
        let flags = if wr_id % 2 == 0 { SendFlags::SIGNALED } else { SendFlags::empty() };
        host.post(wr_id, SEND, flags, &sges);
    }
    assert_eq!((host.sent().len(), host.done()), (6, ok([0, 2, 4])));
}

#[test]
fn p4_1_solicited_stands_on_the_packet_that_completes_a_receive() {
    let mut host = host();
    let sges = [host.sge(0, 1025)];
    host.post(1, SEND, SendFlags::SOLICITED, &sges);
    host.post(2, SendOp::Write { remote: FAR, immediate: None }, SendFlags::SOLICITED, &sges);
    host.post(3, SendOp::Write { remote: FAR, immediate: Some(1) }, SendFlags::SOLICITED, &sges);
    let solicited: Vec<bool> = host.sent().iter().map(|packet| packet.solicited).collect();
    assert_eq!(solicited, [false, true, false, false, false, true]);
}

#[test]
fn p4_2_the_psn_wraps() {
    let mut host = Host::with(Setup { sq_psn: 0xFF_FFFF, ..Setup::of(QpType::Uc) });
    host.post_send(1, 2048);
    host.post_send(2, 4);
    let psns: Vec<u32> = host.sent().iter().map(|packet| packet.psn).collect();
    assert_eq!((psns, host.done()), (vec![0xFF_FFFF, 0, 1], ok([1, 2])));
}

#[test]
fn inline_data_leaves_as_it_was_when_posted() {
    let mut host = host();
    let wr = SendWr {
        wr_id: 1,
        op: SEND,
        flags: SendFlags::empty(),
        data: Gather::Inline(b"hello"),
        to: Recipient::Peer,
    };
    host.try_post(&wr).expect("the request is accepted");
    assert_eq!((host.sent(), host.done()), (vec![send(Only, 500, b"hello").uc()], ok([1])));
}

#[test]
fn c48_operations_that_uc_has_not_are_refused_when_posted() {
    let mut host = host();
    let refused = [
        SendOp::Read { remote: FAR },
        SendOp::FetchAdd { remote: FAR, add: 1 },
        SendOp::CompareSwap { remote: FAR, compare: 0, swap: 1 },
        SendOp::SendInvalidate { rkey: 1 },
        SendOp::AtomicWrite { remote: FAR },
        SendOp::Flush { remote: FAR, length: 1, placement: FlushPlacement::Global, scope: FlushScope::Range },
    ];
    for op in refused {
        let sges = [host.sge(0, 8)];
        let wr = SendWr {
            wr_id: 1,
            op,
            flags: SendFlags::empty(),
            data: Gather::Sges(&sges),
            to: Recipient::Peer,
        };
        assert!(matches!(host.try_post(&wr), Err(PostError::Invalid(_))), "{op:?}");
    }
    assert_eq!((host.sent(), host.done(), host.state()), (vec![], vec![], QpState::Rts));
}

#[test]
fn a_recipient_is_refused_where_there_is_a_peer() {
    let mut host = host();
    let ah = host.handle(PEER);
    let sges = [host.sge(0, 8)];
    for to in [Recipient::Datagram { ah: &ah, qpn: PEER_QPN, qkey: QKEY }, Recipient::Xrc { srqn: 1 }] {
        assert!(matches!(host.try_post_to(1, &sges, to), Err(PostError::Invalid(_))), "{to:?}");
    }
}

#[test]
fn local_operations_are_carried_out_in_their_turn() {
    let mut host = host();
    host.grant(Access::MW_BIND);
    let window = host.window(MwType::Type2);
    let bind = host.bind(window, 0, 64);
    let (_region, mr) = host.allocated(64);
    host.post_send(1, 2048);
    host.post_bare(2, SendOp::BindMw(bind));
    host.post_send(3, 4);
    host.post_bare(4, SendOp::LocalInvalidate { rkey: bind.rkey });
    host.post_bare(5, SendOp::RegisterMr(register(mr, 64)));
    assert_eq!((host.sent().len(), host.done()), (3, ok(1..=5)));
}

#[test]
fn p4_15_a_local_error_stops_the_sending_half_alone() {
    let mut host = host();
    let wrong = Sge { lkey: 0xBAD, ..host.sge(0, 4) };
    host.post_recv(9, 64, 64);
    host.post_send(1, 4);
    host.post(2, SEND, SendFlags::empty(), &[wrong]);
    host.post_send(3, 4);
    assert_eq!(host.sent(), [send(Only, 500, &[0; 4]).uc()]);
    let failed = (2, WcStatus::LocProtErr);
    assert_eq!(host.done(), [(1, WcStatus::Success), failed, (3, WcStatus::WrFlushErr)]);
    assert_eq!((host.state(), host.events()), (QpState::Sqe, vec![]));
    host.post_send(4, 4);
    host.recv(send(Only, 100, b"a").uc());
    assert_eq!((host.sent(), host.done(), host.received()), (vec![], flushed([4]), ok([9])));
    host.modify(&QpAttr::to(QpState::Rts));
    host.post_send(5, 4);
    assert_eq!((host.sent(), host.done()), (vec![send(Only, 501, &[0; 4]).uc()], ok([5])));
}

#[test]
fn p4_15_an_error_inside_a_message_leaves_the_rest_unsent() {
    let mut host = host();
    host.post_send(1, 4096);
    assert!(host.transmit().is_some());
    host.engine.deregister_mr(host.keys.lkey).expect("no window is bound to it");
    assert_eq!(host.sent(), []);
    assert_eq!((host.done(), host.state()), (vec![(1, WcStatus::LocProtErr)], QpState::Sqe));
    host.modify(&QpAttr::to(QpState::Rts));
    let wr = SendWr {
        wr_id: 2,
        op: SEND,
        flags: SendFlags::empty(),
        data: Gather::Inline(b"next"),
        to: Recipient::Peer,
    };
    host.try_post(&wr).expect("the request is accepted");
    assert_eq!((host.sent(), host.done()), (vec![send(Only, 501, b"next").uc()], ok([2])));
}

#[test]
fn a_local_operation_that_fails_is_such_an_error() {
    let mut host = host();
    host.post_bare(1, SendOp::LocalInvalidate { rkey: 0xBAD });
    host.post_send(2, 4);
    assert_eq!(host.sent(), []);
    assert_eq!(host.done(), [(1, WcStatus::LocQpOpErr), (2, WcStatus::WrFlushErr)]);
    assert_eq!(host.state(), QpState::Sqe);
}

#[test]
fn an_error_is_reported_signaled_or_not() {
    let mut host = Host::with(Setup { sq_sig_all: false, ..Setup::of(QpType::Uc) });
    host.post(1, SEND, SendFlags::empty(), &[Sge { lkey: 0xBAD, ..host.sge(0, 4) }]);
    host.post_send(2, 4);
    assert_eq!(host.sent(), []);
    assert_eq!(host.done(), [(1, WcStatus::LocProtErr), (2, WcStatus::WrFlushErr)]);
}

#[test]
fn p4_15_sqe_goes_to_err_and_reset_too() {
    for to in [QpState::Err, QpState::Reset] {
        let mut host = host();
        host.post_recv(9, 0, 64);
        host.post(1, SEND, SendFlags::empty(), &[Sge { lkey: 0xBAD, ..host.sge(0, 4) }]);
        assert_eq!((host.sent(), host.done().len()), (vec![], 1));
        host.modify(&QpAttr::to(to));
        let expected = if to == QpState::Err { flushed([9]) } else { vec![] };
        assert_eq!((host.sent(), host.received(), host.state()), (vec![], expected, to));
    }
}

#[test]
fn c60_everything_is_flushed_in_order() {
    let mut host = host();
    for wr_id in 0..5 {
        host.post_recv(100 + wr_id, 0, 1024);
    }
    host.recv(send(First, 100, &[1; 1024]).uc());
    host.post_send(0, 4096);
    host.post_send(1, 4);
    assert!(host.transmit().is_some());
    host.modify(&QpAttr::to(QpState::Err));
    host.post_send(2, 4);
    host.post_recv(105, 0, 1024);
    host.recv(send(Last, 101, b"a").uc());
    assert_eq!((host.sent(), host.done(), host.received()), (vec![], flushed(0..3), flushed(100..106)));
    assert_eq!(host.count(Counter::WrongState), 1);
}

#[test]
fn p4_15_sqd_finishes_the_message_that_was_started() {
    let mut host = host();
    host.post_send(1, 3000);
    host.post_send(2, 4);
    assert!(host.transmit().is_some());
    host.modify(&QpAttr { en_sqd_async_notify: Some(true), ..QpAttr::to(QpState::Sqd) });
    assert_eq!((host.events(), host.state()), (vec![], QpState::Sqd));
    let rest: Vec<Pkt> = host.sent();
    assert_eq!(rest, [send(Middle, 501, &[0; 1024]).uc(), send(Last, 502, &[0; 952]).uc()]);
    assert_eq!((host.done(), host.events()), (ok([1]), vec![AsyncEvent::SqDrained(host.qpn)]));
    host.post_send(3, 4);
    host.post_recv(9, 0, 64);
    host.recv(send(Only, 100, b"a").uc());
    assert_eq!((host.sent(), host.received()), (vec![], ok([9])));
    host.modify(&QpAttr::to(QpState::Rts));
    assert_eq!((host.sent().len(), host.done(), host.events()), (2, ok([2, 3]), vec![]));
}
