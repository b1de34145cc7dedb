//! The end that reads what a client has, and writes it back.

use uroce::{Access, MemoryRegion, RemoteMr, SendWr};

use super::end::{End, Prepared};
use super::{MAX_SIZE, Printer, text};
use crate::cm::Asking;
use crate::device::Device;
use crate::error::{Failure, Result};

/// Serves one client until it ends the connection, also in the middle of a ping; returns how many pings there were.
pub(super) fn serve(ctx: &Device, asking: Asking, printer: Printer) -> Result<u64> {
    let prepared = Prepared::new(ctx)?;
    // Room for a ping of any size, whatever the client chose.
    let memory = prepared.pd.alloc_mr(MAX_SIZE as usize, Access::LOCAL_WRITE)?;
    let mut end = prepared.connect(|qp| asking.accept(qp, &[]))?;
    ctx.show(std::slice::from_ref(&end.link().qp));
    let served = pings(&mut end, &memory, printer);
    let farewell = end.disconnect();
    let count = served?;
    farewell.map(|()| count)
}

fn pings(end: &mut End, memory: &MemoryRegion, printer: Printer) -> Result<u64> {
    let mut count = 0;
    while let Some(source) = end.hear()? {
        let length = checked_length(source)?;
        if !end.transfer(|id| SendWr::rdma_read(id, memory.sge(..length), source))? {
            break;
        }
        let data = memory.to_vec(..length)?;
        printer.data("server ping data", &data)?;
        end.tell(RemoteMr::default())?;
        let Some(sink) = end.hear()? else { break };
        // With the zero that ends it, if it is there.
        let back = (text::of(&data).len() + 1).min(length);
        if !end.transfer(|id| SendWr::rdma_write(id, memory.sge(..back), sink))? {
            break;
        }
        count += 1;
        end.tell(RemoteMr::default())?;
    }
    Ok(count)
}

fn checked_length(source: RemoteMr) -> Result<usize> {
    let length = usize::try_from(source.len).ok().filter(|length| *length <= MAX_SIZE as usize);
    length.ok_or_else(|| {
        Failure::new(format!(
            "the client pings with {} bytes: {MAX_SIZE} is the most, give a smaller -S",
            source.len
        ))
    })
}
