//! As many messages at once as the queue takes.

use std::sync::Arc;

use uroce::{Completion, QueuePair, SendWr};

use super::args::BwOp;
use super::other::Other;
use super::plan::{Amount, Plan};
use super::report::Measured;
use super::side::{Card, Side};
use crate::clock::Stopwatch;
use crate::device::checked;
use crate::error::{Failure, Result};
use crate::progress::Progress;

/// Completions taken at once.
const BATCH: usize = 64;

/// Measures messages of one size.
pub(crate) fn measure(
    plan: &Plan,
    op: BwOp,
    size: u32,
    near: &Side,
    theirs: &Card,
    other: &mut dyn Other,
    bar: bool,
) -> Result<Measured> {
    let mut load = Load::new(plan, op, size, near, theirs);
    let warm_up = load.run(Amount::Messages(plan.warm_up(size)), other, &mut Progress::none())?;
    let mut progress = Progress::new(format!("{} {size}", plan.test.command()), bar);
    let stopwatch = Stopwatch::start();
    let messages = load.run(plan.amount_of(size), other, &mut progress)?;
    let seconds = stopwatch.seconds();
    let lost = if plan.counts_losses() {
        Some((warm_up + messages).saturating_sub(other.received()?))
    } else {
        None
    };
    Ok(Measured::Bandwidth { messages, seconds, lost })
}

/// Keeps every queue pair full.
struct Load<'a> {
    near: &'a Side,
    flows: Vec<Flow<'a>>,
    completions: [Completion; BATCH],
}

impl<'a> Load<'a> {
    fn new(plan: &Plan, op: BwOp, size: u32, near: &'a Side, theirs: &Card) -> Self {
        let flow = |(index, qp): (usize, &'a Arc<QueuePair>)| {
            let request = request(op, near, theirs, index, size);
            Flow::new(qp, request, plan)
        };
        Self {
            near,
            flows: near.qps.iter().enumerate().map(flow).collect(),
            completions: [Completion::default(); BATCH],
        }
    }

    /// Sends so much on every queue pair and waits until all of it has completed; returns the messages sent.
    fn run(&mut self, amount: Amount, other: &mut dyn Other, progress: &mut Progress) -> Result<u64> {
        self.flows.iter_mut().for_each(|flow| flow.start(amount));
        let stopwatch = Stopwatch::start();
        while !self.flows.iter().all(Flow::is_done) {
            self.flows.iter_mut().try_for_each(Flow::post)?;
            let idle = !self.complete()?;
            if !idle {
                self.advance(amount, stopwatch, progress);
            }
            other.turn(idle)?;
        }
        Ok(self.flows.iter().map(|flow| flow.posted).sum())
    }

    /// Takes completions; whether there were any.
    fn complete(&mut self) -> Result<bool> {
        let found = self.near.cq.poll(&mut self.completions);
        for completion in &self.completions[..found] {
            let completion = checked(&self.near.ctx, completion)?;
            let index = self.near.index_of(completion.qp_num);
            let index =
                index.ok_or_else(|| Failure::new("a completion names a queue pair that is not ours"))?;
            self.flows[index].complete();
        }
        Ok(found > 0)
    }

    fn advance(&mut self, amount: Amount, stopwatch: Stopwatch, progress: &mut Progress) {
        match amount {
            Amount::Messages(messages) => {
                let done = self.flows.iter().map(|flow| flow.completed).sum();
                progress.set(done, messages * self.flows.len() as u64);
            }
            Amount::Time(time) => {
                let elapsed = stopwatch.elapsed();
                progress.set(elapsed.min(time).as_millis() as u64, time.as_millis() as u64);
                if elapsed >= time {
                    self.flows.iter_mut().for_each(Flow::stop);
                }
            }
        }
    }
}

/// The messages of one queue pair.
struct Flow<'a> {
    qp: &'a QueuePair,
    plain: SendWr,
    signaled: SendWr,
    depth: u64,
    cq_mod: u64,
    goal: u64,
    posted: u64,
    completed: u64,
}

impl<'a> Flow<'a> {
    fn new(qp: &'a QueuePair, request: SendWr, plan: &Plan) -> Self {
        let (depth, cq_mod) = (plan.tx_depth.into(), plan.cq_mod.into());
        let (plain, signaled) = (request.clone(), request.signaled());
        Self { qp, plain, signaled, depth, cq_mod, goal: 0, posted: 0, completed: 0 }
    }

    fn start(&mut self, amount: Amount) {
        (self.posted, self.completed) = (0, 0);
        self.goal = match amount {
            Amount::Messages(messages) => messages,
            Amount::Time(_) => u64::MAX,
        };
    }

    /// Lets the message with the next completion be the last one.
    fn stop(&mut self) {
        self.goal = self.goal.min(self.posted.next_multiple_of(self.cq_mod));
    }

    const fn is_done(&self) -> bool {
        self.completed == self.goal
    }

    /// Fills the queue.
    fn post(&mut self) -> Result<()> {
        let end = self.goal.min(self.completed + self.depth);
        if self.posted >= end {
            return Ok(());
        }
        let mut batch = self.qp.start_send();
        while self.posted < end {
            let next = self.posted + 1;
            let signaled = next == self.goal || next.is_multiple_of(self.cq_mod);
            batch.push(if signaled { &self.signaled } else { &self.plain })?;
            self.posted = next;
        }
        batch.submit();
        Ok(())
    }

    /// A completion stands for all messages up to the next that asks for one.
    fn complete(&mut self) {
        let next = (self.completed / self.cq_mod + 1) * self.cq_mod;
        self.completed = next.min(self.goal);
    }
}

fn request(op: BwOp, near: &Side, theirs: &Card, index: usize, size: u32) -> SendWr {
    let (local, remote) = (near.outgoing(index, size), theirs.incoming(index));
    match op {
        BwOp::Write => SendWr::rdma_write(0, local, remote),
        BwOp::Read => SendWr::rdma_read(0, local, remote),
        BwOp::Send => near.send(index, size),
        BwOp::Atomic => SendWr::fetch_and_add(0, local, remote, 1),
    }
}

#[cfg(test)]
mod tests {
    /// The arithmetic of [`super::Flow::complete`], without a queue pair.
    fn completed_after(completions: u64, cq_mod: u64, goal: u64) -> u64 {
        (0..completions).fold(0, |completed: u64, _| ((completed / cq_mod + 1) * cq_mod).min(goal))
    }

    #[test]
    fn completions_stand_for_those_before_them() {
        assert_eq!(completed_after(2, 64, 1000), 128);
        assert_eq!(completed_after(16, 64, 1000), 1000);
        assert_eq!(completed_after(1, 64, 10), 10);
    }
}
