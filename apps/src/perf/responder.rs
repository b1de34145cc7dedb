//! The end that is measured against.

use std::time::Duration;

use uroce::{Completion, RecvWr, SendWr, WcOpcode};

use super::args::{BwOp, LatOp};
use super::marker::Marker;
use super::plan::{Plan, Test};
use super::side::{Card, Side};
use crate::clock::Stopwatch;
use crate::device::{check, checked};
use crate::error::{Failure, Result};
use crate::interrupt;

/// Completions taken at once.
const BATCH: usize = 64;
/// After so long without a message no more are under way.
const SETTLED: Duration = Duration::from_millis(20);

/// Serves one initiator.
#[derive(Debug)]
pub(crate) struct Responder {
    side: Side,
    part: Part,
    /// Receives to post again, for each queue pair.
    receives: Vec<Vec<RecvWr>>,
    completions: [Completion; BATCH],
    /// Messages since the round began.
    received: u64,
}

/// What it has to do by itself.
#[derive(Debug)]
enum Part {
    /// Nothing: the engine answers.
    Passive,
    /// Post receives again.
    Receive,
    /// Write back what was written.
    Mirror(Marker),
    /// Send back what was received.
    Echo { answer: [SendWr; 2], sent: u32 },
}

impl Responder {
    pub(crate) fn new(plan: &Plan, side: Side, peer: &Card) -> Result<Self> {
        let part = match plan.test {
            Test::Bw(BwOp::Send) => Part::Receive,
            Test::Lat(LatOp::Write) => Part::Mirror(Marker::new(&side, peer, 1)?),
            Test::Lat(LatOp::Send) => echo(&side, plan.size),
            _ => Part::Passive,
        };
        let receives = (0..side.qps.len()).map(|index| vec![side.receive(index); BATCH]).collect();
        Ok(Self { side, part, receives, completions: [Completion::default(); BATCH], received: 0 })
    }

    /// Prepares for messages of `size` bytes.
    pub(crate) fn begin(&mut self, size: u32) -> Result<()> {
        self.received = 0;
        match &mut self.part {
            Part::Mirror(marker) => marker.begin(&self.side, size),
            part @ Part::Echo { .. } => {
                *part = echo(&self.side, size);
                Ok(())
            }
            Part::Passive | Part::Receive => Ok(()),
        }
    }

    /// Fails once the device has failed, which nothing else tells a responder that only serves.
    pub(crate) fn check(&self) -> Result<()> {
        check(&self.side.ctx)
    }

    /// One turn: runs the engine if nobody else does, and does its part. Whether there was anything to do.
    pub(crate) fn step(&mut self) -> Result<bool> {
        match self.part {
            // Nothing completes here; the next turn comes at once, whenever it is due.
            Part::Passive => Ok(self.side.ctx.progress().frames > 0),
            Part::Receive | Part::Echo { .. } => self.take_messages(),
            Part::Mirror(_) => self.mirror(),
        }
    }

    /// Waits until no more messages come; returns how many have since the round began.
    pub(crate) fn settle(&mut self) -> Result<u64> {
        let mut last = Stopwatch::start();
        while last.elapsed() < SETTLED {
            interrupt::check()?;
            if self.step()? {
                last = Stopwatch::start();
            }
        }
        Ok(self.received)
    }

    fn take_messages(&mut self) -> Result<bool> {
        let found = self.side.cq.poll(&mut self.completions);
        let mut rest = &self.completions[..found];
        while let Some(first) = rest.first() {
            let same = rest.iter().take_while(|one| one.qp_num == first.qp_num).count();
            let (run, after) = rest.split_at(same);
            self.received += answer(&self.side, &mut self.part, &self.receives, run)?;
            rest = after;
        }
        Ok(found > 0)
    }

    fn mirror(&mut self) -> Result<bool> {
        let found = self.side.cq.poll(&mut self.completions);
        self.completions[..found].iter().try_for_each(|one| checked(&self.side.ctx, one).map(drop))?;
        let Part::Mirror(marker) = &mut self.part else { return Ok(false) };
        match marker.arrived(&self.side)? {
            Some(value) => marker.write(&self.side, value).map(|()| true),
            None => Ok(false),
        }
    }
}

/// Handles completions of one queue pair: posts as many receives again, and sends as many answers as the part wants.
/// Returns the messages among them.
fn answer(side: &Side, part: &mut Part, receives: &[Vec<RecvWr>], run: &[Completion]) -> Result<u64> {
    let mut received = 0;
    for completion in run {
        let completion = checked(&side.ctx, completion)?;
        received += usize::from(completion.opcode == WcOpcode::Recv);
    }
    let index = run.first().and_then(|one| side.index_of(one.qp_num));
    let index = index.ok_or_else(|| Failure::new("a completion names a queue pair that is not ours"))?;
    side.post_recv(index, &receives[index][..received])?;
    if let Part::Echo { answer, sent } = part {
        for _ in 0..received {
            *sent += 1;
            side.qps[index].post_send(std::slice::from_ref(&answer[usize::from(*sent % 32 == 0)]))?;
        }
    }
    Ok(received as u64)
}

/// The answer, without and with a completion.
fn echo(side: &Side, size: u32) -> Part {
    let send = side.send(0, size);
    Part::Echo { answer: [send.clone(), send.signaled()], sent: 0 }
}
