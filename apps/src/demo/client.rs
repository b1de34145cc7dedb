//! The end that acts, and what both ends are made of.

use std::io::{Read, Write};
use std::sync::Arc;

use uroce::{
    Access, Completion, CompletionQueue, ConnectionParams, Context, Endpoint, MemoryRegion,
    PreparedQueuePair, QpType, QueuePair, RemoteMr, SendWr,
};

use super::case::{self, Case, MOST, Operation, REGION, Row};
use super::pattern;
use super::server::{Message, out_of_turn};
use crate::clock::Stopwatch;
use crate::control::Control;
use crate::device::{Device, checked};
use crate::error::{Failure, Result};
use crate::idle::Idle;
use crate::interrupt;
use crate::stats::{gbps, rounded};

/// Rounds of each case: the first one warms up, and is checked like the others; the best one is shown.
pub(crate) const ROUNDS: u32 = 3;

/// An end before it knows its peer.
pub(crate) struct Prepared {
    qp: PreparedQueuePair,
    cq: CompletionQueue,
    memory: MemoryRegion,
}

/// A connected end.
pub(crate) struct End {
    pub(crate) qp: Arc<QueuePair>,
    pub(crate) cq: CompletionQueue,
    pub(crate) memory: MemoryRegion,
}

impl Prepared {
    pub(crate) fn new(ctx: &Context) -> Result<Self> {
        let (pd, cq) = (ctx.alloc_pd()?, ctx.create_cq(2 * MOST).build()?);
        let access = Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
        let memory = pd.alloc_mr(REGION, Access::LOCAL_WRITE | access)?;
        let qp = pd.create_qp(QpType::Rc, &cq, &cq).max_send_wr(MOST).max_recv_wr(MOST);
        let qp = qp.access(access).build()?.params(ConnectionParams::default());
        Ok(Self { qp, cq, memory })
    }

    pub(crate) fn hello(&self) -> Message {
        let RemoteMr { addr, len, rkey } = self.memory.remote();
        Message::Hello { endpoint: self.qp.endpoint().to_string(), addr, len, rkey }
    }

    pub(crate) fn connect(self, peer: &str) -> Result<End> {
        let peer = peer.parse::<Endpoint>().map_err(|error| Failure::new(error.to_string()))?;
        Ok(End { qp: Arc::new(self.qp.connect(peer)?), cq: self.cq, memory: self.memory })
    }
}

/// Does everything that the demo does, and tells each row as it is done.
pub(crate) fn run<S: Read + Write>(
    ctx: &Device,
    mut control: Control<S>,
    done: &mut dyn FnMut(Row) -> Result<()>,
) -> Result<()> {
    let prepared = Prepared::new(ctx)?;
    control.send(&prepared.hello())?;
    let Message::Hello { endpoint, addr, len, rkey } = control.receive()? else { return Err(out_of_turn()) };
    let end = prepared.connect(&endpoint)?;
    ctx.show(std::slice::from_ref(&end.qp));
    let mut client = Client {
        control,
        end,
        remote: RemoteMr { addr, len, rkey },
        backend: ctx.query_port().mode.to_string(),
    };
    for case in case::all() {
        done(client.case(&case)?)?;
    }
    client.control.send(&Message::Bye)
}

struct Client<S> {
    control: Control<S>,
    end: End,
    remote: RemoteMr,
    backend: String,
}

impl<S: Read + Write> Client<S> {
    fn case(&mut self, case: &Case) -> Result<Row> {
        let mut best = f64::INFINITY;
        let mut verified = case.messages;
        for _ in 0..ROUNDS {
            let (seconds, right) = self.round(case)?;
            best = best.min(seconds);
            verified = verified.min(right);
        }
        if verified < case.messages {
            return Err(Failure::new(format!(
                "{} of {} bytes: only {verified} of {} messages arrived as they were sent; this is a bug",
                case.operation.name(),
                case.size,
                case.messages
            )));
        }
        Ok(self.row(case, best, verified))
    }

    fn row(&self, case: &Case, seconds: f64, verified: u32) -> Row {
        let bytes = u64::from(case.messages) * u64::from(case.size);
        let one_by_one = case.one_by_one();
        Row {
            op: case.operation.name().to_owned(),
            size: case.size,
            messages: case.messages,
            verified,
            gbps: (!one_by_one).then(|| rounded(gbps(bytes, seconds))),
            lat_us: one_by_one.then(|| rounded(seconds * 1e6 / f64::from(case.messages))),
            backend: self.backend.clone(),
        }
    }

