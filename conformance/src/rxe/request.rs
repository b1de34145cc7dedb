//! Work requests and completions, in the agent's words.

use crate::agent::{Flushed, Region, Remote as AgentRemote, SendRequest, Sge, WorkCompletion};
use crate::peer::{Completion, Operation, Part, Placement, Remote, Request, Result, WindowKind};

/// `ibv_send_flags`.
const SIGNALED: u32 = 2;
/// `ibv_wr_opcode`, without immediate; with it is one more for WRITE and SEND.
const WRITE: u32 = 0;
const SEND: u32 = 2;
const READ: u32 = 4;
const COMPARE_SWAP: u32 = 5;
const FETCH_ADD: u32 = 6;
const LOCAL_INV: u32 = 7;
const BIND_MW: u32 = 8;
const SEND_WITH_INV: u32 = 9;
const FLUSH: u32 = 14;
const ATOMIC_WRITE: u32 = 15;
/// `IBV_FLUSH_GLOBAL`, and the two ranges of a FLUSH.
const GLOBAL: u8 = 1;
const RANGE: u8 = 0;
const REGION: u8 = 1;

/// A part of a region, which may lie outside.
pub(super) fn sge(region: &Region, part: Part) -> Result<Sge> {
    Ok(region.sge(part.offset as u64, u32::try_from(part.length)?))
}

/// A request to bind a window, to be completed with the window.
pub(super) fn binding(wr_id: u64) -> SendRequest {
    SendRequest { wr_id, opcode: BIND_MW, flags: SIGNALED, ..SendRequest::default() }
}

/// A send request.
pub(super) fn translate(request: &Request, region: &Region) -> Result<SendRequest> {
    let base = SendRequest { wr_id: request.wr_id, flags: SIGNALED, ..SendRequest::default() };
    let with_data = SendRequest { sges: vec![sge(region, request.part)?], ..base.clone() };
    Ok(match request.operation {
        Operation::Send { immediate } => with_immediate(SendRequest { opcode: SEND, ..with_data }, immediate),
        Operation::SendInvalidate { rkey } => {
            SendRequest { opcode: SEND_WITH_INV, invalidate: rkey, ..with_data }
        }
        Operation::Write { remote, immediate } => {
            with_immediate(toward(remote, SendRequest { opcode: WRITE, ..with_data }), immediate)
        }
        Operation::Read { remote } => toward(remote, SendRequest { opcode: READ, ..with_data }),
        Operation::CompareSwap { remote, compare, swap } => {
            let request = SendRequest { opcode: COMPARE_SWAP, compare_add: compare, swap, ..with_data };
            toward(remote, request)
        }
        Operation::FetchAdd { remote, add } => {
            toward(remote, SendRequest { opcode: FETCH_ADD, compare_add: add, ..with_data })
        }
        Operation::AtomicWrite { remote, value } => {
            let value = Some(value.iter().map(|byte| format!("{byte:02x}")).collect());
            toward(remote, SendRequest { opcode: ATOMIC_WRITE, value, ..base })
        }
        Operation::Flush { remote, placement } => {
            toward(remote, SendRequest { opcode: FLUSH, flushed: Some(flushed(placement)), ..base })
        }
        Operation::LocalInvalidate { rkey } => SendRequest { opcode: LOCAL_INV, invalidate: rkey, ..base },
    })
}

/// A completion.
pub(super) fn completion(entry: &WorkCompletion) -> Completion {
    Completion {
        wr_id: entry.wr_id,
        status: entry.status,
        opcode: entry.opcode,
        byte_len: entry.byte_len,
        immediate: entry.imm,
        invalidated: entry.invalidated,
        qp_num: entry.qp_num,
        src_qp: entry.src_qp,
        flags: entry.wc_flags,
    }
}

/// `ibv_mw_type`.
pub(super) const fn window_kind(kind: WindowKind) -> u8 {
    match kind {
        WindowKind::One => 1,
        WindowKind::Two => 2,
    }
}

const fn flushed(placement: Placement) -> Flushed {
    match placement {
        Placement::Range(length) => Flushed { length, placement: GLOBAL, selectivity: RANGE },
        Placement::Region => Flushed { length: 0, placement: GLOBAL, selectivity: REGION },
    }
}

fn with_immediate(request: SendRequest, immediate: Option<u32>) -> SendRequest {
    match immediate {
        Some(value) => SendRequest { opcode: request.opcode + 1, imm: value, ..request },
        None => request,
    }
}

fn toward(remote: Remote, request: SendRequest) -> SendRequest {
    SendRequest { remote: Some(AgentRemote { addr: remote.addr, rkey: remote.rkey }), ..request }
}
