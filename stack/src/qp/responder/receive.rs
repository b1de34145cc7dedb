//! Receives: taken by messages, completed when the acknowledgement has left.

use super::super::assembly::Assembly;
use super::super::connection::Connection;
use super::super::env::Env;
use super::{Refusal, Responder};
use crate::completion::{Completion, WcFlags, WcOpcode, WcStatus};
use crate::wire::{Operation, Packet};

/// What ends a message beside its last byte.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ending {
    pub(super) byte_len: u32,
    pub(super) immediate: Option<u32>,
    pub(super) invalidated_rkey: Option<u32>,
}

impl Responder {
    /// Takes a receive for the message that opens.
    pub(super) fn take_receive(&mut self, env: &mut Env<'_>) -> Result<(), Refusal> {
        if self.receives.take(env) { Ok(()) } else { Err(Refusal::NotReady) }
    }

    /// The message is complete: so is its receive, once the peer has been told as far as it asked.
    pub(super) fn finish_receive(
        &mut self,
        connection: &Connection,
        env: &mut Env<'_>,
        packet: &Packet<'_>,
        ending: Ending,
    ) {
        self.assembly = Assembly::Idle;
        self.message_done();
        let completion = received(connection, packet, ending);
        self.receives.finish(connection, env, completion, packet.bth.solicited, packet.bth.psn);
        if !packet.bth.ack_request && !self.owes() {
            self.receives.release(env, None);
        }
    }
}

fn received(connection: &Connection, packet: &Packet<'_>, ending: Ending) -> Completion {
    let written = matches!(packet.operation, Operation::Write { .. });
    let mut flags = WcFlags::GRH;
    flags.set(WcFlags::WITH_IMM, ending.immediate.is_some());
    flags.set(WcFlags::WITH_INV, ending.invalidated_rkey.is_some());
    Completion {
        status: WcStatus::Success,
        opcode: if written { WcOpcode::RecvRdmaWithImm } else { WcOpcode::Recv },
        byte_len: ending.byte_len,
        immediate: ending.immediate,
        invalidated_rkey: ending.invalidated_rkey,
        qp_num: connection.number,
        src_qp: connection.peer,
        flags,
        ..Completion::default()
    }
}
