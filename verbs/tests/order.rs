//! A completion is visible only after the acknowledgement of its message has left, whatever the interface
//! does.

mod common;

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, OnceLock};

use common::{PATIENCE, next};
use uroce::testing::{Connected, connect};
use uroce::{
    Completion, CompletionQueue, Context, DeviceConfig, Drive, Link, MacAddr, Mode, Nic, NicStats, RecvWr,
    RxFrame, SendWr,
};
use uroce_nic::{Cable, cable};

/// What an application would see at each step of the loop.
#[derive(Default)]
struct Seen {
    /// Completions that were visible while the loop was at work.
    completions: Mutex<Vec<Completion>>,
    queue: OnceLock<CompletionQueue>,
}

/// A cable that looks at the completion queue of its device whenever it is called, and takes frames only now
/// and then.
struct Witness {
    nic: Cable,
    seen: Arc<Seen>,
    /// Of each `lend` calls of `tx`, all but one lend nothing.
    lend: usize,
    calls: usize,
    filled: usize,
    left: usize,
}

impl Witness {
    fn look(&self) {
        let Some(queue) = self.seen.queue.get() else { return };
        let mut out = [Completion::default(); 8];
        // The loop is at work, so this only looks at the queue.
        let found = queue.poll(&mut out);
        let mut completions = self.seen.completions.lock().expect("nobody panicked");
        completions.extend(&out[..found]);
        assert!(
            completions.len() <= self.left,
            "{} completions after {} frames",
            completions.len(),
            self.left
        );
    }
}

impl Nic for Witness {
    fn rx(&mut self, budget: usize, deliver: &mut dyn FnMut(RxFrame<'_>)) -> io::Result<usize> {
        self.look();
        // One at a time, so that each is acknowledged by itself.
        self.nic.rx(budget.min(1), deliver)
    }

    fn tx(&mut self, budget: usize, fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>) -> io::Result<usize> {
        self.look();
        self.calls += 1;
        let budget = if self.calls.is_multiple_of(self.lend) { budget } else { 0 };
        let sent = self.nic.tx(budget, fill)?;
        self.filled += sent;
        Ok(sent)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.look();
        self.left = self.filled;
        self.nic.flush()
    }

    fn max_frame(&self) -> usize {
        self.nic.max_frame()
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn stats(&self) -> NicStats {
        self.nic.stats()
    }

    fn mode(&self) -> Mode {
        self.nic.mode()
    }
}

fn open(nic: impl Nic + 'static, number: u8, drive: Drive) -> Context {
    let address = |number| std::net::IpAddr::from([192, 0, 2, number]);
    let mac = |number| MacAddr([2, 0, 0, 0, 0, number]);
    let other = 3 - number;
    let link = Link {
        mac: mac(number),
        addresses: vec![address(number)],
        mtu: 1500,
        neighbours: vec![(address(other), mac(other))],
    };
    Context::open(DeviceConfig::with_nic(Box::new(nic), link).drive(drive)).expect("open")
}

/// A sender with a thread, and a receiver driven by the test whose interface is a witness.
fn observed(lend: usize) -> ((Connected, Connected), Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let (left, right) = cable::pair(32, 1800);
    let witness = Witness { nic: right, seen: Arc::clone(&seen), lend, calls: 0, filled: 0, left: 0 };
    let (a, b) = (open(left, 1, Drive::default()), open(witness, 2, Drive::Inline));
    let pair = connect(&a, &b).expect("connected");
    assert!(seen.queue.set(pair.1.cq.clone()).is_ok());
    (pair, seen)
}

#[test]
fn no_completion_precedes_its_acknowledgement() {
    for lend in [1, 2, 20] {
        let (pair, seen) = observed(lend);
        let (a, b) = &pair;
        let mut found = 0;
        for id in 0..50 {
            b.qp.post_recv(&[RecvWr::new(id, [])]).expect("a receive");
            a.qp.post_send(&[SendWr::send(id, []).signaled()]).expect("a send");
            while found + seen.completions.lock().expect("nobody panicked").len() <= id as usize {
                found += b.cq.poll(&mut [Completion::default()]);
            }
            // The acknowledgement has left, so nothing more has to run here for the peer to get it.
            let sent = a.cq.wait_one_for(PATIENCE).expect("a completion");
            assert_eq!((sent.wr_id, sent.status), (id, uroce::WcStatus::Success));
        }
    }
}

#[test]
fn an_application_may_go_on_its_last_completion() {
    for _ in 0..50 {
        let (pair, _) = observed(1);
        pair.1.qp.post_recv(&[RecvWr::new(1, [])]).expect("a receive");
        pair.0.qp.post_send(&[SendWr::send(2, []).signaled()]).expect("a send");
        next(&pair, &pair.1.cq);
        // It exits at once, without closing anything.
        std::mem::forget(pair.1);
        let sent = pair.0.cq.wait_one_for(PATIENCE).expect("a completion");
        assert_eq!(sent.status, uroce::WcStatus::Success);
    }
}

#[test]
fn closing_sends_what_is_owed() {
    for _ in 0..50 {
        let (pair, _) = observed(1);
        let (a, b) = pair;
        let target = common::region(&b, &[0; 8]);
        a.qp.post_send(&[SendWr::rdma_write_inline(1, b"12345678", target.remote()).signaled()])
            .expect("a write");
        // The memory is looked at, not the completions; the acknowledgement may still be here then.
        while target.load_u64(0).expect("a word") == 0 {
            b.cq.poll(&mut [Completion::default()]);
        }
        drop((b, target));
        let sent = a.cq.wait_one_for(PATIENCE).expect("a completion");
        assert_eq!(sent.status, uroce::WcStatus::Success);
    }
}
