//! Datagrams: address handles, Q_Keys, answers, multicast groups.

mod common;

use std::net::IpAddr;

use common::{ALL, both_kinds, eventually, next, region, succeed};
use uroce::testing::Connected;
use uroce::{
    AddressHandle, AddressVector, Completion, CompletionQueue, Error, GRH_BYTES, Gid, MemoryRegion,
    ModifyError, PostErrorKind, QpAttr, QpState, QpType, Qpn, QueuePair, RecvWr, SendWr, WcStatus,
};

const QKEY: u32 = 0x1234;

fn datagram(end: &Connected, cq: &CompletionQueue) -> QueuePair {
    let qp = end.pd.create_qp(QpType::Ud, cq, cq).max_inline_data(256).build().expect("a queue pair");
    qp.activate(QKEY).expect("ready to send")
}

fn way(from: &Connected, to: impl Into<Gid>) -> AddressHandle {
    from.pd.create_ah(&AddressVector::new(to.into())).expect("a way")
}

/// Memory that a datagram of up to 64 bytes fits, posted.
fn inbox(end: &Connected, qp: &QueuePair) -> MemoryRegion {
    let inbox = region(end, &[0; GRH_BYTES + 64]);
    qp.post_recv(&[RecvWr::new(1, inbox.sge(..))]).expect("a receive");
    inbox
}

fn payload(inbox: &MemoryRegion, completion: &Completion) -> Vec<u8> {
    inbox.to_vec(GRH_BYTES..completion.byte_len as usize).expect("received")
}

#[test]
fn a_datagram_arrives_and_is_answered() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let (left, right) = (datagram(a, &a.cq), datagram(b, &b.cq));
        let (question, answer) = (inbox(b, &right), inbox(a, &left));
        let there = way(a, b.ctx.gid());
        let wr = SendWr::send_inline(2, b"how are you?").imm(7).to(&there, right.qpn(), QKEY);
        left.post_send(&[wr.signaled()]).expect("room");
        succeed(&pair, &a.cq);
        let asked = succeed(&pair, &b.cq);
        assert_eq!(
            (asked.src_qp, asked.immediate, payload(&question, &asked)),
            (left.qpn(), Some(7), b"how are you?".to_vec())
        );
        assert!(asked.flags.contains(uroce::WcFlags::GRH));
        let mut header = [0; GRH_BYTES];
        question.read_at(0, &mut header).expect("the IP header");
        let back = b.pd.create_ah_from_wc(&asked, &header).expect("a way back");
        assert_eq!((back.address().dgid, back.pd().context().gid()), (a.ctx.gid(), b.ctx.gid()));
        right.post_send(&[SendWr::send_inline(3, b"well").to(&back, asked.src_qp, QKEY)]).expect("room");
        let answered = succeed(&pair, &a.cq);
        assert_eq!((answered.src_qp, payload(&answer, &answered)), (right.qpn(), b"well".to_vec()));
    }
}

#[test]
fn a_wrong_qkey_a_full_receive_queue_and_a_short_receive_are_counted_drops() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let (left, right) = (datagram(a, &a.cq), datagram(b, &b.cq));
        let there = way(a, b.ctx.gid());
        let send = |qkey| left.post_send(&[SendWr::send_inline(1, b"text").to(&there, right.qpn(), qkey)]);
        let counted = |wanted: &str, least: u64| {
            let counters = right.counters();
            let mut counters = counters.iter();
            counters.any(|(name, count)| name == wanted && count >= least)
        };
        send(QKEY + 1).expect("room");
        eventually(&pair, || {
            b.ctx.counters().iter().any(|(name, count)| name == "qkey_viol_cntr" && count == 1)
        });
        send(QKEY).expect("room");
        eventually(&pair, || counted("rx_no_receive", 1));
        let short = region(b, &[0; GRH_BYTES + 3]);
        right.post_recv(&[RecvWr::new(1, short.sge(..))]).expect("a receive");
        send(QKEY).expect("room");
        eventually(&pair, || counted("rx_too_long", 1));
        assert_eq!((right.state(), left.state()), (QpState::Rts, QpState::Rts));
    }
}

#[test]
fn addresses_without_a_mac_and_qkeys_for_the_privileged_are_refused() {
    let [(a, _b), _] = both_kinds();
    let stranger = AddressVector::new("192.0.2.77".parse().expect("an address"));
    assert_eq!(a.pd.create_ah(&stranger).expect_err("no such neighbour").errno(), libc::EHOSTUNREACH);
    let nowhere = AddressVector { sgid_index: Some(9), ..AddressVector::new(a.ctx.gid()) };
    assert!(matches!(a.pd.create_ah(&nowhere), Err(Error::Modify(ModifyError::NoSuchGid { index: 9, .. }))));
    let not_received = a.pd.create_ah_from_wc(&Completion::default(), &[0; GRH_BYTES]);
    assert_eq!(not_received.expect_err("nobody sent it").errno(), libc::EINVAL);
    let qp = a.pd.create_qp(QpType::Ud, &a.cq, &a.cq).build().expect("a queue pair");
    let refused = qp.activate(0x8000_0001).expect_err("a controlled Q_Key").to_string();
    assert!(refused.contains("bit 31"), "{refused}");
    assert!(a.pd.create_qp(QpType::Gsi, &a.cq, &a.cq).build().is_err());
}

