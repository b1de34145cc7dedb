//! Many threads at once, and objects that go while others use them.

mod common;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use common::{ALL, PATIENCE, region, threaded};
use uroce::testing::{Connected, LinkModel, connect, loopback_pair};
use uroce::{Completion, Drive, Error, QpState, QpType, RecvWr, SendWr, WcStatus};

fn is_send_and_sync<T: Send + Sync>() {}

#[test]
fn every_handle_may_be_sent_and_shared() {
    is_send_and_sync::<uroce::Context>();
    is_send_and_sync::<uroce::ProtectionDomain>();
    is_send_and_sync::<uroce::MemoryRegion>();
    is_send_and_sync::<uroce::CompletionQueue>();
    is_send_and_sync::<uroce::CompletionChannel>();
    is_send_and_sync::<uroce::QueuePair>();
    is_send_and_sync::<uroce::PreparedQueuePair>();
    is_send_and_sync::<uroce::SharedReceiveQueue>();
    is_send_and_sync::<uroce::XrcDomain>();
    is_send_and_sync::<uroce::AddressHandle>();
    is_send_and_sync::<uroce::MemoryWindow>();
    is_send_and_sync::<uroce::FastMemoryRegion>();
    is_send_and_sync::<SendWr>();
    is_send_and_sync::<Error>();
}

#[test]
fn many_threads_post_to_one_queue_pair() {
    let (a, b) = threaded();
    let (counter, results) = (region(&b, &[0; 8]), region(&a, &[0; 8]));
    let (threads, each) = (4, 500);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..each {
                    let add = SendWr::fetch_and_add(1, results.sge(..8), counter.remote(), 1).signaled();
                    a.qp.post_send(&[add]).expect("room for one of each thread");
                    drain(&a, 1);
                }
            });
        }
    });
    assert_eq!(counter.load_u64(0).expect("a word"), threads as u64 * each as u64);
}

/// Takes `count` completions off the queue, all of them successes.
fn drain(end: &Connected, count: usize) {
    let mut left = count;
    while left > 0 {
        let mut out = [Completion::default(); 8];
        let room = left.min(out.len());
        let found = end.cq.wait(&mut out[..room], Some(PATIENCE)).expect("completions");
        assert!(found > 0, "{left} completions are missing");
        assert!(out[..found].iter().all(|wc| wc.status == WcStatus::Success), "{out:?}");
        left -= found;
    }
}

#[test]
fn sends_and_receives_are_posted_at_once() {
    let pair = threaded();
    let total = 5000;
    std::thread::scope(|scope| {
        for end in [&pair.0, &pair.1] {
            scope.spawn(move || post_both(end, total, &AtomicUsize::new(0), &AtomicUsize::new(0)));
        }
    });
}

/// Sends and receives `total` messages, at most 32 of each outstanding, posted by a thread each.
fn post_both(end: &Connected, total: usize, received: &AtomicUsize, sent: &AtomicUsize) {
    let post = |done: &AtomicUsize, post: &dyn Fn() -> bool| {
        let mut posted = 0;
        while posted < total && end.qp.state() == QpState::Rts {
            let room = posted - done.load(Ordering::SeqCst) < 32;
            posted += usize::from(room && post());
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| post(received, &|| end.qp.post_recv(&[RecvWr::new(0, [])]).is_ok()));
        scope.spawn(|| post(sent, &|| end.qp.post_send(&[SendWr::send(1, []).signaled()]).is_ok()));
        for _ in 0..2 * total {
            let completion = end.cq.wait_one_for(PATIENCE).expect("a completion");
            assert_eq!(completion.status, WcStatus::Success);
            let done = if completion.wr_id == 0 { received } else { sent };
            done.fetch_add(1, Ordering::SeqCst);
        }
    });
}

