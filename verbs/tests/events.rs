//! Notifications: channels, descriptors, wakers, waiting threads. None is lost.

mod common;

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::time::Duration;

use common::{both_kinds, drive, inline, next, region, succeed, threaded};
use uroce::testing::Connected;
use uroce::{AsyncEvent, Completion, CompletionChannel, CqEvent, QpAttr, QpState, QpType, RecvWr, SendWr};

fn is_readable(fd: BorrowedFd<'_>) -> bool {
    let mut polled = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one pollfd that lives across the call, with a descriptor that is borrowed and so open.
    let ready = unsafe { libc::poll(&raw mut polled, 1, 0) };
    ready == 1
}

/// A pair whose right end receives into a queue of its own that has a channel.
fn with_channel(
    pair: &(Connected, Connected),
) -> (CompletionChannel, uroce::CompletionQueue, uroce::QueuePair, uroce::QueuePair) {
    let (a, b) = pair;
    let channel = b.ctx.create_comp_channel().expect("a channel");
    let cq = b.ctx.create_cq(64).channel(&channel).token(77).build().expect("a queue");
    let left = a.pd.create_qp(QpType::Rc, &a.cq, &a.cq).build().expect("a queue pair");
    let right = b.pd.create_qp(QpType::Rc, &b.cq, &cq).build().expect("a queue pair");
    right.post_recv(&(0..16).map(|id| RecvWr::new(id, [])).collect::<Vec<_>>()).expect("receives");
    let (ours, theirs) = (left.endpoint(), right.endpoint());
    let right = right.connect(ours).expect("connected");
    (channel, cq, left.connect(theirs).expect("connected"), right)
}

fn eventually(pair: &(Connected, Connected), mut condition: impl FnMut() -> bool) {
    for _ in 0..1 << 24 {
        if condition() {
            return;
        }
        drive(pair);
    }
    panic!("it never came about");
}

#[test]
fn an_armed_queue_raises_one_event_and_an_unarmed_one_none() {
    for pair in both_kinds() {
        let (channel, cq, left, _right) = with_channel(&pair);
        left.post_send(&[SendWr::send(1, [])]).expect("a send");
        next(&pair, &cq);
        assert_eq!(channel.try_get_event().expect("no error"), None, "it was not armed");
        cq.req_notify(false).expect("armed");
        left.post_send(&[SendWr::send(2, []), SendWr::send(3, [])]).expect("two sends");
        eventually(&pair, || is_readable(channel.as_fd()));
        let event = channel.get_event().expect("an event");
        assert_eq!(event, CqEvent { cq: cq.id(), token: 77 });
        let taken = [next(&pair, &cq), next(&pair, &cq)];
        assert_eq!(taken.map(|wc| wc.status), [uroce::WcStatus::Success; 2]);
        assert!(!is_readable(channel.as_fd()), "one event for both");
    }
}

#[test]
fn a_queue_armed_for_solicited_completions_ignores_others() {
    for pair in both_kinds() {
        let (channel, cq, left, _right) = with_channel(&pair);
        cq.req_notify(true).expect("armed");
        left.post_send(&[SendWr::send(1, []).signaled()]).expect("a send");
        succeed(&pair, &pair.0.cq);
        next(&pair, &cq);
        assert_eq!(channel.try_get_event().expect("no error"), None);
        left.post_send(&[SendWr::send(2, []).solicited()]).expect("a send");
        eventually(&pair, || is_readable(channel.as_fd()));
        assert_eq!(channel.get_event().expect("an event").cq, cq.id());
    }
}

#[test]
fn events_of_a_queue_that_is_gone_are_taken_back() {
    for pair in both_kinds() {
        let (channel, cq, left, right) = with_channel(&pair);
        cq.req_notify(false).expect("armed");
        left.post_send(&[SendWr::send(1, [])]).expect("a send");
        eventually(&pair, || is_readable(channel.as_fd()));
        drop((cq, right));
        assert!(!is_readable(channel.as_fd()));
        assert_eq!(channel.try_get_event().expect("no error"), None);
    }
}

