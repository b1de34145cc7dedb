//! Work requests and completions, in the words of the API.

use uroce::{Completion as OwnCompletion, FlushPlacement, FlushScope, RemoteMr, SendWr, Sge};

use crate::peer::{Completion, Operation, Placement, Remote, Request};

/// A send request.
pub(super) fn translate(request: &Request, sge: Sge) -> SendWr {
    let id = request.wr_id;
    match request.operation {
        Operation::Send { immediate } => with_immediate(SendWr::send(id, sge), immediate),
        Operation::SendInvalidate { rkey } => SendWr::send_with_inv(id, sge, rkey),
        Operation::Write { remote, immediate } => {
            with_immediate(SendWr::rdma_write(id, sge, far(remote)), immediate)
        }
        Operation::Read { remote } => SendWr::rdma_read(id, sge, far(remote)),
        Operation::CompareSwap { remote, compare, swap } => {
            SendWr::cmp_and_swp(id, sge, far(remote), compare, swap)
        }
        Operation::FetchAdd { remote, add } => SendWr::fetch_and_add(id, sge, far(remote), add),
        Operation::AtomicWrite { remote, value } => SendWr::atomic_write(id, value, far(remote)),
        Operation::Flush { remote, placement } => {
            let (length, scope) = match placement {
                Placement::Range(length) => (length, FlushScope::Range),
                Placement::Region => (0, FlushScope::Region),
            };
            SendWr::flush(id, far(remote), length, FlushPlacement::Global, scope)
        }
        Operation::LocalInvalidate { rkey } => SendWr::local_inv(id, rkey),
    }
}

/// A completion.
pub(super) fn completion(entry: &OwnCompletion) -> Completion {
    Completion {
        wr_id: entry.wr_id,
        status: entry.status as u32,
        opcode: entry.opcode as u32,
        byte_len: entry.byte_len,
        immediate: entry.immediate,
        invalidated: entry.invalidated_rkey,
        qp_num: entry.qp_num.get(),
        src_qp: entry.src_qp.get(),
        flags: entry.flags.bits(),
    }
}

fn with_immediate(request: SendWr, immediate: Option<u32>) -> SendWr {
    match immediate {
        Some(value) => request.imm(value),
        None => request,
    }
}

fn far(remote: Remote) -> RemoteMr {
    RemoteMr { addr: remote.addr, rkey: remote.rkey, ..RemoteMr::default() }
}
