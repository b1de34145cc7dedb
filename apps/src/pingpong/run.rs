//! The messages themselves.

use std::time::Duration;

use uroce::{Completion, Qpn, WcOpcode};

use super::PingpongArgs;
use super::link::{Linked, receives};
use crate::clock::Stopwatch;
use crate::device::checked;
use crate::error::{Failure, Result};
use crate::idle::Idle;
use crate::interrupt;
use crate::progress::Progress;
use crate::silence::Silence;

/// What `-c` looks at the start of.
const PAGE: usize = 4096;
/// Completions taken at once.
const BATCH: usize = 64;
/// Turns of a polling loop between two looks whether it has waited too long.
const TURNS: u32 = 4096;
/// How long to sleep with `-e` before looking for Ctrl-C again.
const NAP: Duration = Duration::from_millis(100);

/// What a run took.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) seconds: f64,
}

/// A run under way. Messages are counted over all queue pairs, as the other programs do.
pub(super) struct Run<'a> {
    args: &'a PingpongArgs,
    link: &'a Linked,
    lanes: Vec<Lane>,
    sent: u64,
    received: u64,
    /// Receives that are posted.
    posted: u32,
}

/// What a queue pair waits for.
struct Lane {
    qpn: Qpn,
    /// The completion of its last message.
    sending: bool,
    /// An answer to it.
    waiting: bool,
}

impl<'a> Run<'a> {
    pub(super) fn new(args: &'a PingpongArgs, link: &'a Linked) -> Self {
        let lanes = link.qps.iter().map(|qp| Lane { qpn: qp.qpn(), sending: false, waiting: true });
        Self { args, link, lanes: lanes.collect(), sent: 0, received: 0, posted: args.rx_depth }
    }

    /// Until all messages have been sent and received.
    pub(super) fn run(mut self) -> Result<Outcome> {
        let stopwatch = Stopwatch::start();
        let mut progress = Progress::new("pingpong", !self.args.json);
        let mut idle = Idle::default();
        let mut silence =
            Silence::new(if self.args.events { 1 } else { TURNS }, self.args.service().is_reliable());
        if self.args.host.is_some() {
            self.start()?;
        }
        let mut completions = [Completion::default(); BATCH];
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
            Ok(self.link.cq.wait(completions, Some(NAP))?)
        } else {
            Ok(self.link.cq.poll(completions))
        }
    }

    /// The client sends first, on every queue pair.
    fn start(&mut self) -> Result<()> {
        if self.args.chk {
            let mut pages = pages(self.args, self.link.memory.len());
            pages.try_for_each(|page| self.link.memory.write_at(page, &[0]))?;
        }
        (0..self.lanes.len()).try_for_each(|index| self.send(index))
    }

    fn send(&mut self, index: usize) -> Result<()> {
        self.link.qps[index].post_send(std::slice::from_ref(&self.link.requests[index]))?;
        let lane = &mut self.lanes[index];
        (lane.sending, lane.waiting) = (true, true);
        Ok(())
    }

    fn handle(&mut self, completion: &Completion) -> Result<()> {
        let completion = checked(self.link.cq.context(), completion)?;
        let index = self.lanes.iter().position(|lane| lane.qpn == completion.qp_num);
        let index = index.ok_or_else(|| Failure::new("a completion names a queue pair that is not ours"))?;
        if completion.opcode == WcOpcode::Recv {
            self.received += 1;
            self.lanes[index].waiting = false;
            self.refill()?;
        } else {
            self.sent += 1;
            self.lanes[index].sending = false;
        }
        let free = !self.lanes[index].sending && !self.lanes[index].waiting;
        if self.sent < self.args.iters && free { self.send(index) } else { Ok(()) }
    }

    /// Each queue pair finds a receive for its next message.
    fn refill(&mut self) -> Result<()> {
        self.posted -= 1;
        if self.posted as usize <= self.lanes.len() {
            let more = receives(&self.link.memory, self.args.rx_depth - self.posted);
            self.link.receives.post(&more)?;
            self.posted = self.args.rx_depth;
        }
        Ok(())
    }
}

/// Where the pages of a message start in a buffer of `len` bytes.
fn pages(args: &PingpongArgs, len: usize) -> impl Iterator<Item = usize> + use<> {
    (args.service().headroom()..len).step_by(PAGE)
}

/// The pages of a message that do not start with 0.
pub(super) fn wrong_pages(message: &[u8]) -> Vec<usize> {
    message.iter().step_by(PAGE).enumerate().filter(|(_, byte)| **byte != 0).map(|(page, _)| page).collect()
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
