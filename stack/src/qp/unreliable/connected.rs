//! Receiving on an unreliable connection (protocol sections 4.12 and 5.3).
//!
//! Nothing is ever sent. A message that lost a packet, or breaks a rule, is dropped; the next FIRST or ONLY starts anew,
//! with whatever PSN it carries.

use super::super::assembly::{Assembly, Target};
use super::super::attr::QpAttr;
use super::super::connection::Connection;
use super::super::env::Env;
use super::super::receives::Receives;
use crate::access::Access;
use crate::completion::{Completion, WcFlags, WcOpcode, WcStatus};
use crate::counters::Counter;
use crate::wire::{Operation, Packet, Position, Psn, Reth};
use crate::work::RemoteAddr;

/// Why a packet is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// Silently, and with it the rest of its message; the counter tells.
    Drop(Counter),
    /// Its receive is at fault: the queue pair goes into error, and the receive ends like this.
    Fatal(WcStatus),
}

const REFUSED: Refusal = Refusal::Drop(Counter::UcRefused);
const LOST: Refusal = Refusal::Drop(Counter::LostMessage);

/// The receiving half of an unreliable connection.
#[derive(Debug)]
pub(crate) struct ConnectedReceiver {
    receives: Receives,
    expected: Psn,
    rq_psn: Psn,
    assembly: Assembly,
}

impl ConnectedReceiver {
    pub(crate) fn new(receives: Receives) -> Self {
        Self { receives, expected: Psn::default(), rq_psn: Psn::default(), assembly: Assembly::Idle }
    }

    pub(crate) fn apply(&mut self, attr: &QpAttr) {
        if let Some(psn) = attr.rq_psn {
            (self.rq_psn, self.expected) = (psn, psn);
        }
    }

    pub(crate) const fn rq_psn(&self) -> Psn {
        self.rq_psn
    }

    /// Takes a packet that is the peer's and whole. An error tells how the open receive ends; the queue pair is in error.
    pub(crate) fn on_request(
        &mut self,
        connection: &Connection,
        env: &mut Env<'_>,
        packet: &Packet<'_>,
    ) -> Result<(), WcStatus> {
        let psn = packet.bth.psn;
        let in_order = psn == self.expected;
        self.expected = psn.next();
        match self.process(connection, env, packet, in_order) {
            Ok(()) => Ok(()),
            Err(Refusal::Drop(counter)) => {
                env.counters.add(counter);
                self.give_up();
                Ok(())
            }
            Err(Refusal::Fatal(status)) => {
                env.counters.add(Counter::RespLocalErr);
                Err(status)
            }
        }
    }

    /// Ends every receive: the one of the open message as told, all others as flushed.
    pub(crate) fn flush(&mut self, connection: &Connection, env: &mut Env<'_>, open: WcStatus) {
        self.assembly = Assembly::Idle;
        self.receives.flush(connection, env, open);
    }

    /// Forgets every receive: a reset.
    pub(crate) fn discard(&mut self) {
        self.assembly = Assembly::Idle;
        self.receives.discard();
    }

    fn process(
        &mut self,
        connection: &Connection,
        env: &mut Env<'_>,
        packet: &Packet<'_>,
        in_order: bool,
    ) -> Result<(), Refusal> {
        let (Operation::Send { position, .. } | Operation::Write { position, .. }) = packet.operation else {
            return Err(REFUSED);
        };
        if position.is_start() {
            self.lose_open_message(env);
        } else if !in_order || !self.assembly.is_continued_by(&packet.operation) {
            return Err(LOST);
        }
        check_length(position, packet.payload.len(), connection.mtu.bytes())?;
        match packet.operation {
            Operation::Write { reth, immediate, .. } => {
                self.on_write(connection, env, packet, position, reth, immediate)
            }
            _ => self.on_send(connection, env, packet, position),
        }
    }

    /// A message starts while another is open: the rest of that one was lost.
    fn lose_open_message(&mut self, env: &mut Env<'_>) {
        if self.assembly != Assembly::Idle {
            env.counters.add(Counter::LostMessage);
            self.give_up();
        }
    }

