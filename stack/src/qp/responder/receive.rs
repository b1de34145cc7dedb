//! Receives: taken by messages, completed when the acknowledgement has left, flushed.

use super::super::connection::Connection;
use super::super::env::Env;
use super::{Assembly, Held, Refusal, Responder};
use crate::completion::{Completion, WcFlags, WcOpcode, WcStatus};
use crate::wire::{Operation, Packet, Psn};

impl Responder {
    /// Opens a message that needs a receive from its first packet on.
    pub(super) fn take_receive(&mut self, assembly: Assembly) -> Result<u64, Refusal> {
        if !self.receive_is_posted() {
            return Err(Refusal::NotReady);
        }
        self.assembly = assembly;
        Ok(0)
    }

    pub(super) fn receive_is_posted(&mut self) -> bool {
        self.next_receive < self.rq.refresh()
    }

    /// Whether the open message has taken a receive.
    pub(super) const fn has_receive(&self) -> bool {
        matches!(self.assembly, Assembly::Send { .. })
    }

    /// The message is complete: so is its receive, once the peer has been told as far as it asked.
    pub(super) fn finish_receive(
        &mut self,
        connection: &Connection,
        env: &mut Env<'_>,
        packet: &Packet<'_>,
        byte_len: u32,
        immediate: Option<u32>,
    ) {
        self.assembly = Assembly::Idle;
        self.message_done();
        let index = self.next_receive;
        let written = matches!(packet.operation, Operation::Write { .. });
        let completion = Completion {
            wr_id: self.rq.get(index).wr_id,
            status: WcStatus::Success,
            opcode: if written { WcOpcode::RecvRdmaWithImm } else { WcOpcode::Recv },
            byte_len,
            immediate,
            qp_num: connection.number,
            src_qp: connection.peer,
            flags: if immediate.is_some() { WcFlags::GRH | WcFlags::WITH_IMM } else { WcFlags::GRH },
            vendor_err: 0,
        };
        self.next_receive += 1;
        self.held.push_back(Held { completion, solicited: packet.bth.solicited, psn: packet.bth.psn, index });
        if !packet.bth.ack_request && !self.owes() {
            self.release_held(connection, env, None);
        }
    }

    /// Hands out the completions of messages up to `acknowledged`, or all.
    pub(super) fn release_held(
        &mut self,
        connection: &Connection,
        env: &mut Env<'_>,
        acknowledged: Option<Psn>,
    ) {
        while let Some(held) = self.held.front() {
            if acknowledged.is_some_and(|psn| held.psn.distance(psn) > 0) {
                break;
            }
            env.cqs.push(connection.init.recv_cq, held.completion, held.solicited);
            self.rq.release_to(held.index + 1);
            self.held.pop_front();
        }
    }

    /// Ends the next receive without a message.
    pub(super) fn end_receive(&mut self, connection: &Connection, env: &mut Env<'_>, status: WcStatus) {
        let index = self.next_receive;
        let completion = Completion {
            wr_id: self.rq.get(index).wr_id,
            status,
            opcode: WcOpcode::Recv,
            qp_num: connection.number,
            ..Completion::default()
        };
        env.cqs.push(connection.init.recv_cq, completion, true);
        self.next_receive += 1;
        self.rq.release_to(index + 1);
    }
}
