//! Ends of queue pairs in the middle of their traffic.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};

use common::{ALL, both_kinds, connected, next, region, threaded};
use uroce::testing::Connected;
use uroce::{Completion, QpAttr, QpState, QpType, QueuePair, RecvWr, SendWr, WcStatus};

const RC: (QpType, QpType) = (QpType::Rc, QpType::Rc);

/// Posts until told to stop, whatever becomes of the queue pair.
fn post(qp: &QueuePair, requests: &[SendWr], receive: &RecvWr, stop: &AtomicBool) {
    while !stop.load(Ordering::SeqCst) {
        // A queue that is full, in RESET or failed refuses: the next attempt may find another state.
        let _ = qp.post_send(requests);
        let _ = qp.post_recv(std::slice::from_ref(receive));
        let mut out = [Completion::default(); 64];
        while qp.send_cq().poll(&mut out) == out.len() {}
        std::thread::yield_now();
    }
}

fn requests(near: &Connected, far: &Connected) -> (Vec<SendWr>, RecvWr, Vec<uroce::MemoryRegion>) {
    let (local, remote) = (region(near, &[0; 8192]), region(far, &[0; 8192]));
    let requests = vec![
        SendWr::rdma_write(1, local.sge(..), remote.remote()).signaled(),
        SendWr::rdma_read(2, local.sge(..), remote.remote()).signaled(),
        SendWr::send(3, local.sge(..100)).signaled(),
        SendWr::fetch_and_add(4, local.sge(..8), remote.remote(), 1).signaled(),
    ];
    let receive = RecvWr::new(5, local.sge(4096..));
    (requests, receive, vec![local, remote])
}

/// Two ends whose completion queues hold whatever a second queue pair may complete between two looks at them.
fn roomy() -> (Connected, Connected) {
    let pair = threaded();
    [&pair.0, &pair.1].into_iter().for_each(|end| end.cq.resize(4096).expect("room"));
    pair
}

#[test]
fn a_queue_pair_is_reset_and_failed_under_traffic_from_other_threads() {
    let pair = roomy();
    let (a, b) = &pair;
    for target in [QpState::Reset, QpState::Err] {
        for _ in 0..10 {
            let (left, right) = connected(&pair, RC, |qp| qp);
            let (ours, theirs) = (requests(a, b), requests(b, a));
            let stop = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| post(&left, &ours.0, &ours.1, &stop));
                scope.spawn(|| post(&right, &theirs.0, &theirs.1, &stop));
                (0..20).for_each(|_| std::thread::yield_now());
                left.modify(&QpAttr::to(target)).expect("from any state");
                assert_eq!(left.state(), target);
                stop.store(true, Ordering::SeqCst);
            });
        }
    }
    let mut out = [Completion::default(); 64];
    while a.cq.poll(&mut out) + b.cq.poll(&mut out) > 0 {}
    works(&pair);
}

#[test]
fn queue_pairs_are_destroyed_under_traffic_of_their_peers() {
    let pair = roomy();
    let (a, b) = &pair;
    for _ in 0..20 {
        let (left, right) = connected(&pair, RC, |qp| qp);
        let theirs = requests(b, a);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| post(&right, &theirs.0, &theirs.1, &stop));
            left.post_recv(&[RecvWr::new(1, [])]).expect("a receive");
            (0..20).for_each(|_| std::thread::yield_now());
            drop(left);
            stop.store(true, Ordering::SeqCst);
        });
        drop(right);
    }
    let mut out = [Completion::default(); 64];
    while a.cq.poll(&mut out) + b.cq.poll(&mut out) > 0 {}
    works(&pair);
}

/// The connection that was there all the time still carries bytes.
fn works(pair: &(Connected, Connected)) {
    let (a, b) = pair;
    let target = region(b, &[0; 5]);
    a.qp.post_send(&[SendWr::rdma_write_inline(99, b"alive", target.remote()).signaled()]).expect("room");
    while next(pair, &a.cq).wr_id != 99 {}
    assert_eq!(target.to_vec(..).expect("written"), b"alive");
}

/// Into error, then a last request to each queue: when those have completed, everything has.
#[test]
fn a_beacon_is_the_last_completion_of_a_queue_pair_that_is_drained() {
    const BEACON: u64 = u64::MAX;
    for pair in both_kinds() {
        let (a, b) = &pair;
        let (left, _right) = connected(&pair, RC, |qp| qp);
        let target = b.pd.alloc_mr(1 << 16, ALL).expect("a region");
        let source = region(a, &vec![0; 1 << 16]);
        left.post_recv(&vec![RecvWr::new(1, []); 40]).expect("room");
        left.post_send(&vec![SendWr::rdma_write(2, source.sge(..), target.remote()).signaled(); 60])
            .expect("room");
        left.modify(&QpAttr::to(QpState::Err)).expect("from any state");
        left.post_send(&[SendWr::send(BEACON, []).signaled()]).expect("accepted in ERR");
        left.post_recv(&[RecvWr::new(BEACON, [])]).expect("accepted in ERR");
        let (mut seen, mut beacons) = ([0, 0], 0);
        while beacons < 2 {
            let completion = next(&pair, &a.cq);
            match completion.wr_id {
                BEACON => {
                    assert_eq!(completion.status, WcStatus::WrFlushErr);
                    beacons += 1;
                }
                id => seen[id as usize - 1] += 1,
            }
        }
        assert_eq!(seen, [40, 60], "nothing is missing");
        drop(left);
        assert_eq!(
            a.cq.wait(&mut [Completion::default()], Some(std::time::Duration::from_millis(2)))
                .expect("no error"),
            0
        );
    }
}

#[test]
fn datagram_and_shared_queues_are_destroyed_under_traffic() {
    let pair = roomy();
    let (a, b) = &pair;
    let way = a.pd.create_ah(&uroce::AddressVector::new(b.ctx.gid())).expect("a way");
    for _ in 0..20 {
        let srq = b.pd.create_srq(uroce::SrqAttr::default()).expect("a shared receive queue");
        let inbox = region(b, &[0; 64]);
        let qp = b.pd.create_qp(QpType::Ud, &b.cq, &b.cq).srq(&srq).build().expect("a queue pair");
        let qp = qp.activate(1).expect("ready");
        let sender =
            a.pd.create_qp(QpType::Ud, &a.cq, &a.cq)
                .build()
                .expect("a queue pair")
                .activate(1)
                .expect("ready");
        let (stop, number) = (AtomicBool::new(false), qp.qpn());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::SeqCst) {
                    let _ = sender.post_send(&[SendWr::send_inline(1, b"text").to(&way, number, 1)]);
                    let _ = srq.post_recv(&[RecvWr::new(2, inbox.sge(..))]);
                    b.cq.poll(&mut [Completion::default(); 64]);
                }
            });
            (0..50).for_each(|_| std::thread::yield_now());
            drop(qp);
            stop.store(true, Ordering::SeqCst);
        });
    }
    works(&pair);
}
