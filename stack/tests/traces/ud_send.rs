//! Sending datagrams (protocol sections 4.11, 4.15 and 4.16).

use crate::common::*;
use Position::Only;
use uroce_stack::ModifyError;

fn host() -> Host {
    Host::with(Setup::of(QpType::Ud))
}

/// A datagram of ours.
fn ours(host: &Host, psn: u32, payload: &[u8]) -> Pkt {
    send(Only, psn, payload).ud(QKEY, host.qpn)
}

#[test]
fn a_datagram_completes_when_it_is_in_a_frame() {
    let mut host = host();
    host.fill(0, &pattern(100));
    host.post_datagram(1, 100);
    host.post_datagram(2, 0);
    let expected = [ours(&host, 500, &pattern(100)), ours(&host, 501, b"")];
    assert_eq!(
        (host.sent().as_slice(), host.done()),
        (expected.as_slice(), ok([1, 2])),
        "AckReq is not set (C12)"
    );
    assert_eq!(host.engine.next_deadline(), None);
}

#[test]
fn each_datagram_of_a_queue_goes_where_it_is_told() {
    let mut host = host();
    let places = [
        (PEER, PEER_QPN, QKEY),
        (STRANGER, Qpn::new(77), 5),
        (PEER_V6, Qpn::new(78), 6),
        (PEER, Qpn::GSI, QKEY),
        (GROUP, Qpn::MULTICAST, 7),
    ];
    for (wr_id, (to, qpn, qkey)) in places.into_iter().enumerate() {
        host.post_datagram_to(wr_id as u64, 4, to, qpn, qkey);
    }
    let sent = host.sent();
    assert_eq!(sent.len(), places.len());
    for (number, (packet, (to, qpn, qkey))) in sent.iter().zip(places).enumerate() {
        let source_qp = host.qpn;
        assert_eq!(packet.class, Class::Ud(Deth { qkey, source_qp }));
        assert_eq!((packet.dest_qp.unwrap_or(PEER_QPN), packet.psn), (qpn, 500 + number as u32));
        let shown = if to == PEER { HOST } else { to };
        assert_eq!(packet.destination, shown, "a packet to the peer is written as the peer sends it");
    }
    assert_eq!(host.done(), ok(0..5));
}

#[test]
fn p4_11_a_qkey_with_bit_31_stands_for_our_own() {
    let mut host = host();
    for asked in [0x8000_0000, 0xFFFF_FFFF, 0x8001_0000] {
        host.post_datagram_to(1, 0, PEER, PEER_QPN, asked);
        let [packet] = &host.sent()[..] else { panic!("one packet") };
        assert_eq!(packet.class, Class::Ud(Deth { qkey: QKEY, source_qp: host.qpn }), "{asked:#x}");
    }
}

#[test]
fn s07_a_controlled_qkey_is_not_for_everybody() {
    let mut host = Host::with(Setup { state: QpState::Reset, ..Setup::of(QpType::Ud) });
    let attr = QpAttr { qkey: Some(0x8001_0000), ..attr_to(QpState::Init, &host.setup) };
    let refused = host.engine.modify_qp(host.now, host.qpn, &attr);
    assert_eq!(refused, Err(ModifyError::ControlledQkey(0x8001_0000)));
    host.setup.state = QpState::Rts;
    host.bring_up();
    let later = QpAttr { qkey: Some(1 << 31), ..QpAttr::default() };
    assert_eq!(host.engine.modify_qp(host.now, host.qpn, &later), Err(ModifyError::ControlledQkey(1 << 31)));
    host.post_datagram_to(1, 0, PEER, Qpn::GSI, 0x8001_0000);
    let [packet] = &host.sent()[..] else { panic!("one packet") };
    assert_eq!(packet.class, Class::Ud(Deth { qkey: QKEY, source_qp: host.qpn }), "queue pair 1 drops it");
}

#[test]
fn a_qkey_changes_while_everything_runs() {
    let mut host = host();
    host.modify(&QpAttr { qkey: Some(9), ..QpAttr::default() });
    assert_eq!(host.attr().qkey, Some(9));
    host.post_recv(1, 0, 64);
    host.recv(datagram(0, b"a"));
    host.recv(send(Only, 0, b"b").ud(9, PEER_QPN));
    assert_eq!((host.sent(), host.received(), host.count(Counter::BadQkey)), (vec![], ok([1]), 1));
}

#[test]
fn immediate_solicited_and_inline_leave_as_asked() {
    let mut host = host();
    let ah = host.handle(PEER);
    let to = Recipient::Datagram { ah: &ah, qpn: PEER_QPN, qkey: QKEY };
    let op = SendOp::Send { immediate: Some(0xFEED) };
    let wr = SendWr { wr_id: 1, op, flags: SendFlags::SOLICITED, data: Gather::Inline(b"inline"), to };
    host.try_post(&wr).expect("the request is accepted");
    assert_eq!(host.sent(), [ours(&host, 500, b"inline").imm(0xFEED).solicited()]);
    assert_eq!(host.done(), ok([1]));
}

#[test]
fn p4_16_longer_than_the_mtu_of_the_port_is_a_length_error() {
    for port_mtu in [Mtu::B256, Mtu::B1024, Mtu::B4096] {
        let mut host = Host::with(Setup { port_mtu, mtu: port_mtu, ..Setup::of(QpType::Ud) });
        let longest = port_mtu.bytes() as u32;
        host.post_datagram(1, longest);
        host.post_datagram(2, longest + 1);
        host.post_datagram(3, 4);
        assert_eq!(host.sent().len(), 1);
        let failed = (2, WcStatus::LocLenErr);
        assert_eq!(host.done(), [(1, WcStatus::Success), failed, (3, WcStatus::WrFlushErr)]);
        assert_eq!((host.state(), host.events()), (QpState::Sqe, vec![]));
    }
}

