//! One message at a time.

use uroce::{Completion, SendWr, WcOpcode};

use super::args::LatOp;
use super::connection::Connection;
use super::marker::Marker;
use super::other::Other;
use super::plan::{Amount, Plan};
use super::report::Measured;
use super::side::{Card, Side};
use crate::clock::Stopwatch;
use crate::device::checked;
use crate::error::Result;
use crate::progress::Progress;
use crate::silence::Silence;
use crate::stats::Latency;

/// How often a completion is asked for where none is waited for.
const CQ_MOD: u32 = 32;
/// Turns of the waiting loop between two looks whether it has waited too long.
const SILENT_TURNS: u32 = 4096;

/// Measures messages of one size.
pub(crate) fn measure(
    plan: &Plan,
    op: LatOp,
    size: u32,
    near: &Side,
    theirs: &Card,
    other: &mut dyn Other,
    bar: bool,
) -> Result<Measured> {
    let mut trip = Trip::new(plan, op, size, near, theirs)?;
    trip.run(Amount::Messages(plan.warm_up(size).min(1000)), other, &mut Progress::none())?;
    let mut progress = Progress::new(format!("{} {size}", plan.test.command()), bar);
    let samples = trip.run(plan.amount_of(size), other, &mut progress)?;
    let trips = if op == LatOp::Read { 1 } else { 2 };
    Ok(Measured::Latency { iterations: samples.len() as u64, latency: Latency::of(samples, trips) })
}

/// Sends one message and waits for what comes of it.
struct Trip<'a> {
    near: &'a Side,
    kind: Kind,
    silence: Silence,
    completions: [Completion; 4],
}

enum Kind {
    /// Watches memory for the answer.
    Write(Marker),
    /// Waits for the completion.
    Read(SendWr),
    /// Waits for the answer in a receive.
    Send { request: [SendWr; 2], sent: u32 },
}

impl<'a> Trip<'a> {
    fn new(plan: &Plan, op: LatOp, size: u32, near: &'a Side, theirs: &Card) -> Result<Self> {
        let kind = match op {
            LatOp::Write => {
                let mut marker = Marker::new(near, theirs, size)?;
                marker.begin(near, size)?;
                Kind::Write(marker)
            }
            LatOp::Read => {
                Kind::Read(SendWr::rdma_read(0, near.outgoing(0, size), theirs.incoming(0)).signaled())
            }
            LatOp::Send => {
                let send = near.send(0, size);
                Kind::Send { request: [send.clone(), send.signaled()], sent: 0 }
            }
        };
        Ok(Self {
            near,
            kind,
            silence: Silence::new(SILENT_TURNS, plan.connection == Connection::Rc),
            completions: Default::default(),
        })
    }

    /// So many round trips, or so long; returns what each took in nanoseconds.
    fn run(&mut self, amount: Amount, other: &mut dyn Other, progress: &mut Progress) -> Result<Vec<u64>> {
        let mut samples = Vec::with_capacity(match amount {
            Amount::Messages(messages) => messages as usize,
            Amount::Time(_) => 1 << 20,
        });
        let stopwatch = Stopwatch::start();
        let mut before = stopwatch.nanos();
        loop {
            let (done, all) = match amount {
                Amount::Messages(messages) => (samples.len() as u64, messages),
                Amount::Time(time) => (before, time.as_nanos() as u64),
            };
            if done >= all {
                return Ok(samples);
            }
            progress.set(done, all);
            self.once(other)?;
            let now = stopwatch.nanos();
            samples.push(now - before);
            before = now;
        }
    }

    fn once(&mut self, other: &mut dyn Other) -> Result<()> {
        self.send()?;
        self.silence.broken();
        while !self.is_back()? {
            other.turn(true)?;
            self.silence.goes_on()?;
        }
        Ok(())
    }

    fn send(&mut self) -> Result<()> {
        match &mut self.kind {
            Kind::Write(marker) => {
                let value = marker.next();
                marker.write(self.near, value)
            }
            Kind::Read(request) => Ok(self.near.qps[0].post_send(std::slice::from_ref(request))?),
            Kind::Send { request, sent } => {
                *sent += 1;
                let request = &request[usize::from(*sent % CQ_MOD == 0)];
                Ok(self.near.qps[0].post_send(std::slice::from_ref(request))?)
            }
        }
    }

    /// Runs the engine; whether what was waited for has come.
    fn is_back(&mut self) -> Result<bool> {
        let found = self.near.cq.poll(&mut self.completions);
        let mut received = false;
        let mut read = false;
        for completion in &self.completions[..found] {
            let opcode = checked(&self.near.ctx, completion)?.opcode;
            received |= opcode == WcOpcode::Recv;
            read |= opcode == WcOpcode::RdmaRead;
        }
        match &mut self.kind {
            Kind::Write(marker) => Ok(marker.arrived(self.near)?.is_some()),
            Kind::Read(_) => Ok(read),
            Kind::Send { .. } if received => {
                self.near.post_recv(0, std::slice::from_ref(&self.near.receive(0)))?;
                Ok(true)
            }
            Kind::Send { .. } => Ok(false),
        }
    }
}