/// A peer writes and reads while the memory goes away: it gets an error, the memory is not touched any more.
#[test]
fn a_region_that_is_dropped_in_use_is_revoked() {
    let (left, right) = loopback_pair(LinkModel::default()).expect("a pair");
    for round in 0..20 {
        let (a, b) = connect(&left, &right).expect("a connection");
        let source = region(&a, &vec![round; 1 << 16]);
        let target = b.pd.alloc_mr(1 << 16, ALL).expect("a region");
        let remote = target.remote();
        for id in 0..64 {
            let wr = match id % 2 {
                0 => SendWr::rdma_write(id, source.sge(..), remote),
                _ => SendWr::rdma_read(id, source.sge(..), remote),
            };
            a.qp.post_send(&[wr.signaled()]).expect("room");
        }
        drop(if round % 2 == 0 { target } else { std::mem::replace(&mut { source }, target) });
        let mut statuses = Vec::new();
        while statuses.len() < 64 {
            statuses.push(a.cq.wait_one_for(PATIENCE).expect("a completion").status);
        }
        statuses.dedup();
        let last = statuses.pop();
        assert!(matches!(last, Some(WcStatus::Success | WcStatus::WrFlushErr)), "{statuses:?} then {last:?}");
    }
}

#[test]
fn handles_may_be_dropped_in_any_order() {
    for order in 0..120 {
        for drive in [Drive::default(), Drive::Inline] {
            let (ctx, peer) = loopback_pair(LinkModel { drive, ..LinkModel::default() }).expect("a pair");
            let channel = ctx.create_comp_channel().expect("a channel");
            let pd = ctx.alloc_pd().expect("a domain");
            let cq = ctx.create_cq(8).channel(&channel).build().expect("a queue");
            let mr = pd.alloc_mr(64, ALL).expect("a region");
            let qp = pd.create_qp(QpType::Rc, &cq, &cq).build().expect("a queue pair");
            qp.post_recv(&[RecvWr::new(1, mr.sge(..))]).expect("a receive");
            let mut handles: Vec<Box<dyn std::any::Any>> =
                vec![Box::new(ctx), Box::new(pd), Box::new(cq), Box::new(mr), Box::new((qp, channel, peer))];
            let mut index = order;
            for left in (1..=handles.len()).rev() {
                drop(handles.swap_remove(index % left));
                index /= left;
            }
        }
    }
}

#[test]
fn what_is_gone_makes_room() {
    let limits = uroce::Limits { max_qp: 1, max_cq: 1, max_mr: 1, max_pd: 1, ..uroce::Limits::default() };
    let cable = uroce_nic::cable::pair(4, 4400).0;
    let address = "192.0.2.1".parse().expect("an address");
    let link =
        uroce::Link { mac: uroce::MacAddr([2; 6]), addresses: vec![address], mtu: 1500, neighbours: vec![] };
    let ctx = uroce::Context::open(uroce::DeviceConfig::with_nic(Box::new(cable), link).limits(limits))
        .expect("open");
    for _ in 0..3 {
        let (pd, cq) = (ctx.alloc_pd().expect("a domain"), ctx.create_cq(1).build().expect("a queue"));
        let _mr = pd.alloc_mr(1, ALL).expect("a region");
        let _qp = pd.create_qp(QpType::Rc, &cq, &cq).build().expect("a queue pair");
        assert_eq!(ctx.alloc_pd().map(|_| ()).expect_err("none left").errno(), libc::ENOMEM);
        assert!(ctx.create_cq(1).build().is_err());
        assert!(pd.alloc_mr(1, ALL).is_err());
        assert!(pd.create_qp(QpType::Rc, &cq, &cq).build().is_err());
    }
}

/// Control calls get their turn while the thread that drives is busy.
#[test]
fn a_busy_device_does_not_starve_control_calls() {
    let (a, b) = threaded();
    let target = region(&b, &vec![0; 1 << 16]);
    let source = region(&a, &vec![0; 1 << 16]);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut posted, mut done_so_far) = (0, 0);
            while !done.load(Ordering::SeqCst) {
                if posted - done_so_far < 100 {
                    let write = SendWr::rdma_write(1, source.sge(..), target.remote()).signaled();
                    a.qp.post_send(&[write]).expect("room");
                    posted += 1;
                }
                done_so_far += a.cq.poll(&mut [Completion::default(); 16]);
            }
            assert_eq!(a.qp.state(), QpState::Rts);
        });
        for _ in 0..2000 {
            drop(a.pd.alloc_mr(64, ALL).expect("a region"));
        }
        done.store(true, Ordering::SeqCst);
    });
}
