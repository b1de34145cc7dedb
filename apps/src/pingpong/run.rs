//! The messages themselves.

use std::time::Duration;

use uroce::{Completion, CompletionQueue, MemoryRegion, QueuePair, RecvWr, SendWr, WcOpcode};

use super::PingpongArgs;
use crate::clock::Stopwatch;
use crate::device::checked;
use crate::error::Result;
use crate::idle::Idle;
use crate::interrupt;
use crate::progress::Progress;
use crate::silence::Silence;

/// What `-c` looks at the start of.
const PAGE: usize = 4096;
/// Turns of a polling loop between two looks whether it has waited too long.
const TURNS: u32 = 4096;
/// How long to sleep with `-e` before looking for Ctrl-C again.
const NAP: Duration = Duration::from_millis(100);

/// What a run took.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) seconds: f64,
}

/// A run under way.
pub(super) struct Run<'a> {
    args: &'a PingpongArgs,
    qp: &'a QueuePair,
    cq: &'a CompletionQueue,
    memory: &'a MemoryRegion,
    request: SendWr,
    sent: u64,
    received: u64,
    /// Receives that are posted.
    posted: u32,
    /// Whether the last message has not completed, and whether an answer to it has not come.
    sending: bool,
    waiting: bool,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        args: &'a PingpongArgs,
        qp: &'a QueuePair,
        cq: &'a CompletionQueue,
        memory: &'a MemoryRegion,
    ) -> Self {
        let request = SendWr::send(0, memory.sge(..)).signaled();
        let posted = args.rx_depth;
        Self { args, qp, cq, memory, request, sent: 0, received: 0, posted, sending: false, waiting: true }
    }

    /// Until all messages have been sent and received.
    pub(super) fn run(mut self) -> Result<Outcome> {
        let stopwatch = Stopwatch::start();
        let mut progress = Progress::new("pingpong", !self.args.json);
        let mut idle = Idle::default();
        let mut silence = Silence::new(if self.args.events { 1 } else { TURNS });
        if self.args.host.is_some() {
            self.start()?;
        }
        let mut completions = [Completion::default(); 2];
        while self.received < self.args.iters || self.sent < self.args.iters {
            interrupt::check()?;
            let found = self.next(&mut completions)?;
            idle.after(found == 0);
            if found == 0 {
                silence.goes_on()?;
                continue;
            }
            silence.broken();
            completions[..found].iter().try_for_each(|completion| self.handle(completion))?;
            progress.set(self.received, self.args.iters);
        }
        Ok(Outcome { seconds: stopwatch.seconds() })
    }

    fn next(&self, completions: &mut [Completion]) -> Result<usize> {
        if self.args.events {
            Ok(self.cq.wait(completions, Some(NAP))?)
        } else {
            Ok(self.cq.poll(completions))
        }
    }

    /// The client sends first.
    fn start(&mut self) -> Result<()> {
        if self.args.chk {
            let mut pages = (0..self.memory.len()).step_by(PAGE);
            pages.try_for_each(|page| self.memory.write_at(page, &[0]))?;
        }
        self.send()
    }

    fn send(&mut self) -> Result<()> {
        self.qp.post_send(std::slice::from_ref(&self.request))?;
        (self.sending, self.waiting) = (true, true);
        Ok(())
    }

    fn handle(&mut self, completion: &Completion) -> Result<()> {
        let completion = checked(self.cq.context(), completion)?;
        if completion.opcode == WcOpcode::Recv {
            self.received += 1;
            self.waiting = false;
            self.refill()?;
        } else {
            self.sent += 1;
            self.sending = false;
        }
        if self.sent < self.args.iters && !self.sending && !self.waiting { self.send() } else { Ok(()) }
    }

    fn refill(&mut self) -> Result<()> {
        self.posted -= 1;
        if self.posted <= 1 {
            self.qp.post_recv(&receives(self.memory, self.args.rx_depth - self.posted))?;
            self.posted = self.args.rx_depth;
        }
        Ok(())
    }
}

/// So many receives into the one buffer.
pub(super) fn receives(memory: &MemoryRegion, count: u32) -> Vec<RecvWr> {
    vec![RecvWr::new(1, memory.sge(..)); count as usize]
}

/// The pages that do not start with 0.
pub(super) fn wrong_pages(bytes: &[u8]) -> Vec<usize> {
    bytes.iter().step_by(PAGE).enumerate().filter(|(_, byte)| **byte != 0).map(|(page, _)| page).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_pages_are_named() {
        let mut bytes = vec![0x7b; 3 * PAGE + 1];
        [0, PAGE, 3 * PAGE].iter().for_each(|&page| bytes[page] = 0);
        assert_eq!(wrong_pages(&bytes), [2]);
    }
}
