//! What goes wrong arrives where it should, and says what it is.

mod common;

use common::{both_kinds, drive, next, region, succeed, threaded};
use uroce::{
    AddressVector, AsyncEvent, CompletionExt, ConnectionParams, Error, ModifyError, QpAttr, QpState, QpType,
    Qpn, RecvWr, RefusedChange, SendWr, WcStatus,
};

#[test]
fn a_wrong_remote_key_fails_the_request_and_flushes_the_rest() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let mut remote = region(b, &[0; 8]).remote();
        remote.rkey ^= 1;
        a.qp.post_recv(&[RecvWr::new(5, [])]).expect("a receive");
        let write = |id| SendWr::rdma_write_inline(id, b"x", remote);
        a.qp.post_send(&[write(1), write(2)]).expect("two writes");
        let failed = next(&pair, &a.cq);
        assert_eq!((failed.wr_id, failed.status), (1, WcStatus::RemAccessErr));
        assert!(failed.result().expect_err("a failure").to_string().contains("check rkey"));
        let mut flushed = [next(&pair, &a.cq), next(&pair, &a.cq)].map(|wc| (wc.wr_id, wc.status));
        flushed.sort_by_key(|(id, _)| *id);
        assert_eq!(flushed, [(2, WcStatus::WrFlushErr), (5, WcStatus::WrFlushErr)]);
        assert_eq!(a.qp.state(), QpState::Err);
        // In ERR everything is accepted and flushed, at once.
        a.qp.post_send(&[write(3)]).expect("accepted");
        assert_eq!((next(&pair, &a.cq).wr_id, a.qp.state()), (3, QpState::Err));
        a.qp.post_recv(&[RecvWr::new(4, [])]).expect("accepted");
        assert_eq!(next(&pair, &a.cq).status, WcStatus::WrFlushErr);
    }
}

#[test]
fn the_peer_of_a_forbidden_access_hears_of_it() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let remote = b.pd.alloc_mr(8, uroce::Access::LOCAL_WRITE).expect("a region").remote();
        a.qp.post_send(&[SendWr::rdma_write_inline(1, b"x", remote)]).expect("a write");
        assert_eq!(next(&pair, &a.cq).status, WcStatus::RemAccessErr);
        let event = std::iter::from_fn(|| {
            drive(&pair);
            Some(b.ctx.async_event())
        })
        .take(1 << 20)
        .flatten()
        .next();
        assert_eq!(event, Some(AsyncEvent::QpAccessErr(b.qp.qpn())));
    }
}

#[test]
fn a_local_key_that_was_revoked_fails_locally() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let target = region(b, &[0; 8]);
        let source = region(a, b"12345678");
        let stale = source.sge(..);
        drop(source);
        a.qp.post_send(&[SendWr::rdma_write(1, stale, target.remote())]).expect("accepted");
        assert_eq!(next(&pair, &a.cq).status, WcStatus::LocProtErr);
        assert_eq!(target.load_u64(0).expect("a word"), 0);
    }
}

#[test]
fn a_silent_peer_is_given_up_after_the_retries() {
    let (left, right) = uroce::testing::loopback_pair(Default::default()).expect("a pair");
    let (pd, cq) = (left.alloc_pd().expect("a domain"), left.create_cq(4).build().expect("a queue"));
    let params = ConnectionParams { timeout: 8, retry_cnt: 2, ..ConnectionParams::default() };
    let qp = pd.create_qp(QpType::Rc, &cq, &cq).build().expect("a queue pair").params(params);
    let nobody = uroce::Endpoint { gid: right.gid(), qpn: Qpn::new(0x1234), psn: uroce::Psn::new(0) };
    let qp = qp.connect(nobody).expect("connected to nobody");
    qp.post_send(&[SendWr::send(1, [])]).expect("a send");
    let failed = cq.wait_one_for(common::PATIENCE).expect("a completion");
    assert_eq!(failed.status, WcStatus::RetryExcErr);
}

#[test]
fn a_peer_without_receives_is_given_up_after_the_rnr_retries() {
    let (left, right) = uroce::testing::loopback_pair(Default::default()).expect("a pair");
    let (a, _b) =
        uroce::testing::connect_with(&left, &right, &ConnectionParams::default()).expect("a connection");
    a.qp.post_send(&[SendWr::send(1, [])]).expect("a send");
    let failed = a.cq.wait_one_for(common::PATIENCE).expect("a completion");
    assert_eq!(failed.status, WcStatus::RnrRetryExcErr);
}

#[test]
fn a_completion_queue_that_overflows_says_so() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let small = a.ctx.create_cq(4).build().expect("a queue");
        let qp = a.pd.create_qp(QpType::Rc, &small, &small).build().expect("a queue pair");
        let peer = b.pd.create_qp(QpType::Rc, &b.cq, &b.cq).build().expect("a queue pair");
        let (ours, theirs) = (qp.endpoint(), peer.endpoint());
        let (_peer, qp) = (peer.connect(ours).expect("connected"), qp.connect(theirs).expect("connected"));
        let requests =
            vec![SendWr::rdma_write(1, [], Default::default()).signaled(); small.capacity() as usize + 1];
        qp.post_send(&requests).expect("more than the queue holds");
        let event = std::iter::from_fn(|| {
            drive(&pair);
            Some(a.ctx.async_event())
        })
        .take(1 << 24)
        .flatten()
        .next();
        assert_eq!(event, Some(AsyncEvent::CqErr(small.id())));
        while small.poll(&mut [Default::default()]) > 0 {}
        assert!(matches!(small.req_notify(false), Err(Error::CqOverrun)));
        assert!(matches!(small.wait_one(), Err(Error::CqOverrun)));
        assert_eq!(qp.state(), QpState::Err);
    }
}

