//! What every kind of requester does alike: how a send ends, what is checked before it starts, where its bytes are.

use super::connection::Connection;
use super::env::Env;
use crate::access::Access;
use crate::completion::{Completion, WcOpcode, WcStatus};
use crate::counters::Counter;
use crate::engine::Pd;
use crate::memory::{AccessError, Crc, Memory};
use crate::queue::{SendData, SendSlot};
use crate::wire::{Operation, Position, Reth};
use crate::work::{RemoteAddr, SendFlags, SendOp};

/// Why the oldest work request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) status: WcStatus,
    /// The AETH syndrome that told it, if one did.
    pub(crate) syndrome: u8,
}

impl From<WcStatus> for Failure {
    fn from(status: WcStatus) -> Self {
        Self { status, syndrome: 0 }
    }
}

/// What an attempt to send came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transmit {
    /// A frame of this length is ready to leave.
    Frame(usize),
    /// There is nothing to send now.
    Idle,
    /// The oldest work request cannot be sent.
    Failed(Failure),
}

/// Reports the end of a work request, if it is to be reported.
pub(super) fn complete(connection: &Connection, env: &mut Env<'_>, slot: &SendSlot, end: Failure) {
    let signaled = connection.init.sq_sig_all || slot.flags.contains(SendFlags::SIGNALED);
    if signaled || end.status != WcStatus::Success {
        let completion = Completion {
            wr_id: slot.wr_id,
            status: end.status,
            opcode: wc_opcode(&slot.op),
            byte_len: slot.length,
            qp_num: connection.number,
            vendor_err: u32::from(end.syndrome),
            ..Completion::default()
        };
        env.cqs.push(connection.init.send_cq, completion, false);
    }
}

const fn wc_opcode(op: &SendOp) -> WcOpcode {
    match op {
        SendOp::Send { .. } | SendOp::SendInvalidate { .. } => WcOpcode::Send,
        SendOp::Write { .. } => WcOpcode::RdmaWrite,
        SendOp::Read { .. } => WcOpcode::RdmaRead,
        SendOp::CompareSwap { .. } => WcOpcode::CompSwap,
        SendOp::FetchAdd { .. } => WcOpcode::FetchAdd,
        SendOp::AtomicWrite { .. } => WcOpcode::AtomicWrite,
        SendOp::Flush { .. } => WcOpcode::Flush,
        SendOp::LocalInvalidate { .. } => WcOpcode::LocalInv,
        SendOp::BindMw(_) => WcOpcode::BindMw,
        SendOp::RegisterMr(_) => WcOpcode::RegMr,
    }
}

/// Whether the keys of a work request open the memory that it names.
pub(super) fn check_keys(
    connection: &Connection,
    env: &mut Env<'_>,
    slot: &SendSlot,
) -> Result<(), WcStatus> {
    let rights = if slot.op.returns_data() { Access::LOCAL_WRITE } else { Access::empty() };
    env.memory.check_local(connection.pd, slot.sges(), rights).map_err(|_| protection_error(env))
}

/// A key of a send does not open what it names, or not any more.
pub(super) fn protection_error(env: &mut Env<'_>) -> WcStatus {
    env.counters.add(Counter::ReqLocalProtErr);
    WcStatus::LocProtErr
}

/// Carries out a work request of which nothing goes on the wire.
pub(super) fn run_local(connection: &Connection, env: &mut Env<'_>, op: &SendOp) -> Result<(), WcStatus> {
    let by = connection.subject();
    match op {
        SendOp::LocalInvalidate { rkey } => {
            env.memory.invalidate(by, *rkey).map_err(|_| WcStatus::LocQpOpErr)
        }
        SendOp::BindMw(bind) => env.memory.bind(by, bind).map_err(|_| WcStatus::MwBindErr),
        SendOp::RegisterMr(register) => {
            env.memory.fast_register(by, register).map_err(|_| WcStatus::LocQpOpErr)
        }
        _ => Err(WcStatus::LocQpOpErr),
    }
}

/// The operation of a packet of a SEND or WRITE; `None` for what is no such message.
#[inline]
pub(super) fn data_operation(slot: &SendSlot, position: Position) -> Option<Operation> {
    let at_end = |value: Option<u32>| value.filter(|_| position.is_end());
    let send = |immediate, invalidate| Operation::Send {
        position,
        immediate: at_end(immediate),
        invalidate: at_end(invalidate),
    };
    Some(match slot.op {
        SendOp::Write { remote, immediate } => {
            let reth = position.is_start().then_some(reth(remote, slot.length));
            Operation::Write { position, reth, immediate: at_end(immediate) }
        }
        SendOp::Send { immediate } => send(immediate, None),
        SendOp::SendInvalidate { rkey } => send(None, Some(rkey)),
        _ => return None,
    })
}

pub(super) const fn reth(remote: RemoteAddr, length: u32) -> Reth {
    Reth { va: remote.va, rkey: remote.rkey, length }
}

/// SE is defined for what completes a receive.
pub(super) const fn is_solicited(slot: &SendSlot) -> bool {
    let completes_receive = matches!(
        slot.op,
        SendOp::Send { .. } | SendOp::SendInvalidate { .. } | SendOp::Write { immediate: Some(_), .. }
    );
    slot.flags.contains(SendFlags::SOLICITED) && completes_receive
}

/// Copies the bytes of a message from `offset` on into `out`.
#[inline]
pub(super) fn copy_data(
    memory: &Memory,
    pd: Pd,
    slot: &SendSlot,
    offset: u64,
    out: &mut [u8],
    crc: Crc,
) -> Result<Crc, AccessError> {
    match slot.data() {
        SendData::Sges(sges) => memory.gather(pd, sges, offset, out, crc),
        SendData::Inline(bytes) => {
            let start = offset as usize;
            out.copy_from_slice(&bytes[start..start + out.len()]);
            Ok(crc.update(out))
        }
    }
}
