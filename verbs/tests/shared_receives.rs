//! Shared receive queues, also those of extended reliable connections.

mod common;

use common::{await_event, both_kinds, connected, eventually, next, region, succeed};
use uroce::testing::Connected;
use uroce::{
    AsyncEvent, PostErrorKind, QpAttr, QpState, QpType, QueuePair, RecvWr, SendWr, SharedReceiveQueue,
    SrqAttr, WcOpcode, WcStatus,
};

const RC: (QpType, QpType) = (QpType::Rc, QpType::Rc);

fn srq(end: &Connected, max_wr: u32) -> SharedReceiveQueue {
    end.pd.create_srq(SrqAttr { max_wr, ..SrqAttr::default() }).expect("a shared receive queue")
}

/// Connections whose right ends take their receives from `srq`.
fn on_srq(
    pair: &(Connected, Connected),
    srq: &SharedReceiveQueue,
    count: usize,
) -> Vec<(QueuePair, QueuePair)> {
    let one = || {
        let left = pair.0.pd.create_qp(QpType::Rc, &pair.0.cq, &pair.0.cq).build().expect("a queue pair");
        let right = pair.1.pd.create_qp(QpType::Rc, &pair.1.cq, &pair.1.cq).srq(srq).build();
        let right = right.expect("a queue pair");
        let (ours, theirs) = (left.endpoint(), right.endpoint());
        let right = right.connect(ours).expect("connected");
        (left.connect(theirs).expect("connected"), right)
    };
    (0..count).map(|_| one()).collect()
}

#[test]
fn queue_pairs_take_the_oldest_receive() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let srq = srq(b, 8);
        let connections = on_srq(&pair, &srq, 3);
        let inbox = region(b, &[0; 24]);
        let receives: Vec<_> =
            (0..3).map(|id| RecvWr::new(id, inbox.sge(id as usize * 8..id as usize * 8 + 8))).collect();
        srq.post_recv(&receives).expect("receives");
        for (id, (left, right)) in (0..).zip(&connections) {
            left.post_send(&[SendWr::send_inline(9, &[b'a' + id as u8; 8]).signaled()]).expect("room");
            succeed(&pair, &a.cq);
            let received = succeed(&pair, &b.cq);
            assert_eq!((received.wr_id, received.qp_num, received.byte_len), (id, right.qpn(), 8));
        }
        assert_eq!(inbox.to_vec(..).expect("received"), b"aaaaaaaabbbbbbbbcccccccc");
        let refused = connections[0].1.post_recv(&[RecvWr::new(1, [])]).expect_err("post them to the queue");
        assert!(matches!(refused.kind, PostErrorKind::Invalid(_)));
        assert_eq!(connections[0].1.srq().map(SharedReceiveQueue::id), Some(srq.id()));
    }
}

#[test]
fn the_limit_is_reached_once_and_set_again() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let srq = srq(b, 4);
        let connections = on_srq(&pair, &srq, 1);
        let send = || {
            connections[0].0.post_send(&[SendWr::send(1, []).signaled()]).expect("room");
            succeed(&pair, &a.cq);
            succeed(&pair, &b.cq);
        };
        srq.post_recv(&vec![RecvWr::new(1, []); 4]).expect("receives");
        srq.set_limit(3).expect("within the queue");
        assert_eq!(srq.query(), SrqAttr { max_wr: 4, max_sge: 1, srq_limit: 3 });
        send();
        assert_eq!(b.ctx.async_event(), None, "three are left");
        send();
        await_event(&pair, b, AsyncEvent::SrqLimitReached(srq.id()));
        assert_eq!(srq.query().srq_limit, 0);
        send();
        assert_eq!(b.ctx.async_event(), None, "it is not armed");
        srq.set_limit(2).expect("within the queue");
        send();
        await_event(&pair, b, AsyncEvent::SrqLimitReached(srq.id()));
        assert!(srq.set_limit(5).is_err());
    }
}

#[test]
fn a_queue_pair_in_error_has_seen_its_last_receive() {
    for pair in both_kinds() {
        let (_, b) = &pair;
        let srq = srq(b, 4);
        let connections = on_srq(&pair, &srq, 2);
        srq.post_recv(&[RecvWr::new(1, [])]).expect("a receive");
        let failed = &connections[0].1;
        failed.modify(&QpAttr::to(QpState::Err)).expect("into error");
        await_event(&pair, b, AsyncEvent::QpLastWqeReached(failed.qpn()));
        connections[1].0.post_send(&[SendWr::send(2, [])]).expect("room");
        assert_eq!(succeed(&pair, &b.cq).qp_num, connections[1].1.qpn(), "the receive is still there");
    }
}

#[test]
fn a_queue_grows_while_messages_take_from_it() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let srq = srq(b, 4);
        let connections = on_srq(&pair, &srq, 1);
        let mut posted = 0;
        for round in 0..100_u32 {
            let size = if round % 2 == 0 { 64 } else { 4 };
            srq.resize(size).expect("what is posted fits");
            assert_eq!(srq.query().max_wr, size);
            srq.post_recv(&[RecvWr::new(posted, []), RecvWr::new(posted + 1, [])]).expect("receives");
            posted += 2;
            connections[0].0.post_send(&[SendWr::send(1, []), SendWr::send(2, []).signaled()]).expect("room");
            succeed(&pair, &a.cq);
            assert_eq!([succeed(&pair, &b.cq).wr_id, succeed(&pair, &b.cq).wr_id], [posted - 2, posted - 1]);
        }
        srq.post_recv(&vec![RecvWr::new(0, []); 4]).expect("a full queue");
        let refused = srq.post_recv(&[RecvWr::new(0, [])]).expect_err("full");
        assert_eq!((refused.index, refused.kind), (0, PostErrorKind::QueueFull));
        assert!(srq.resize(2).is_err(), "four are posted");
        let too_many = RecvWr::new(0, [uroce::Sge::default(); 2]);
        assert!(srq.post_recv(&[too_many]).is_err(), "one entry each");
    }
}

