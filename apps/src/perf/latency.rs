//! One message at a time.

use uroce::{Completion, CompletionExt, SendWr, WcOpcode};

use super::args::LatOp;
use super::other::Other;
use super::plan::{Amount, Plan};
use super::report::Measured;
use super::side::{Card, INLINE, Side};
use crate::clock::Stopwatch;
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
    let mut trip = Trip::new(op, size, near, theirs)?;
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
    fn new(op: LatOp, size: u32, near: &'a Side, theirs: &Card) -> Result<Self> {
        let kind = match op {
            LatOp::Write => {
                let mut marker = Marker::new(near, theirs, size)?;
                marker.begin(near, size)?;
                Kind::Write(marker)
            }
            LatOp::Read => Kind::Read(SendWr::rdma_read(0, near.outgoing(0, size), theirs.incoming(0)).signaled()),
            LatOp::Send => {
                let send = SendWr::send(0, near.outgoing(0, size));
                Kind::Send { request: [send.clone(), send.signaled()], sent: 0 }
            }
        };
        Ok(Self { near, kind, silence: Silence::new(SILENT_TURNS), completions: Default::default() })
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
            other.turn()?;
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
            let opcode = completion.result()?.opcode;
            received |= opcode == WcOpcode::Recv;
            read |= opcode == WcOpcode::RdmaRead;
        }
        match &mut self.kind {
            Kind::Write(marker) => Ok(marker.arrived(self.near)?.is_some()),
            Kind::Read(_) => Ok(read),
            Kind::Send { .. } if received => {
                self.near.qps[0].post_recv(std::slice::from_ref(&self.near.receive(0)))?;
                Ok(true)
            }
            Kind::Send { .. } => Ok(false),
        }
    }
}

/// The last byte of a message that was written: bytes land in order, so once it has changed all others are there.
#[derive(Debug)]
pub(crate) struct Marker {
    size: u32,
    remote: uroce::RemoteMr,
    /// For messages that are not inline, without and with a completion.
    requests: [SendWr; 2],
    /// What the byte was when we last looked.
    seen: u8,
    written: u8,
    count: u32,
}

impl Marker {
    pub(crate) fn new(side: &Side, peer: &Card, size: u32) -> Result<Self> {
        let remote = peer.incoming(0);
        let requests = requests(side, remote, size);
        Ok(Self { size, remote, requests, seen: 0, written: 0, count: 0 })
    }

    /// From now on messages have `size` bytes. Both ends must have done so before the first one leaves.
    pub(crate) fn begin(&mut self, side: &Side, size: u32) -> Result<()> {
        self.size = size;
        self.requests = requests(side, self.remote, size);
        (self.seen, self.written) = (0, 0);
        Ok(side.memory.write_at(self.place(side), &[0])?)
    }

    /// The value after the last one written; never 0.
    pub(crate) const fn next(&self) -> u8 {
        self.written % u8::MAX + 1
    }

    /// Writes a message that ends with `value` to the peer.
    pub(crate) fn write(&mut self, side: &Side, value: u8) -> Result<()> {
        self.written = value;
        self.count = self.count.wrapping_add(1);
        let signaled = self.count.is_multiple_of(CQ_MOD);
        if self.size <= INLINE {
            let bytes = [value; INLINE as usize];
            let write = SendWr::rdma_write_inline(0, &bytes[..self.size as usize], self.remote);
            let write = if signaled { write.signaled() } else { write };
            return Ok(side.qps[0].post_send(std::slice::from_ref(&write))?);
        }
        side.memory.write_at(side.outgoing_at(0) + self.size as usize - 1, &[value])?;
        Ok(side.qps[0].post_send(std::slice::from_ref(&self.requests[usize::from(signaled)]))?)
    }

    /// The value of a message that has come since the last look.
    pub(crate) fn arrived(&mut self, side: &Side) -> Result<Option<u8>> {
        let mut byte = [0];
        side.memory.read_at(self.place(side), &mut byte)?;
        if byte[0] == self.seen {
            return Ok(None);
        }
        self.seen = byte[0];
        Ok(Some(self.seen))
    }

    const fn place(&self, side: &Side) -> usize {
        side.incoming_at(0) + self.size as usize - 1
    }
}

fn requests(side: &Side, remote: uroce::RemoteMr, size: u32) -> [SendWr; 2] {
    let write = SendWr::rdma_write(0, side.outgoing(0, size), remote);
    [write.clone(), write.signaled()]
}