#[test]
fn a_channel_outlives_its_context_and_serves_many_queues() {
    let (a, b) = threaded();
    let channel = b.ctx.create_comp_channel().expect("a channel");
    let cqs: Vec<_> =
        (0..3).map(|n| b.ctx.create_cq(4).channel(&channel).token(n).build().expect("a queue")).collect();
    drop((a, b));
    assert!(cqs.iter().all(|cq| cq.req_notify(false).is_ok()));
    assert_eq!(channel.try_get_event().expect("no error"), None);
}

#[test]
fn get_event_sleeps_until_there_is_one() {
    let pair = threaded();
    let (channel, cq, left, _right) = with_channel(&pair);
    cq.req_notify(false).expect("armed");
    let waiter = std::thread::spawn(move || channel.get_event().expect("an event").token);
    eventually(&pair, || waiter.thread().id() != std::thread::current().id());
    left.post_send(&[SendWr::send(1, [])]).expect("a send");
    assert_eq!(waiter.join().expect("the waiter"), 77);
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_task_is_woken_by_the_completion_it_waits_for() {
    for pair in both_kinds() {
        let (_channel, cq, left, _right) = with_channel(&pair);
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut cx = TaskContext::from_waker(&waker);
        let mut out = [Completion::default(); 4];
        assert!(cq.poll_ready(&mut cx, &mut out).is_pending());
        left.post_send(&[SendWr::send(1, [])]).expect("a send");
        eventually(&pair, || count.0.load(Ordering::SeqCst) == 1);
        assert!(matches!(cq.poll_ready(&mut cx, &mut out), Poll::Ready(Ok(1))));
    }
}

#[test]
fn a_future_over_poll_ready_runs_on_a_bare_executor() {
    let pair = threaded();
    let (_channel, cq, left, _right) = with_channel(&pair);
    let sender = std::thread::spawn(move || {
        for id in 0..10 {
            left.post_send(&[SendWr::send(id, [])]).expect("a send");
        }
        left
    });
    let received = block_on(async {
        let (mut received, mut out) = (0, [Completion::default(); 4]);
        while received < 10 {
            received += std::future::poll_fn(|cx| cq.poll_ready(cx, &mut out)).await.expect("completions");
        }
        received
    });
    assert_eq!(received, 10);
    drop(sender.join().expect("the sender"));
}

/// Polls a future on this thread, parking between polls.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut TaskContext::from_waker(&waker)) {
            return output;
        }
        std::thread::park();
    }
}

/// The last handle of a device may go on its own thread, through a waker.
#[test]
fn a_waker_may_drop_the_last_handle_on_the_thread_that_drives() {
    struct Holds(std::sync::Mutex<Option<(Connected, uroce::QueuePair, uroce::CompletionQueue)>>, Arc<Count>);
    impl Wake for Holds {
        fn wake(self: Arc<Self>) {
            drop(self.0.lock().expect("nobody panicked").take());
            Arc::clone(&self.1).wake();
        }
    }
    let pair = threaded();
    let (channel, cq, left, right) = with_channel(&pair);
    drop(channel);
    let (a, b) = pair;
    let count = Arc::new(Count::default());
    let holder = Arc::new(Holds(std::sync::Mutex::default(), Arc::clone(&count)));
    let waker = Waker::from(Arc::clone(&holder));
    let mut out = [Completion::default()];
    assert!(cq.poll_ready(&mut TaskContext::from_waker(&waker), &mut out).is_pending());
    *holder.0.lock().expect("nobody panicked") = Some((b, right, cq));
    left.post_send(&[SendWr::send(1, [])]).expect("a send");
    while count.0.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    drop(a);
}