#[test]
fn an_empty_queue_makes_the_peer_wait() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let srq = srq(b, 4);
        let connections = on_srq(&pair, &srq, 1);
        connections[0].0.post_send(&[SendWr::send(1, []).signaled()]).expect("room");
        eventually(&pair, || {
            connections[0].0.counters().iter().any(|(name, count)| name == "rcvd_rnr_err" && count > 0)
        });
        srq.post_recv(&[RecvWr::new(2, [])]).expect("a receive");
        assert_eq!(succeed(&pair, &b.cq).wr_id, 2);
        succeed(&pair, &a.cq);
    }
}

#[test]
fn a_queue_of_another_kind_or_device_is_refused() {
    for (a, b) in both_kinds() {
        let xrcd = b.ctx.open_xrcd().expect("a domain");
        let xrc = b.pd.create_xrc_srq(SrqAttr::default(), &xrcd, &b.cq).expect("a queue");
        let foreign = srq(&a, 4);
        let make = |srq| b.pd.create_qp(QpType::Rc, &b.cq, &b.cq).srq(srq).build().map(drop);
        assert_eq!(make(&xrc).expect_err("for XRC targets").errno(), libc::EINVAL);
        assert!(matches!(make(&foreign), Err(uroce::Error::OtherDevice)));
        let target = b.pd.create_qp(QpType::XrcTgt, &b.cq, &b.cq).build();
        assert!(target.is_err(), "a target needs a domain");
        assert!(b.pd.create_srq(SrqAttr { max_wr: 0, ..SrqAttr::default() }).is_err());
    }
}

#[test]
fn xrc_requests_reach_the_queue_they_name() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let xrcd = b.ctx.open_xrcd().expect("a domain");
        let queues: Vec<_> = (0..2).map(|_| b.ctx.create_cq(16).build().expect("a queue")).collect();
        let srqs: Vec<_> = queues
            .iter()
            .map(|cq| b.pd.create_xrc_srq(SrqAttr::default(), &xrcd, cq).expect("a shared receive queue"))
            .collect();
        let (initiator, target) = xrc_pair(&pair, &xrcd);
        let inbox = region(b, &[0; 8]);
        for (number, (cq, srq)) in (0..).zip(queues.iter().zip(&srqs)) {
            srq.post_recv(&[RecvWr::new(number, inbox.sge(..))]).expect("a receive");
            let wr = SendWr::send_inline(5, b"to one").to_srq(srq.number()).signaled();
            initiator.post_send(&[wr]).expect("room");
            assert_eq!(succeed(&pair, &a.cq).opcode, WcOpcode::Send);
            let received = succeed(&pair, cq);
            assert_eq!((received.wr_id, received.qp_num), (number, target.qpn()));
            assert_eq!(inbox.to_vec(..6).expect("received"), b"to one");
        }
        let back = region(a, &[0; 8]);
        let read = SendWr::rdma_read(6, back.sge(..), inbox.remote()).to_srq(srqs[0].number()).signaled();
        initiator.post_send(&[read]).expect("room");
        assert_eq!(succeed(&pair, &a.cq).opcode, WcOpcode::RdmaRead);
        assert_eq!(back.to_vec(..6).expect("read"), b"to one");
        assert!(initiator.post_send(&[SendWr::send(1, [])]).is_err(), "no queue named");
        assert!(target.post_send(&[SendWr::send(1, [])]).is_err(), "a target sends nothing");
        assert!(target.post_recv(&[RecvWr::new(1, [])]).is_err(), "nor takes receives");
        initiator.post_send(&[SendWr::send(7, []).to_srq(srqs[0].number() ^ 1)]).expect("room");
        assert_ne!(next(&pair, &a.cq).status, WcStatus::Success, "no such queue");
    }
}

fn xrc_pair(pair: &(Connected, Connected), xrcd: &uroce::XrcDomain) -> (QueuePair, QueuePair) {
    let (a, b) = pair;
    let initiator = a.pd.create_qp(QpType::XrcIni, &a.cq, &a.cq).build().expect("an initiator");
    let target = b.pd.create_qp(QpType::XrcTgt, &b.cq, &b.cq).xrcd(xrcd).access(common::ALL);
    let target = target.build().expect("a target");
    let (ours, theirs) = (initiator.endpoint(), target.endpoint());
    let target = target.connect(ours).expect("connected");
    (initiator.connect(theirs).expect("connected"), target)
}

#[test]
fn handles_keep_alive_what_they_need() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let (initiator, target) = {
            let xrcd = b.ctx.open_xrcd().expect("a domain");
            xrc_pair(&pair, &xrcd)
        };
        assert!(target.xrcd().is_some_and(|xrcd| xrcd.context().gid() == b.ctx.gid()));
        drop((initiator, target));
        let (left, right) = {
            let srq = srq(b, 4);
            srq.post_recv(&[RecvWr::new(3, [])]).expect("a receive");
            on_srq(&pair, &srq, 1).remove(0)
        };
        left.post_send(&[SendWr::send(1, []).signaled()]).expect("room");
        succeed(&pair, &a.cq);
        assert_eq!(succeed(&pair, &b.cq).qp_num, right.qpn());
        let (plain, _) = connected(&pair, RC, |qp| qp);
        assert!(plain.srq().is_none());
    }
}