    fn give_up(&mut self) {
        self.assembly = Assembly::Idle;
        self.receives.give_up();
    }

    fn on_send(
        &mut self,
        connection: &Connection,
        env: &mut Env<'_>,
        packet: &Packet<'_>,
        position: Position,
    ) -> Result<(), Refusal> {
        let placed = match self.assembly {
            Assembly::Send { placed } => placed,
            _ => self.take_receive(env)?,
        };
        let total = placed + packet.payload.len() as u64;
        if total > self.receives.current().room() {
            return Err(Refusal::Drop(Counter::TooLong));
        }
        self.receives
            .place(connection, env, placed, packet.payload)
            .map_err(|_| Refusal::Fatal(WcStatus::LocProtErr))?;
        self.assembly = Assembly::Send { placed: total };
        if position.is_end() {
            env.counters.add(Counter::RdmaRecvs);
            self.finish(connection, env, packet, total as u32);
        }
        Ok(())
    }

    fn take_receive(&mut self, env: &mut Env<'_>) -> Result<u64, Refusal> {
        if self.receives.take(env) { Ok(0) } else { Err(Refusal::Drop(Counter::NoReceive)) }
    }

    fn on_write(
        &mut self,
        connection: &Connection,
        env: &mut Env<'_>,
        packet: &Packet<'_>,
        position: Position,
        reth: Option<Reth>,
        immediate: Option<u32>,
    ) -> Result<(), Refusal> {
        let target = self.write_target(connection, env, reth)?;
        let len = packet.payload.len();
        let behind = target.behind(len, position).ok_or(REFUSED)?;
        if immediate.is_some() {
            self.take_receive(env)?;
        }
        if len != 0 {
            env.memory
                .write_remote(connection.subject(), target.next, packet.payload)
                .map_err(|_| REFUSED)?;
        }
        self.assembly = Assembly::Write(behind);
        if immediate.is_some() {
            self.finish(connection, env, packet, target.total);
        } else if position.is_end() {
            self.assembly = Assembly::Idle;
        }
        Ok(())
    }

    fn write_target(
        &self,
        connection: &Connection,
        env: &mut Env<'_>,
        reth: Option<Reth>,
    ) -> Result<Target, Refusal> {
        if let Assembly::Write(target) = self.assembly {
            return Ok(target);
        }
        env.counters.add(Counter::RxWriteRequests);
        let reth = reth.ok_or(REFUSED)?;
        if !connection.access.contains(Access::REMOTE_WRITE) {
            return Err(REFUSED);
        }
        let remote = RemoteAddr { va: reth.va, rkey: reth.rkey };
        if reth.length != 0 {
            let length = u64::from(reth.length);
            env.memory
                .check_remote(connection.subject(), remote, length, Access::REMOTE_WRITE)
                .map_err(|_| REFUSED)?;
        }
        Ok(Target::new(remote, reth.length))
    }

    fn finish(&mut self, connection: &Connection, env: &mut Env<'_>, packet: &Packet<'_>, byte_len: u32) {
        self.assembly = Assembly::Idle;
        let (immediate, opcode) = match packet.operation {
            Operation::Write { immediate, .. } => (immediate, WcOpcode::RecvRdmaWithImm),
            Operation::Send { immediate, .. } => (immediate, WcOpcode::Recv),
            _ => (None, WcOpcode::Recv),
        };
        let completion = Completion {
            opcode,
            byte_len,
            immediate,
            qp_num: connection.number,
            src_qp: connection.peer,
            flags: if immediate.is_some() { WcFlags::GRH | WcFlags::WITH_IMM } else { WcFlags::GRH },
            ..Completion::default()
        };
        self.receives.finish(connection, env, completion, packet.bth.solicited, packet.bth.psn);
        self.receives.release(env, None);
    }
}

fn check_length(position: Position, len: usize, mtu: usize) -> Result<(), Refusal> {
    if position.admits(len, mtu) { Ok(()) } else { Err(REFUSED) }
}