/// Ping-pong of two waiting threads: each lost wakeup would stop it for good.
#[test]
fn waiting_threads_lose_no_wakeup() {
    for pair in [threaded(), inline()] {
        let (a, b) = pair;
        let rounds = 3000;
        let echo = std::thread::spawn(move || {
            for _ in 0..rounds {
                b.qp.post_recv(&[RecvWr::new(1, [])]).expect("a receive");
                wait_for_receive(&b);
                b.qp.post_send(&[SendWr::send(2, [])]).expect("a send");
            }
            // On a device that is driven inline, the last message has to leave before its end does.
            b.qp.post_send(&[SendWr::rdma_read(3, [], Default::default()).signaled()]).expect("a flush");
            b.cq.wait_one_for(common::PATIENCE).expect("the end");
            b
        });
        for _ in 0..rounds {
            a.qp.post_recv(&[RecvWr::new(1, [])]).expect("a receive");
            a.qp.post_send(&[SendWr::send(2, [])]).expect("a send");
            wait_for_receive(&a);
        }
        while !echo.is_finished() {
            let _ = a.ctx.progress();
            std::thread::yield_now();
        }
        drop(echo.join().expect("the echo"));
    }
}

fn wait_for_receive(end: &Connected) {
    let completion = end.cq.wait_one_for(common::PATIENCE).expect("a completion");
    assert_eq!((completion.wr_id, completion.status), (1, uroce::WcStatus::Success));
}

#[test]
fn many_threads_share_one_queue_and_each_completion_goes_to_one() {
    for pair in [threaded(), inline()] {
        let (a, b) = pair;
        let total = 2000;
        let taken = AtomicUsize::new(0);
        let target = region(&b, &[0; 8]).remote();
        std::thread::scope(|scope| {
            let peer = scope.spawn(|| {
                while taken.load(Ordering::SeqCst) < total {
                    b_drives(&b);
                }
            });
            for _ in 0..3 {
                scope.spawn(|| {
                    while taken.load(Ordering::SeqCst) < total {
                        let mut out = [Completion::default(); 2];
                        let found =
                            a.cq.wait(&mut out, Some(Duration::from_millis(20))).expect("completions");
                        taken.fetch_add(found, Ordering::SeqCst);
                    }
                });
            }
            let mut posted = 0;
            while posted < total {
                // No more than the completion queue holds.
                if posted - taken.load(Ordering::SeqCst) < 100 {
                    let write = SendWr::rdma_write(posted as u64, [], target).signaled();
                    a.qp.post_send(&[write]).expect("room");
                    posted += 1;
                } else {
                    std::thread::yield_now();
                }
            }
            peer.join().expect("the peer");
        });
        assert_eq!(taken.load(Ordering::SeqCst), total);
        assert_eq!(a.cq.poll(&mut [Completion::default()]), 0);
    }
}

fn b_drives(b: &Connected) {
    let _ = b.ctx.progress();
    std::thread::yield_now();
}

#[test]
fn waiting_ends_when_the_time_is_over() {
    for (a, _b) in both_kinds() {
        let found =
            a.cq.wait(&mut [Completion::default()], Some(Duration::from_millis(3))).expect("no error");
        assert_eq!(found, 0);
        assert!(matches!(a.cq.wait_one_for(Duration::ZERO), Err(uroce::Error::TimedOut)));
        assert_eq!(a.ctx.wait_async_event(Some(Duration::from_millis(3))).expect("no error"), None);
    }
}

#[test]
fn a_drained_send_queue_is_an_asynchronous_event() {
    for pair in both_kinds() {
        let (a, _) = &pair;
        assert!(!is_readable(a.ctx.async_fd()));
        a.qp.modify(&QpAttr { en_sqd_async_notify: Some(true), ..QpAttr::to(QpState::Sqd) }).expect("drains");
        let event = a.ctx.wait_async_event(Some(common::PATIENCE)).expect("no error");
        assert_eq!(event, Some(AsyncEvent::SqDrained(a.qp.qpn())));
        assert!(!is_readable(a.ctx.async_fd()));
    }
}
