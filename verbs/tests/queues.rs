//! Completion queues that change size and are moderated, and events that no completion tells.

mod common;

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use common::{
    PATIENCE, await_event, both_kinds, connected, drive, eventually, inline, next, region, succeed, threaded,
};
use uroce::testing::Connected;
use uroce::{
    AsyncEvent, Completion, CompletionChannel, CompletionQueue, QpAttr, QpState, QpType, RecvWr, SendWr,
    WcStatus,
};

const RC: (QpType, QpType) = (QpType::Rc, QpType::Rc);

#[test]
fn a_queue_changes_size_while_completions_come_and_another_thread_polls() {
    for pair in [threaded(), inline()] {
        let (a, b) = pair;
        let target = region(&b, &[0; 8]).remote();
        let (total, outstanding) = (20_000, 48);
        let (polled, done) = (AtomicUsize::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    let _ = b.ctx.progress();
                    std::thread::yield_now();
                }
            });
            scope.spawn(|| take_in_order(&a.cq, total, &polled));
            scope.spawn(|| {
                for size in (64..1024).cycle().step_by(37) {
                    if polled.load(Ordering::SeqCst) == total {
                        break;
                    }
                    a.cq.resize(size).expect("what waits fits");
                    assert!(a.cq.capacity() >= size);
                    std::thread::yield_now();
                }
            });
            for number in 0..total {
                while number - polled.load(Ordering::SeqCst) >= outstanding {
                    std::thread::yield_now();
                }
                a.qp.post_send(&[SendWr::rdma_write(number as u64, [], target).signaled()]).expect("room");
            }
            while polled.load(Ordering::SeqCst) < total {
                std::thread::yield_now();
            }
            done.store(true, Ordering::SeqCst);
        });
    }
}

fn take_in_order(cq: &CompletionQueue, total: usize, polled: &AtomicUsize) {
    let mut out = [Completion::default(); 8];
    while polled.load(Ordering::SeqCst) < total {
        let found = cq.wait(&mut out, Some(PATIENCE)).expect("completions");
        for completion in &out[..found] {
            let expected = polled.fetch_add(1, Ordering::SeqCst);
            assert_eq!((completion.wr_id, completion.status), (expected as u64, WcStatus::Success));
        }
    }
}

#[test]
fn a_size_that_does_not_fit_is_refused() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let target = region(b, &[0; 8]).remote();
        a.qp.post_send(&vec![SendWr::rdma_write(1, [], target).signaled(); 8]).expect("room");
        // As long as that fits, the queue has 8 places, so nothing is lost.
        eventually(&pair, || a.cq.resize(7).is_err());
        for size in [0, u32::MAX] {
            assert_eq!(a.cq.resize(size).expect_err("out of range").errno(), libc::EINVAL);
        }
        assert!((0..8).all(|_| succeed(&pair, &a.cq).wr_id == 1));
        a.cq.resize(4).expect("it is empty");
        assert_eq!(a.cq.capacity(), 4);
    }
}

fn is_readable(fd: BorrowedFd<'_>) -> bool {
    let mut polled = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one pollfd that lives across the call, with a descriptor that is borrowed and so open.
    let ready = unsafe { libc::poll(&raw mut polled, 1, 0) };
    ready == 1
}

/// A queue with a channel at the right end, and a connection that receives there.
fn moderated(
    pair: &(Connected, Connected),
    count: u16,
    period: Duration,
) -> (CompletionChannel, CompletionQueue, uroce::QueuePair, uroce::QueuePair) {
    let (a, b) = pair;
    let channel = b.ctx.create_comp_channel().expect("a channel");
    let cq = b.ctx.create_cq(64).channel(&channel).build().expect("a queue");
    cq.modify(count, period).expect("moderated");
    let left = a.pd.create_qp(QpType::Rc, &a.cq, &a.cq).build().expect("a queue pair");
    let right = b.pd.create_qp(QpType::Rc, &b.cq, &cq).build().expect("a queue pair");
    right.post_recv(&(0..32).map(|id| RecvWr::new(id, [])).collect::<Vec<_>>()).expect("receives");
    let (ours, theirs) = (left.endpoint(), right.endpoint());
    let right = right.connect(ours).expect("connected");
    (channel, cq, left.connect(theirs).expect("connected"), right)
}

