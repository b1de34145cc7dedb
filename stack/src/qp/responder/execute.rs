//! Carrying out requests that are in order (section 5.2, steps 4 to 10).

use super::super::assembly::{Assembly, Target};
use super::super::connection::Connection;
use super::super::env::Env;
use super::receive::Ending;
use super::response::Response;
use super::{Answer, Fatal, Refusal, Resource, Responder, check_length, flush_rights};
use crate::access::Access;
use crate::completion::WcStatus;
use crate::counters::Counter;
use crate::memory::{AccessError, AtomicOp};
use crate::wire::{AtomicEth, Feth, NakCode, Operation, Packet, Position, Psn, Reth};
use crate::work::{FlushScope, RemoteAddr};

/// The longest message (IBTA, DMA length of the RETH).
const MAX_MESSAGE: u32 = 1 << 31;

/// A SEND that does not fit its receive.
const TOO_LONG: Refusal =
    Refusal::Fatal(Fatal { code: NakCode::InvalidRequest, receive: WcStatus::LocLenErr });

/// A receive whose own memory is not ours to write.
const BAD_RECEIVE: Refusal =
    Refusal::Fatal(Fatal { code: NakCode::RemoteOperationalError, receive: WcStatus::LocProtErr });

/// A SEND with invalidate whose key is not one that may be invalidated (IBTA, responder error of class J).
const BAD_INVALIDATE: Refusal =
    Refusal::Fatal(Fatal { code: NakCode::RemoteOperationalError, receive: WcStatus::RemInvReqErr });

impl From<AccessError> for Refusal {
    fn from(error: AccessError) -> Self {
        match error {
            AccessError::Refused => Self::ACCESS,
            AccessError::Misaligned => Self::INVALID,
        }
    }
}

impl Responder {
    pub(super) fn execute(
        &mut self,
        connection: &Connection,
        env: &mut Env<'_>,
        packet: &Packet<'_>,
    ) -> Result<(), Refusal> {
        match packet.operation {
            Operation::Send { position, immediate, invalidate } => {
                let ending = Ending { byte_len: 0, immediate, invalidated_rkey: invalidate };
                self.on_send(connection, env, packet, position, ending)
            }
            Operation::Write { position, reth, immediate } => {
                self.on_write(connection, env, packet, position, reth, immediate)
            }
            Operation::ReadRequest(reth) => self.on_read(connection, env, packet.bth.psn, reth),
            Operation::CompareSwap(eth) => {
                let op = AtomicOp::CompareSwap { compare: eth.compare, swap: eth.swap_or_add };
                self.on_atomic(env, packet.bth.psn, eth, op)
            }
            Operation::FetchAdd(eth) => {
                let op = AtomicOp::FetchAdd { add: eth.swap_or_add };
                self.on_atomic(env, packet.bth.psn, eth, op)
            }
            Operation::AtomicWrite(reth) => self.on_atomic_write(env, packet, &reth),
            Operation::Flush { feth, reth } => self.on_flush(env, packet.bth.psn, feth, &reth),
            _ => Err(Refusal::INVALID),
        }
    }

    fn on_send(
        &mut self,
        connection: &Connection,
        env: &mut Env<'_>,
        packet: &Packet<'_>,
        position: Position,
        ending: Ending,
    ) -> Result<(), Refusal> {
        let placed = match self.assembly {
            Assembly::Send { placed } => placed,
            _ => self.take_receive(env).map(|()| 0)?,
        };
        self.assembly = Assembly::Send { placed };
        check_length(position, packet.payload.len(), connection.mtu.bytes())?;
        let total = self.place(connection, env, packet, placed)?;
        if let Some(rkey) = ending.invalidated_rkey {
            env.memory.invalidate(self.subject, rkey).map_err(|_| BAD_INVALIDATE)?;
        }
        self.assembly = Assembly::Send { placed: total };
        self.advance(1);
        if position.is_end() {
            env.counters.add(Counter::RdmaRecvs);
            let ending = Ending { byte_len: total as u32, ..ending };
            self.finish_receive(connection, env, packet, ending);
        }
        self.acknowledge(packet);
        Ok(())
    }

    /// Puts the payload of a SEND behind the `placed` bytes that its receive holds; tells how many it holds then.
    fn place(
        &self,
        connection: &Connection,
        env: &mut Env<'_>,
        packet: &Packet<'_>,
        placed: u64,
    ) -> Result<u64, Refusal> {
        let total = placed + packet.payload.len() as u64;
        if total > self.receives.current().room() {
            env.counters.add(Counter::RespLocalErr);
            return Err(TOO_LONG);
        }
        self.receives.place(connection, env, placed, packet.payload).map_err(|_| {
            env.counters.add(Counter::RespLocalErr);
            BAD_RECEIVE
        })?;
        Ok(total)
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
        if immediate.is_some() && !self.receives.is_posted(env) {
            return Err(Refusal::NotReady);
        }
        let len = packet.payload.len();
        check_length(position, len, connection.mtu.bytes())?;
        let target = self.write_target(env, reth)?;
        let behind = target.behind(len, position).ok_or(Refusal::INVALID)?;
        if len != 0 {
            env.memory.write_remote(self.subject, target.next, packet.payload)?;
        }
        self.assembly = Assembly::Write(behind);
        self.advance(1);
        if position.is_end() {
            self.finish_write(connection, env, packet, target.total, immediate);
        }
        self.acknowledge(packet);
        Ok(())
    }

