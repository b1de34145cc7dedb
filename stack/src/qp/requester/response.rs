//! What the peer's responses mean (IBTA, requester: inbound response packets).

use super::super::connection::{Connection, position};
use super::super::env::Env;
use super::super::sends::Failure;
use super::Requester;
use crate::completion::WcStatus;
use crate::counters::Counter;
use crate::queue::SendSlot;
use crate::wire::{Aeth, NakCode, Operation, Packet, Payload, Position, Psn, Syndrome};
use crate::work::SendOp;

/// Whether an acknowledgement covered everything it claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Covered {
    All,
    /// It passes over a READ or atomic request that was not answered: an implied NAK.
    NotTheRead,
}

impl Requester {
    pub(crate) fn on_response(
        &mut self,
        connection: &Connection,
        env: &mut Env<'_>,
        packet: &Packet<'_>,
    ) -> Result<(), Failure> {
        let psn = packet.bth.psn;
        if psn.distance(self.una) < 0 || psn.distance(self.sent_end) >= 0 {
            env.counters.add(Counter::StaleResponse);
            return Ok(());
        }
        match packet.operation {
            Operation::Acknowledge(aeth) => self.on_acknowledge(connection, env, psn, aeth),
            Operation::AtomicAcknowledge { aeth, original } => {
                self.on_atomic(connection, env, psn, aeth, original)
            }
            Operation::ReadResponse { position, aeth } => {
                require_ack(aeth).or_else(|failure| bad_response(env, failure))?;
                self.on_data(connection, env, psn, position, packet.payload)
            }
            _ => bad_response(env, WcStatus::BadRespErr.into()),
        }
    }

    fn on_acknowledge(
        &mut self,
        connection: &Connection,
        env: &mut Env<'_>,
        psn: Psn,
        aeth: Aeth,
    ) -> Result<(), Failure> {
        match aeth.syndrome {
            Syndrome::Ack { .. } => self.cover_or_go_back(connection, env, psn.next()).map(drop),
            Syndrome::Rnr { timer } => {
                env.counters.add(Counter::RcvdRnrErr);
                match self.cover_or_go_back(connection, env, psn)? {
                    Covered::All => self.wait_for_receiver(env, timer),
                    Covered::NotTheRead => Ok(()),
                }
            }
            Syndrome::Nak(code) => match self.cover_or_go_back(connection, env, psn)? {
                Covered::All => self.on_nak(env, code),
                Covered::NotTheRead => Ok(()),
            },
            Syndrome::Reserved(_) => bad_response(env, WcStatus::BadRespErr.into()),
        }
    }

    fn on_nak(&mut self, env: &mut Env<'_>, code: NakCode) -> Result<(), Failure> {
        let (counter, status) = match code {
            NakCode::SequenceError => {
                env.counters.add(Counter::PacketSeqErr);
                // rxe sends one for the very packet that it has just refused for want of a receive.
                return if self.rnr_until.is_some() { Ok(()) } else { self.go_back_once(env) };
            }
            NakCode::InvalidRequest => (Counter::ReqRemoteInvalidRequest, WcStatus::RemInvReqErr),
            NakCode::RemoteAccessError => (Counter::ReqRemoteAccessErrors, WcStatus::RemAccessErr),
            NakCode::RemoteOperationalError | NakCode::InvalidRdRequest | NakCode::Reserved(_) => {
                (Counter::ReqRemoteOperationalErrors, WcStatus::RemOpErr)
            }
        };
        env.counters.add(counter);
        Err(Failure { status, syndrome: Syndrome::Nak(code).code() })
    }

    fn on_atomic(
        &mut self,
        connection: &Connection,
        env: &mut Env<'_>,
        psn: Psn,
        aeth: Aeth,
        original: u64,
    ) -> Result<(), Failure> {
        require_ack(Some(aeth)).or_else(|failure| bad_response(env, failure))?;
        if self.cover_or_go_back(connection, env, psn)? == Covered::NotTheRead {
            return Ok(());
        }
        let slot = self.answered(env, SendOp::is_atomic)?;
        let value = original.to_ne_bytes();
        place(connection, env, slot, 0, Payload { head: &value, rest: &[] })?;
        self.finish_read(connection, env, psn.next());
        Ok(())
    }