#[test]
fn an_event_comes_for_several_completions_at_once() {
    for pair in both_kinds() {
        let (channel, cq, left, _right) = moderated(&pair, 4, Duration::from_secs(3600));
        cq.req_notify(false).expect("armed");
        let send = || {
            left.post_send(&[SendWr::send(1, []).signaled()]).expect("room");
            succeed(&pair, &pair.0.cq);
            // Polling is not moderated.
            assert_eq!(succeed(&pair, &cq).opcode, uroce::WcOpcode::Recv);
        };
        (0..3).for_each(|_| send());
        assert!(!is_readable(channel.as_fd()), "three are too few");
        send();
        eventually(&pair, || is_readable(channel.as_fd()));
        assert_eq!(channel.get_event().expect("an event").cq, cq.id());
        cq.modify(0, Duration::ZERO).expect("not moderated any more");
        cq.req_notify(false).expect("armed");
        send();
        eventually(&pair, || is_readable(channel.as_fd()));
    }
}

#[test]
fn an_event_does_not_wait_longer_than_the_period() {
    for pair in both_kinds() {
        let (channel, cq, left, _right) = moderated(&pair, u16::MAX, Duration::from_millis(5));
        cq.req_notify(false).expect("armed");
        left.post_send(&[SendWr::send(1, [])]).expect("room");
        eventually(&pair, || is_readable(channel.as_fd()));
        assert_eq!(next(&pair, &cq).status, WcStatus::Success);
    }
    // Nor does a thread that sleeps.
    let pair = threaded();
    let (_channel, cq, left, _right) = moderated(&pair, u16::MAX, Duration::from_millis(5));
    left.post_send(&[SendWr::send(1, [])]).expect("room");
    cq.wait_one_for(PATIENCE).expect("a completion");
}

#[test]
fn a_message_before_rts_is_told() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let make =
            |end: &Connected| end.pd.create_qp(QpType::Rc, &end.cq, &end.cq).build().expect("a queue pair");
        let (left, right) = (make(a), make(b));
        let (ours, theirs) = (left.endpoint(), right.endpoint());
        right.post_recv(&[RecvWr::new(1, [])]).expect("a receive");
        let right = right.into_queue_pair();
        let rtr = QpAttr {
            av: Some(uroce::AddressVector::new(ours.gid)),
            path_mtu: Some(b.ctx.active_mtu()),
            dest_qpn: Some(ours.qpn),
            rq_psn: Some(ours.psn),
            max_dest_rd_atomic: Some(1),
            min_rnr_timer: Some(12),
            ..QpAttr::to(QpState::Rtr)
        };
        right.modify(&rtr).expect("ready to receive");
        let left = left.connect(theirs).expect("connected");
        left.post_send(&[SendWr::send(2, [])]).expect("room");
        await_event(&pair, b, AsyncEvent::CommEst(right.qpn()));
        assert_eq!(succeed(&pair, &b.cq).wr_id, 1);
    }
}

#[test]
fn an_invalid_request_is_told_to_who_got_it() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let (left, right) = connected(&pair, RC, |qp| qp);
        let target = region(b, &[0; 16]);
        let local = region(a, &[0; 8]);
        left.post_send(&[SendWr::fetch_and_add(1, local.sge(..), target.remote().at(4), 1)]).expect("room");
        assert_eq!(next(&pair, &a.cq).status, WcStatus::RemInvReqErr, "not aligned");
        await_event(&pair, b, AsyncEvent::QpReqErr(right.qpn()));
    }
}

#[test]
fn a_queue_that_overflows_takes_its_queue_pairs_down() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let small = a.ctx.create_cq(2).build().expect("a queue");
        let left = a.pd.create_qp(QpType::Rc, &small, &a.cq).build().expect("a queue pair");
        let right =
            b.pd.create_qp(QpType::Rc, &b.cq, &b.cq).access(common::ALL).build().expect("a queue pair");
        let (ours, theirs) = (left.endpoint(), right.endpoint());
        let _right = right.connect(ours).expect("connected");
        let left = left.connect(theirs).expect("connected");
        let target = region(b, &[0; 8]).remote();
        left.post_send(&vec![SendWr::rdma_write(1, [], target).signaled(); 8]).expect("room");
        await_event(&pair, a, AsyncEvent::CqErr(small.id()));
        await_event(&pair, a, AsyncEvent::QpFatal(left.qpn()));
        assert_eq!(left.state(), QpState::Err);
        while a.ctx.async_event().is_some() {
            drive(&pair);
        }
    }
}