#[test]
fn refused_changes_name_what_is_missing() {
    let ctx = uroce::testing::loopback_pair(Default::default()).expect("a pair").0;
    let (pd, cq) = (ctx.alloc_pd().expect("a domain"), ctx.create_cq(4).build().expect("a queue"));
    let qp = pd.create_qp(QpType::Rc, &cq, &cq).build_reset().expect("a queue pair");
    let error = qp.modify(&QpAttr { port: Some(1), ..QpAttr::to(QpState::Init) }).expect_err("incomplete");
    assert_eq!(error.errno(), libc::EINVAL);
    let text = error.to_string();
    assert!(text.contains("PKEY_INDEX") && text.contains("ACCESS_FLAGS"), "{text}");
    assert!(qp.post_recv(&[RecvWr::new(1, [])]).is_err(), "nothing is posted in RESET");
    let error = qp.modify(&QpAttr::to(QpState::Rts)).expect_err("no such transition");
    assert!(matches!(error, ModifyError::Refused(RefusedChange::Transition { .. })));
    let stranger = AddressVector::new("192.0.2.99".parse().expect("a GID"));
    let error =
        qp.modify(&QpAttr { av: Some(stranger), ..QpAttr::to(QpState::Rtr) }).expect_err("unreachable");
    assert_eq!(error.errno(), libc::EHOSTUNREACH);
}

#[test]
fn what_was_set_is_what_is_queried() {
    let (a, b) = threaded();
    let (attr, init) = a.qp.query().expect("its attributes");
    assert_eq!((attr.state, attr.dest_qpn, attr.timeout), (Some(QpState::Rts), Some(b.qp.qpn()), Some(14)));
    assert_eq!(attr.av.map(|av| av.dgid), Some(b.ctx.gid()));
    assert_eq!((init.max_send_sge, init.max_inline_data), (4, 256));
}

#[test]
fn a_reset_queue_pair_can_be_used_again() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        b.qp.post_recv(&[RecvWr::new(9, [])]).expect("a receive");
        for qp in [&a.qp, &b.qp] {
            qp.modify(&QpAttr::to(QpState::Reset)).expect("reset");
        }
        assert_eq!((a.qp.state(), b.cq.poll(&mut [Default::default()])), (QpState::Reset, 0));
        assert!(a.qp.post_send(&[SendWr::send(1, [])]).is_err());
        for (end, peer) in [(a, b), (b, a)] {
            bring_up(end, peer);
        }
        b.qp.post_recv(&[RecvWr::new(1, [])]).expect("a receive");
        a.qp.post_send(&[SendWr::send(2, []).signaled()]).expect("a send");
        assert_eq!((succeed(&pair, &a.cq).wr_id, succeed(&pair, &b.cq).wr_id), (2, 1));
    }
}

fn bring_up(end: &uroce::testing::Connected, peer: &uroce::testing::Connected) {
    let psn = |qpn: Qpn| Some(uroce::Psn::new(qpn.get()));
    let access = Some(uroce::Access::REMOTE_WRITE);
    let init = QpAttr { pkey_index: Some(0), port: Some(1), access, ..QpAttr::to(QpState::Init) };
    let rtr = QpAttr {
        av: Some(AddressVector { sgid_index: Some(1), ..AddressVector::new(peer.ctx.gid()) }),
        path_mtu: Some(uroce::Mtu::B256),
        dest_qpn: Some(peer.qp.qpn()),
        rq_psn: psn(peer.qp.qpn()),
        max_dest_rd_atomic: Some(1),
        min_rnr_timer: Some(1),
        ..QpAttr::to(QpState::Rtr)
    };
    let rts = QpAttr {
        timeout: Some(14),
        retry_cnt: Some(7),
        rnr_retry: Some(7),
        sq_psn: psn(end.qp.qpn()),
        max_rd_atomic: Some(1),
        ..QpAttr::to(QpState::Rts)
    };
    for attr in [init, rtr, rts] {
        end.qp.modify(&attr).expect("a legal transition");
    }
}

#[test]
fn memory_outside_the_region_is_not_reached() {
    let (a, _b) = threaded();
    let mr = region(&a, &[1; 16]);
    assert!(matches!(mr.read_at(9, &mut [0; 8]), Err(Error::Bounds { offset: 9, end: 17, length: 16 })));
    assert!(matches!(mr.write_at(usize::MAX, b"x"), Err(Error::Bounds { .. })));
    assert!(matches!(mr.load_u64(4), Err(Error::Unaligned(4))));
    assert!(matches!(mr.store_u64(16, 1), Err(Error::Bounds { .. })));
    assert!(matches!(mr.to_vec(4..100), Err(Error::Bounds { .. })));
    assert!(a.pd.alloc_mr(usize::MAX, uroce::Access::empty()).is_err());
    assert!(a.pd.alloc_mr(8, uroce::Access::REMOTE_WRITE).is_err(), "without LOCAL_WRITE");
}