    /// The answer to a READ, or with no data in it to an ATOMIC WRITE or a FLUSH.
    fn on_data(
        &mut self,
        connection: &Connection,
        env: &mut Env<'_>,
        psn: Psn,
        found: Position,
        payload: Payload<'_>,
    ) -> Result<(), Failure> {
        if self.cover_or_go_back(connection, env, psn)? == Covered::NotTheRead {
            return Ok(());
        }
        let slot = self.answered(env, |op| op.is_answered() && !op.is_atomic())?;
        let progress = self.progress_of(self.oldest());
        let number = psn.distance(progress.first).unsigned_abs();
        let expected = connection.payload_len(response_len(slot), number);
        if !fits(found, position(number, progress.packets)) || payload.len() != expected {
            return bad_response(env, WcStatus::BadRespErr.into());
        }
        let offset = u64::from(number) * connection.mtu.bytes() as u64;
        place(connection, env, slot, offset, payload)?;
        self.una = psn.next();
        if number + 1 == progress.packets {
            self.finish_read(connection, env, progress.end());
        } else {
            self.made_progress(env.now);
        }
        Ok(())
    }

    /// The oldest work request, which everything before was covered for, when it is the kind that is answered so.
    fn answered(&self, env: &mut Env<'_>, kind: impl Fn(&SendOp) -> bool) -> Result<&SendSlot, Failure> {
        let oldest = self.oldest();
        let slot = (oldest < self.unstarted).then(|| self.sq.get(oldest)).filter(|slot| kind(&slot.op));
        slot.ok_or_else(|| {
            env.counters.add(Counter::BadRespErr);
            WcStatus::BadRespErr.into()
        })
    }

    fn finish_read(&mut self, connection: &Connection, env: &mut Env<'_>, end: Psn) {
        self.una = end;
        self.complete(connection, env, WcStatus::Success.into());
        self.retire_local(connection, env);
        self.made_progress(env.now);
    }

    /// Takes everything before `end` as acknowledged; when a READ or atomic request stands in between unanswered,
    /// it is sent again.
    fn cover_or_go_back(
        &mut self,
        connection: &Connection,
        env: &mut Env<'_>,
        end: Psn,
    ) -> Result<Covered, Failure> {
        let before = self.una;
        let covered = self.cover(connection, env, end);
        if self.una != before {
            self.made_progress(env.now);
        }
        if covered == Covered::NotTheRead {
            env.counters.add(Counter::ImpliedNakSeqErr);
            self.go_back_once(env)?;
        }
        Ok(covered)
    }

    fn cover(&mut self, connection: &Connection, env: &mut Env<'_>, end: Psn) -> Covered {
        while self.oldest() < self.unstarted && end.distance(self.una) > 0 {
            let oldest = self.oldest();
            if self.sq.get(oldest).op.is_answered() {
                return Covered::NotTheRead;
            }
            let last = self.progress_of(oldest).end();
            if end.distance(last) < 0 {
                self.una = end;
                break;
            }
            self.una = last;
            self.complete(connection, env, WcStatus::Success.into());
            self.retire_local(connection, env);
        }
        Covered::All
    }
}

/// Bytes of data in the answer to a request.
const fn response_len(slot: &SendSlot) -> u32 {
    if slot.op.returns_data() { slot.length } else { 0 }
}

/// Responses with data carry an ACK if they carry an AETH.
fn require_ack(aeth: Option<Aeth>) -> Result<(), Failure> {
    match aeth.map(|aeth| aeth.syndrome) {
        None | Some(Syndrome::Ack { .. }) => Ok(()),
        Some(_) => Err(WcStatus::BadRespErr.into()),
    }
}

fn bad_response(env: &mut Env<'_>, failure: Failure) -> Result<(), Failure> {
    env.counters.add(Counter::BadRespErr);
    Err(failure)
}

/// Whether a response's position suits its place: the first of all opens the data, the last of all ends it. A READ that
/// was asked for again from the middle on may be answered with FIRST or ONLY, as a new READ, or with MIDDLE or LAST, as
/// rxe does.
const fn fits(found: Position, expected: Position) -> bool {
    found.is_end() == expected.is_end() && (found.is_start() || !expected.is_start())
}

fn place(
    connection: &Connection,
    env: &mut Env<'_>,
    slot: &SendSlot,
    offset: u64,
    payload: Payload<'_>,
) -> Result<(), Failure> {
    env.memory.scatter(connection.pd, slot.sges(), offset, payload).map_err(|_| {
        env.counters.add(Counter::ReqLocalProtErr);
        WcStatus::LocProtErr.into()
    })
}
