//! Carrying out requests that are in order (section 5.2, steps 4 to 10).

use super::super::connection::Connection;
use super::super::env::Env;
use super::response::Response;
use super::{Answer, Assembly, Fatal, Refusal, Resource, Responder, check_length};
use crate::access::Access;
use crate::completion::WcStatus;
use crate::counters::Counter;
use crate::memory::{AccessError, AtomicOp};
use crate::wire::{AtomicEth, NakCode, Operation, Packet, Position, Psn, Reth};
use crate::work::RemoteAddr;

/// The longest message (IBTA, DMA length of the RETH).
const MAX_MESSAGE: u32 = 1 << 31;

/// A SEND that does not fit its receive.
const TOO_LONG: Refusal =
    Refusal::Fatal(Fatal { code: NakCode::InvalidRequest, receive: WcStatus::LocLenErr });

/// A receive whose own memory is not ours to write.
const BAD_RECEIVE: Refusal =
    Refusal::Fatal(Fatal { code: NakCode::RemoteOperationalError, receive: WcStatus::LocProtErr });

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
            Operation::Send { position, immediate, .. } => {
                self.on_send(connection, env, packet, position, immediate)
            }
            Operation::Write { position, reth, immediate } => {
                self.on_write(connection, env, packet, position, reth, immediate)
            }
            Operation::ReadRequest(reth) => self.on_read(connection, env, packet.bth.psn, reth),
            Operation::CompareSwap(eth) => {
                let op = AtomicOp::CompareSwap { compare: eth.compare, swap: eth.swap_or_add };
                self.on_atomic(connection, env, packet.bth.psn, eth, op)
            }
            Operation::FetchAdd(eth) => {
                let op = AtomicOp::FetchAdd { add: eth.swap_or_add };
                self.on_atomic(connection, env, packet.bth.psn, eth, op)
            }
            _ => Err(Refusal::INVALID),
        }
    }

    fn on_send(
        &mut self,
        connection: &Connection,
        env: &mut Env<'_>,
        packet: &Packet<'_>,
        position: Position,
        immediate: Option<u32>,
    ) -> Result<(), Refusal> {
        let placed = match self.assembly {
            Assembly::Send { placed } => placed,
            _ => self.take_receive(Assembly::Send { placed: 0 })?,
        };
        check_length(position, packet.payload.len(), connection.mtu.bytes())?;
        let receive = self.rq.get(self.next_receive);
        let total = placed + packet.payload.len() as u64;
        if total > receive.room() {
            env.counters.add(Counter::RespLocalErr);
            return Err(TOO_LONG);
        }
        env.memory.scatter(connection.pd, receive.sges(), placed, packet.payload).map_err(|_| {
            env.counters.add(Counter::RespLocalErr);
            BAD_RECEIVE
        })?;
        self.assembly = Assembly::Send { placed: total };
        self.advance(1);
        if position.is_end() {
            env.counters.add(Counter::RdmaRecvs);
            self.finish_receive(connection, env, packet, total as u32, immediate);
        }
        self.acknowledge(packet);
        Ok(())
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
        if immediate.is_some() && !self.receive_is_posted() {
            return Err(Refusal::NotReady);
        }
        let len = packet.payload.len();
        check_length(position, len, connection.mtu.bytes())?;
        let (next, left, total) = self.write_target(connection, env, reth)?;
        // Every packet but the last leaves something to come, the last leaves nothing.
        let rest = left.checked_sub(len as u32).ok_or(Refusal::INVALID)?;
        if (rest == 0) != position.is_end() {
            return Err(Refusal::INVALID);
        }
        if len != 0 {
            env.memory.write_remote(connection.pd, next, packet.payload)?;
        }
        let next = RemoteAddr { va: next.va.wrapping_add(len as u64), rkey: next.rkey };
        self.assembly = Assembly::Write { next, left: rest, total };
        self.advance(1);
        if position.is_end() {
            self.finish_write(connection, env, packet, total, immediate);
        }
        self.acknowledge(packet);
        Ok(())
    }

    /// Where a WRITE packet goes, how much of the message is left, and how long it is as a whole.
    fn write_target(
        &self,
        connection: &Connection,
        env: &mut Env<'_>,
        reth: Option<Reth>,
    ) -> Result<(RemoteAddr, u32, u32), Refusal> {
        if let Assembly::Write { next, left, total } = self.assembly {
            return Ok((next, left, total));
        }
        env.counters.add(Counter::RxWriteRequests);
        let reth = reth.ok_or(Refusal::INVALID)?;
        let remote = check_reth(connection, env, &reth, Access::REMOTE_WRITE)?;
        Ok((remote, reth.length, reth.length))
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
        if immediate.is_some() {
            self.finish_receive(connection, env, packet, total, immediate);
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
        let remote = check_reth(connection, env, &reth, Access::REMOTE_READ)?;
        let packets = connection.packets(reth.length);
        let answer = Answer::Read { remote, length: reth.length };
        self.answer(Resource { first: psn, packets, answer });
        self.responses.push(Response::Read {
            first: psn,
            sent: 0,
            packets,
            remote,
            length: reth.length,
            msn: self.msn,
            replay: false,
        });
        Ok(())
    }

    fn on_atomic(
        &mut self,
        connection: &Connection,
        env: &mut Env<'_>,
        psn: Psn,
        eth: AtomicEth,
        op: AtomicOp,
    ) -> Result<(), Refusal> {
        env.counters.add(Counter::RxAtomicRequests);
        self.check_depth()?;
        let remote = RemoteAddr { va: eth.va, rkey: eth.rkey };
        let original = env.memory.atomic(connection.pd, remote, op)?;
        self.answer(Resource { first: psn, packets: 1, answer: Answer::Atomic { original } });
        self.responses.push(Response::Atomic { psn, original, msn: self.msn, replay: false });
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
}

/// Checks the whole range that a request names. With no length there is nothing to check, not even the key.
fn check_reth(
    connection: &Connection,
    env: &Env<'_>,
    reth: &Reth,
    rights: Access,
) -> Result<RemoteAddr, Refusal> {
    if reth.length > MAX_MESSAGE {
        return Err(Refusal::INVALID);
    }
    let remote = RemoteAddr { va: reth.va, rkey: reth.rkey };
    if reth.length != 0 {
        env.memory.check_remote(connection.pd, remote, u64::from(reth.length), rights)?;
    }
    Ok(remote)
}