#[test]
fn requests_without_an_address_or_with_a_foreign_one_are_refused() {
    let [(a, b), _] = both_kinds();
    let qp = datagram(&a, &a.cq);
    let there = way(&a, b.ctx.gid());
    let other_domain = a.ctx.alloc_pd().expect("a domain");
    let foreign = other_domain.create_ah(&AddressVector::new(b.ctx.gid())).expect("a way");
    let write = SendWr::rdma_write(1, [], region(&b, &[0; 8]).remote()).to(&there, Qpn::new(2), QKEY);
    for wr in [SendWr::send(1, []), SendWr::send(1, []).to(&foreign, Qpn::new(2), QKEY), write] {
        let refused = qp.post_send(&[wr]).expect_err("not for UD");
        assert!(matches!(refused.kind, PostErrorKind::Invalid(_)), "{refused}");
    }
    let refused = a.qp.post_send(&[SendWr::send(1, []).to(&there, Qpn::new(2), QKEY)]);
    assert!(refused.is_err(), "a connection has one peer");
    let (attr, init) = qp.query().expect("its attributes");
    assert_eq!(
        (attr.qkey, attr.state, attr.av, init.qp_type),
        (Some(QKEY), Some(QpState::Rts), None, QpType::Ud)
    );
    qp.modify(&QpAttr { qkey: Some(5), ..QpAttr::default() }).expect("another Q_Key");
    assert_eq!(qp.query().expect("its attributes").0.qkey, Some(5));
}

fn groups() -> [IpAddr; 1] {
    ["239.1.2.3".parse().expect("a group")]
}

#[test]
fn every_member_of_a_group_gets_a_copy() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        for group in groups() {
            let sender = a.pd.create_qp(QpType::Ud, &a.cq, &a.cq).block_multicast_loopback();
            let sender = sender.build().expect("a queue pair").activate(QKEY).expect("ready to send");
            let queues: Vec<_> =
                [a, b, b].iter().map(|end| end.ctx.create_cq(8).build().expect("a queue")).collect();
            let members: Vec<_> =
                [a, b, b].into_iter().zip(&queues).map(|(end, cq)| (end, datagram(end, cq))).collect();
            sender.attach_multicast(group).expect("a member that does not hear itself");
            members.iter().for_each(|(_, qp)| qp.attach_multicast(group).expect("a member"));
            members[0].1.attach_multicast(Gid::from(group)).expect("again, which changes nothing");
            let inboxes: Vec<_> = members.iter().map(|(end, qp)| inbox(end, qp)).collect();
            sender.post_recv(&[RecvWr::new(9, [])]).expect("a receive");
            let everybody = way(a, group);
            let wr = SendWr::send_inline(2, b"to all").to(&everybody, Qpn::MULTICAST, QKEY);
            sender.post_send(&[wr.clone().signaled()]).expect("room");
            for (cq, inbox) in queues.iter().zip(&inboxes) {
                let received = succeed(&pair, cq);
                assert_eq!((received.src_qp, payload(inbox, &received)), (sender.qpn(), b"to all".to_vec()));
            }
            assert_eq!(succeed(&pair, &a.cq).wr_id, 2, "the send, and no copy of its own");
            members[1].1.detach_multicast(group).expect("it was a member");
            assert!(members[1].1.detach_multicast(group).is_err(), "it is none any more");
            let _second: Vec<_> = members.iter().map(|(end, qp)| inbox(end, qp)).collect();
            sender.post_send(&[wr]).expect("room");
            succeed(&pair, &queues[0]);
            succeed(&pair, &queues[2]);
            assert_eq!(queues[1].poll(&mut [Completion::default()]), 0);
        }
    }
}

#[test]
fn who_may_join_what() {
    let [(a, b), _] = both_kinds();
    let qp = datagram(&a, &a.cq);
    let [group] = groups();
    assert!(qp.attach_multicast(b.ctx.gid()).is_err(), "no multicast address");
    assert!(a.qp.attach_multicast(group).is_err(), "not a datagram queue pair");
    assert!(qp.detach_multicast(group).is_err(), "not a member");
    qp.attach_multicast(group).expect("a member");
    drop(qp);
    let another = datagram(&a, &a.cq);
    another.attach_multicast(group).expect("a member");
}

/// A queue pair that has failed takes its datagrams down, and others nothing.
#[test]
fn a_datagram_queue_pair_survives_a_failed_send() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let (left, right) = (datagram(a, &a.cq), datagram(b, &b.cq));
        let there = way(a, b.ctx.gid());
        let stale = a.pd.alloc_mr(8, ALL).expect("a region").sge(..);
        left.post_send(&[SendWr::send(1, stale).to(&there, right.qpn(), QKEY)]).expect("room");
        assert_eq!(next(&pair, &a.cq).status, WcStatus::LocProtErr);
        assert_eq!(left.state(), QpState::Sqe);
        left.modify(&QpAttr::to(QpState::Rts)).expect("back to RTS");
        let inbox = inbox(b, &right);
        left.post_send(&[SendWr::send_inline(2, b"again").to(&there, right.qpn(), QKEY)]).expect("room");
        assert_eq!(payload(&inbox, &succeed(&pair, &b.cq)), b"again");
    }
}