    /// Does it once; how long it took, and how many messages were right.
    fn round(&mut self, case: &Case) -> Result<(f64, u32)> {
        self.prepare(case)?;
        self.control.send(&Message::Case(*case))?;
        let Message::Ready = self.control.receive()? else { return Err(out_of_turn()) };
        let seconds = self.act(case)?;
        self.control.send(&Message::Check)?;
        let Message::Verified(there) = self.control.receive()? else { return Err(out_of_turn()) };
        Ok((seconds, there.min(self.right(case)?)))
    }

    fn prepare(&self, case: &Case) -> Result<()> {
        let content = match case.operation {
            Operation::Read | Operation::CompareSwap | Operation::FetchAdd => {
                vec![0; case.slot(case.messages)]
            }
            _ => pattern::all(case),
        };
        Ok(self.end.memory.write_at(0, &content)?)
    }

    fn act(&self, case: &Case) -> Result<f64> {
        let requests: Vec<SendWr> = (0..case.messages).map(|number| self.request(case, number)).collect();
        let stopwatch = Stopwatch::start();
        let together = if case.one_by_one() { 1 } else { requests.len() };
        for some in requests.chunks(together) {
            self.end.qp.post_send(some)?;
            self.complete(some.len())?;
        }
        Ok(stopwatch.seconds())
    }

    fn request(&self, case: &Case, number: u32) -> SendWr {
        let start = case.slot(number);
        let local = self.end.memory.sge(start..start + case.size as usize);
        let there = self.remote.at(start as u64);
        let id = u64::from(number);
        let request = match case.operation {
            Operation::Send | Operation::SendImm => SendWr::send(id, local),
            Operation::Write | Operation::WriteImm => SendWr::rdma_write(id, local, there),
            Operation::Read => SendWr::rdma_read(id, local, there),
            Operation::CompareSwap => {
                let (compare, swap) = (compared(case, number), swapped(case, number + 1));
                SendWr::cmp_and_swp(id, local, self.remote, compare, swap)
            }
            Operation::FetchAdd => SendWr::fetch_and_add(id, local, self.remote, addend(case)),
        };
        match case.immediate(number) {
            Some(immediate) => request.imm(immediate).signaled(),
            None => request.signaled(),
        }
    }

    /// Waits until so many requests have completed.
    fn complete(&self, mut count: usize) -> Result<()> {
        let mut found = [Completion::default(); 64];
        let mut idle = Idle::default();
        while count > 0 {
            interrupt::check()?;
            let taken = self.end.cq.poll(&mut found);
            found[..taken].iter().try_for_each(|one| checked(self.end.cq.context(), one).map(drop))?;
            idle.after(taken == 0);
            count -= taken;
        }
        Ok(())
    }

    /// How many messages are right as far as this end can tell.
    fn right(&self, case: &Case) -> Result<u32> {
        let fetched = |expected: fn(&Case, u32) -> u64| {
            let is_right = |number: &u32| {
                let word = self.end.memory.load_u64(case.slot(*number));
                word.is_ok_and(|word| word == expected(case, *number))
            };
            (0..case.messages).filter(is_right).count() as u32
        };
        Ok(match case.operation {
            Operation::Read => pattern::right(case, &self.end.memory.to_vec(..case.slot(case.messages))?),
            Operation::CompareSwap => fetched(swapped),
            Operation::FetchAdd => fetched(added),
            _ => case.messages,
        })
    }
}

/// The word after `count` additions.
pub(crate) const fn added(case: &Case, count: u32) -> u64 {
    addend(case).wrapping_mul(count as u64)
}

/// The word after `count` swaps: every fourth is made to fail, and then it stays.
pub(crate) const fn swapped(case: &Case, count: u32) -> u64 {
    let failed = count / 4;
    ((count - failed) as u64).wrapping_mul(addend(case))
}

/// What swap `number` expects to find.
fn compared(case: &Case, number: u32) -> u64 {
    let found = swapped(case, number);
    if (number + 1).is_multiple_of(4) { !found } else { found }
}

/// Large and odd, so that every byte of the word changes, and carries run through it.
const fn addend(case: &Case) -> u64 {
    0x9e37_79b9_7f4a_7c15 ^ (case.seed << 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fourth_swap_fails() {
        let case = Case { operation: Operation::CompareSwap, size: 8, messages: 500, seed: 3 };
        let mut word = 0;
        for number in 0..case.messages {
            assert_eq!(word, swapped(&case, number));
            let wanted = compared(&case, number) == word;
            assert_eq!(wanted, (number + 1) % 4 != 0);
            if wanted {
                word = swapped(&case, number + 1);
            }
        }
        assert_eq!(word, swapped(&case, case.messages));
    }
}
