//! Unreliable connections: SEND and WRITE without acknowledgements.

mod common;

use common::{both_kinds, connected, eventually, next, pattern, region, succeed};
use uroce::testing::{LinkModel, connected_pair};
use uroce::{PostErrorKind, QpAttr, QpState, QpType, RecvWr, SendWr, WcOpcode, WcStatus};

const UC: (QpType, QpType) = (QpType::Uc, QpType::Uc);

#[test]
fn sends_and_writes_of_every_size_arrive() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let (left, right) = connected(&pair, UC, |qp| qp);
        for length in [0, 1, 4096, 4097, 100_000] {
            let source = region(a, &pattern(length.max(1)));
            let (target, inbox) = (region(b, &vec![0; length.max(1)]), region(b, &vec![0; length.max(1)]));
            right.post_recv(&[RecvWr::new(1, inbox.sge(..)), RecvWr::new(2, [])]).expect("receives");
            let write = SendWr::rdma_write(3, source.sge(..length), target.remote()).imm(9);
            left.post_send(&[SendWr::send(4, source.sge(..length)).signaled(), write.signaled()])
                .expect("room");
            let sent = [succeed(&pair, &a.cq), succeed(&pair, &a.cq)];
            assert_eq!(sent.map(|wc| wc.opcode), [WcOpcode::Send, WcOpcode::RdmaWrite]);
            assert_eq!(succeed(&pair, &b.cq).byte_len as usize, length);
            assert_eq!(succeed(&pair, &b.cq).immediate, Some(9));
            assert_eq!(inbox.to_vec(..length).expect("received"), pattern(length));
            assert_eq!(target.to_vec(..length).expect("written"), pattern(length));
        }
    }
}

#[test]
fn a_message_without_a_receive_is_lost_and_the_next_one_is_not() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let (left, right) = connected(&pair, UC, |qp| qp);
        left.post_send(&[SendWr::send_inline(1, b"lost").signaled()]).expect("room");
        succeed(&pair, &a.cq);
        let lost = || right.counters().iter().any(|(name, count)| name == "rx_no_receive" && count == 1);
        eventually(&pair, lost);
        assert!(b.qp.counters().iter().all(|(name, count)| name != "rx_no_receive" || count == 0));
        let inbox = region(b, &[0; 8]);
        right.post_recv(&[RecvWr::new(2, inbox.sge(..))]).expect("a receive");
        left.post_send(&[SendWr::send_inline(3, b"here")]).expect("room");
        assert_eq!(succeed(&pair, &b.cq).byte_len, 4);
        assert_eq!(inbox.to_vec(..4).expect("received"), b"here");
    }
}

#[test]
fn what_the_service_has_not_is_refused_when_posted() {
    let [pair, _] = both_kinds();
    let (left, _right) = connected(&pair, UC, |qp| qp);
    let (local, remote) = (region(&pair.0, &[0; 8]), region(&pair.1, &[0; 8]).remote());
    for wr in [
        SendWr::rdma_read(1, local.sge(..), remote),
        SendWr::fetch_and_add(1, local.sge(..), remote, 1),
        SendWr::atomic_write(1, 1, remote),
        SendWr::send_with_inv(1, [], 7),
        SendWr::send(1, []).to_srq(5),
    ] {
        let refused = left.post_send(&[wr]).expect_err("UC has no such thing");
        assert!(matches!(refused.kind, PostErrorKind::Invalid(_)), "{refused}");
    }
}

#[test]
fn a_local_error_stops_the_sending_half_alone_and_can_be_overcome() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let (left, right) = connected(&pair, UC, |qp| qp);
        let mut wrong = region(a, &[0; 8]).sge(..);
        wrong.lkey ^= 1;
        left.post_send(&[SendWr::send(1, wrong), SendWr::send(2, [])]).expect("room");
        assert_eq!(next(&pair, &a.cq).status, WcStatus::LocProtErr);
        assert_eq!(next(&pair, &a.cq).status, WcStatus::WrFlushErr);
        assert_eq!(left.state(), QpState::Sqe);
        left.post_recv(&[RecvWr::new(3, [])]).expect("a receive");
        right.post_send(&[SendWr::send(4, [])]).expect("room");
        assert_eq!(succeed(&pair, &a.cq).wr_id, 3);
        left.modify(&QpAttr::to(QpState::Rts)).expect("from SQE back to RTS");
        right.post_recv(&[RecvWr::new(5, [])]).expect("a receive");
        left.post_send(&[SendWr::send(6, [])]).expect("room");
        assert_eq!(succeed(&pair, &b.cq).wr_id, 5);
    }
}

/// Whatever arrives is whole and in order, whatever the link loses.
#[test]
fn a_bad_cable_loses_messages_and_mangles_none() {
    let pair = connected_pair(LinkModel { loss: 0.05, seed: 3, ..LinkModel::default() }).expect("a pair");
    let (a, b) = &pair;
    let (left, right) = connected(&pair, UC, |qp| qp);
    let (total, length) = (100, 10_000);
    let source = region(a, &pattern(length));
    let inboxes: Vec<_> = (0..total).map(|_| region(b, &vec![0; length])).collect();
    let receives: Vec<_> =
        inboxes.iter().zip(0..).map(|(inbox, id)| RecvWr::new(id, inbox.sge(..))).collect();
    right.post_recv(&receives).expect("room for all");
    for number in 0..total {
        left.post_send(&[SendWr::send(1, source.sge(..)).imm(number as u32).signaled()]).expect("room");
        succeed(&pair, &a.cq);
    }
    let (mut received, mut last) = (0, None);
    let mut found = [uroce::Completion::default()];
    for _ in 0..1 << 16 {
        if b.cq.poll(&mut found) == 1 {
            let wc = found[0];
            assert_eq!((wc.status, wc.byte_len as usize), (WcStatus::Success, length));
            assert!(wc.immediate > last, "in order");
            assert_eq!(inboxes[wc.wr_id as usize].to_vec(..).expect("received"), pattern(length));
            (received, last) = (received + 1, wc.immediate);
        }
        std::thread::yield_now();
    }
    assert!(received > total / 2 && received < total, "{received} of {total}");
}