    fn write_target(&self, env: &mut Env<'_>, reth: Option<Reth>) -> Result<Target, Refusal> {
        if let Assembly::Write(target) = self.assembly {
            return Ok(target);
        }
        env.counters.add(Counter::RxWriteRequests);
        let reth = reth.ok_or(Refusal::INVALID)?;
        let remote = self.check_reth(env, &reth, Access::REMOTE_WRITE)?;
        Ok(Target::new(remote, reth.length))
    }

    fn finish_write(
        &mut self,
        connection: &Connection,
        env: &mut Env<'_>,
        packet: &Packet<'_>,
        total: u32,
        immediate: Option<u32>,
    ) {
        self.assembly = Assembly::Idle;
        if immediate.is_some() && self.receives.take(env) {
            let ending = Ending { byte_len: total, immediate, invalidated_rkey: None };
            self.finish_receive(connection, env, packet, ending);
        } else {
            self.message_done();
        }
    }

    fn on_read(
        &mut self,
        connection: &Connection,
        env: &mut Env<'_>,
        psn: Psn,
        reth: Reth,
    ) -> Result<(), Refusal> {
        env.counters.add(Counter::RxReadRequests);
        self.check_depth()?;
        let remote = self.check_reth(env, &reth, Access::REMOTE_READ)?;
        let packets = connection.packets(reth.length);
        let by = self.subject;
        let answer = Answer::Read { by, remote, length: reth.length };
        self.answer(Resource { first: psn, packets, answer });
        self.responses.push(Response::Read {
            first: psn,
            sent: 0,
            packets,
            by,
            remote,
            length: reth.length,
            msn: self.msn,
            replay: false,
        });
        Ok(())
    }

    fn on_atomic(
        &mut self,
        env: &mut Env<'_>,
        psn: Psn,
        eth: AtomicEth,
        op: AtomicOp,
    ) -> Result<(), Refusal> {
        env.counters.add(Counter::RxAtomicRequests);
        self.check_depth()?;
        let remote = RemoteAddr { va: eth.va, rkey: eth.rkey };
        let original = env.memory.atomic(self.subject, remote, op)?;
        self.answer(Resource { first: psn, packets: 1, answer: Answer::Atomic { original } });
        self.responses.push(Response::Atomic { psn, original, msn: self.msn, replay: false });
        Ok(())
    }

    fn on_atomic_write(
        &mut self,
        env: &mut Env<'_>,
        packet: &Packet<'_>,
        reth: &Reth,
    ) -> Result<(), Refusal> {
        env.counters.add(Counter::RxAtomicWriteRequests);
        self.check_depth()?;
        let Some(value) = packet.payload.to_word().filter(|_| reth.length == 8) else {
            return Err(Refusal::INVALID);
        };
        env.memory.atomic_write(self.subject, RemoteAddr { va: reth.va, rkey: reth.rkey }, value)?;
        let psn = packet.bth.psn;
        self.answer(Resource { first: psn, packets: 1, answer: Answer::Written });
        self.responses.push(Response::Done { psn, msn: self.msn, depth: true, replay: false });
        Ok(())
    }

    /// Every byte that was written before is where everybody sees it: writes are done when they are taken.
    fn on_flush(&mut self, env: &mut Env<'_>, psn: Psn, feth: Feth, reth: &Reth) -> Result<(), Refusal> {
        env.counters.add(Counter::RxFlushRequests);
        let remote = RemoteAddr { va: reth.va, rkey: reth.rkey };
        let scope = if feth.selectivity == Feth::REGION { FlushScope::Region } else { FlushScope::Range };
        let rights = flush_rights(feth)?;
        env.memory.check_flush(self.subject, remote, u64::from(reth.length), scope, rights)?;
        self.advance(1);
        self.message_done();
        self.responses.push(Response::Done { psn, msn: self.msn, depth: false, replay: false });
        Ok(())
    }

    /// A peer that has more READs and atomics unanswered than we agreed on breaks the protocol.
    fn check_depth(&self) -> Result<(), Refusal> {
        if self.responses.unanswered() >= usize::from(self.settings.max_dest_rd_atomic) {
            return Err(Refusal::INVALID);
        }
        Ok(())
    }

    /// Remembers an answer for as long as the peer may ask for it again, and counts the message.
    fn answer(&mut self, resource: Resource) {
        if self.resources.len() == usize::from(self.settings.max_dest_rd_atomic) {
            self.resources.pop_front();
        }
        self.resources.push_back(resource);
        self.advance(resource.packets);
        self.message_done();
    }

    fn acknowledge(&mut self, packet: &Packet<'_>) {
        self.newest_data = packet.bth.psn;
        if packet.bth.ack_request {
            self.responses.acknowledge(packet.bth.psn, self.msn);
        }
    }

    /// Checks the whole range that a request names. With no length there is nothing to check, not even the key.
    fn check_reth(&self, env: &Env<'_>, reth: &Reth, rights: Access) -> Result<RemoteAddr, Refusal> {
        if reth.length > MAX_MESSAGE {
            return Err(Refusal::INVALID);
        }
        let remote = RemoteAddr { va: reth.va, rkey: reth.rkey };
        if reth.length != 0 {
            env.memory.check_remote(self.subject, remote, u64::from(reth.length), rights)?;
        }
        Ok(remote)
    }
}