#[test]
fn p4_15_after_a_send_error_it_receives_on_and_comes_back() {
    let mut host = host();
    host.post_recv(9, 0, 64);
    let ah = host.handle(PEER);
    let wrong = [Sge { lkey: 0xBAD, ..host.sge(0, 4) }];
    host.try_post_to(1, &wrong, Recipient::Datagram { ah: &ah, qpn: PEER_QPN, qkey: QKEY })
        .expect("accepted");
    assert_eq!((host.sent(), host.done()), (vec![], vec![(1, WcStatus::LocProtErr)]));
    host.post_datagram(2, 4);
    host.recv(datagram(0, b"a"));
    assert_eq!((host.sent(), host.done(), host.received()), (vec![], flushed([2]), ok([9])));
    assert_eq!(host.state(), QpState::Sqe);
    host.modify(&QpAttr::to(QpState::Rts));
    host.post_datagram(3, 4);
    assert_eq!((host.sent().len(), host.done()), (1, ok([3])));
}

#[test]
fn an_address_handle_of_another_domain_is_refused() {
    let mut host = host();
    let other = host.engine.alloc_pd().expect("room for a protection domain");
    let ah = AddressHandle::new(other, &path(HOST, PEER)).expect("of one family");
    let to = Recipient::Datagram { ah: &ah, qpn: PEER_QPN, qkey: QKEY };
    let refused = host.try_post_to(1, &[host.sge(0, 4)], to);
    assert!(matches!(refused, Err(PostError::Invalid(_))), "{refused:?}");
    assert_eq!((host.sent(), host.done(), ah.pd()), (vec![], vec![], other));
}

#[test]
fn an_address_handle_of_two_families_does_not_exist() {
    let host = host();
    assert!(AddressHandle::new(host.pd, &path(HOST, PEER_V6)).is_err());
    assert!(AddressHandle::new(host.pd, &path(HOST_V6, PEER)).is_err());
}

#[test]
fn a_datagram_needs_a_recipient() {
    let mut host = host();
    let sges = [host.sge(0, 4)];
    for to in [Recipient::Peer, Recipient::Xrc { srqn: 1 }] {
        assert!(matches!(host.try_post_to(1, &sges, to), Err(PostError::Invalid(_))), "{to:?}");
    }
}

#[test]
fn c48_operations_that_ud_has_not_are_refused_when_posted() {
    let mut host = host();
    let ah = host.handle(PEER);
    let to = Recipient::Datagram { ah: &ah, qpn: PEER_QPN, qkey: QKEY };
    let refused = [
        SendOp::Write { remote: FAR, immediate: None },
        SendOp::Read { remote: FAR },
        SendOp::FetchAdd { remote: FAR, add: 1 },
        SendOp::SendInvalidate { rkey: 1 },
        SendOp::LocalInvalidate { rkey: 1 },
    ];
    for op in refused {
        let wr =
            SendWr { wr_id: 1, op, flags: SendFlags::empty(), data: Gather::Sges(&[host.sge(0, 8)]), to };
        assert!(matches!(host.try_post(&wr), Err(PostError::Invalid(_))), "{op:?}");
    }
    assert_eq!((host.sent(), host.state()), (vec![], QpState::Rts));
}

#[test]
fn c60_everything_is_flushed_in_order() {
    let mut host = host();
    for wr_id in 0..4 {
        host.post_recv(10 + wr_id, 0, 64);
        host.post_datagram(wr_id, 4);
    }
    assert!(host.transmit().is_some());
    host.modify(&QpAttr::to(QpState::Err));
    host.post_datagram(4, 4);
    host.post_recv(14, 0, 64);
    host.recv(datagram(0, b"a"));
    assert_eq!(host.sent(), []);
    assert_eq!((host.done(), host.received()), ([ok([0]), flushed(1..5)].concat(), flushed(10..15)));
}

#[test]
fn p4_15_sqd_starts_nothing_and_is_drained_at_once() {
    let mut host = host();
    host.post_datagram(1, 4);
    host.modify(&QpAttr { en_sqd_async_notify: Some(true), ..QpAttr::to(QpState::Sqd) });
    assert_eq!((host.sent(), host.events()), (vec![], vec![AsyncEvent::SqDrained(host.qpn)]));
    host.modify(&QpAttr::to(QpState::Rts));
    assert_eq!((host.sent().len(), host.done()), (1, ok([1])));
}

#[test]
fn c76_what_is_sent_to_our_own_address_arrives_like_any_other() {
    let mut host = host();
    host.fill(0, b"loop");
    host.post_recv(1, 64, 64);
    host.post_datagram_to(2, 4, HOST, host.qpn, QKEY);
    let mut frame = [0; 4096 + MAX_HEADER];
    let len = host.engine.transmit(host.now, &mut frame).expect("a datagram");
    host.engine.receive(host.now, &frame[..len], &[]);
    assert_eq!((host.sent(), host.done(), host.bytes(104, 4)), (vec![], ok([2]), b"loop".to_vec()));
    let [received] = host.recv_completions()[..] else { panic!("one completion") };
    assert_eq!((received.wr_id, received.src_qp, received.byte_len), (1, host.qpn, 44));
}
