//! The end that pings.

use uroce::{Access, ConnParam, MemoryRegion};

use super::end::{End, Prepared};
use super::tally::Tally;
use super::{Printer, text};
use crate::clock::Stopwatch;
use crate::cm;
use crate::device::Device;
use crate::error::{Failure, Result};

/// What is to be done.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) size: usize,
    /// 0 is for ever.
    pub(super) count: u64,
    pub(super) verify: bool,
}

/// The memory that the server reads, and the one it writes.
struct Buffers {
    source: MemoryRegion,
    sink: MemoryRegion,
}

/// Pings until all is done, or until Ctrl-C if there is no end to it.
pub(super) fn run(ctx: &Device, job: &Job, printer: Printer) -> Result<Tally> {
    let resolved = cm::resolve(ctx, &job.host, job.port)?;
    let prepared = Prepared::new(ctx)?;
    let buffers = Buffers {
        source: prepared.pd.alloc_mr(job.size, Access::LOCAL_WRITE | Access::REMOTE_READ)?,
        sink: prepared.pd.alloc_mr(job.size, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?,
    };
    // As rping asks: one READ at a time.
    let param = ConnParam { responder_resources: 1, initiator_depth: 1, ..ConnParam::default() };
    let mut end = prepared.connect(|qp| resolved.connect(qp, &param))?;
    ctx.show(std::slice::from_ref(&end.link().qp));
    let mut tally = Tally::default();
    let done = pings(&mut end, job, &buffers, printer, &mut tally);
    let farewell = end.disconnect();
    match done {
        Err(Failure::Interrupted) if job.count == 0 => {}
        done => done.and(farewell)?,
    }
    Ok(tally)
}

fn pings(end: &mut End, job: &Job, buffers: &Buffers, printer: Printer, tally: &mut Tally) -> Result<()> {
    let numbers = 0..if job.count == 0 { u64::MAX } else { job.count };
    for number in numbers {
        let data = text::make(number, job.size);
        buffers.source.write_at(0, &data)?;
        let stopwatch = Stopwatch::start();
        ask(end, &buffers.source)?;
        ask(end, &buffers.sink)?;
        tally.add(stopwatch.nanos());
        let answer = buffers.sink.to_vec(..)?;
        if job.verify && answer != data {
            return Err(Failure::new(format!(
                "ping {number} came back other than it was sent: the peer pings with another size (give the same -S), or \
                 damages data"
            )));
        }
        printer.data("ping data", &answer)?;
    }
    Ok(())
}

/// Tells the server about memory, and waits until it has read or written it.
fn ask(end: &mut End, memory: &MemoryRegion) -> Result<()> {
    end.tell(memory.remote())?;
    end.hear()?.map(drop).ok_or(Failure::PeerGone)
}
