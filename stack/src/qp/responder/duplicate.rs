//! Requests that arrive again: answered again, never carried out again (IBTA, responder: duplicate requests).

use super::super::connection::Connection;
use super::super::env::Env;
use super::response::Response;
use super::{Answer, Refusal, Resource, Responder};
use crate::counters::Counter;
use crate::wire::{Operation, Packet, Psn, Reth};
use crate::work::RemoteAddr;

const DROP: Refusal = Refusal::Drop(Counter::DuplicateDropped);

impl Responder {
    /// Errors of a duplicate are never reported.
    pub(super) fn on_duplicate(
        &mut self,
        connection: &Connection,
        env: &mut Env<'_>,
        packet: &Packet<'_>,
    ) -> Result<(), Refusal> {
        env.counters.add(Counter::DuplicateRequest);
        let psn = packet.bth.psn;
        match packet.operation {
            Operation::ReadRequest(reth) => self.replay_read(connection, psn, &reth),
            Operation::CompareSwap(_) | Operation::FetchAdd(_) | Operation::AtomicWrite(_) => {
                self.replay_atomic(psn)
            }
            // To flush once more changes nothing, and nothing is kept of the first.
            Operation::Flush { .. } => {
                self.replay(Response::Done { psn, msn: self.msn, depth: false, replay: true })
            }
            _ => {
                // The newest covers every older one.
                self.responses.acknowledge(self.newest_data, self.msn);
                Ok(())
            }
        }
    }

    fn replay_read(&mut self, connection: &Connection, psn: Psn, reth: &Reth) -> Result<(), Refusal> {
        let resource = self.resource(psn).ok_or(DROP)?;
        let Answer::Read { by, remote, length } = resource.answer else { return Err(DROP) };
        let number = psn.distance(resource.first).unsigned_abs();
        let skipped = u64::from(number) * connection.mtu.bytes() as u64;
        if !is_tail(reth, remote, length, skipped) {
            return Err(DROP);
        }
        if self.responses.will_answer(psn) {
            return Ok(());
        }
        let packets = resource.packets - number;
        let remote = RemoteAddr { va: reth.va, rkey: reth.rkey };
        // The peer asks for everything that follows again as well, and may be told of a gap again.
        self.reported = false;
        let (length, msn) = (reth.length, self.msn);
        let first = psn;
        let again = Response::Read { first, sent: 0, packets, by, remote, length, msn, replay: true };
        self.responses.restart(psn, again);
        Ok(())
    }

    fn replay_atomic(&mut self, psn: Psn) -> Result<(), Refusal> {
        let resource = self.resource(psn).ok_or(DROP)?;
        let msn = self.msn;
        self.replay(match resource.answer {
            Answer::Atomic { original } => Response::Atomic { psn, original, msn, replay: true },
            Answer::Written => Response::Done { psn, msn, depth: true, replay: true },
            Answer::Read { .. } => return Err(DROP),
        })
    }

    /// Answers once more, unless the answer is on its way already.
    fn replay(&mut self, response: Response) -> Result<(), Refusal> {
        if self.responses.will_answer(response.next_psn()) {
            return Ok(());
        }
        if !self.responses.has_room() {
            return Err(DROP);
        }
        self.responses.push(response);
        Ok(())
    }

    /// The newest that holds `psn`: one that was kept for 2^24 packets holds it again.
    fn resource(&self, psn: Psn) -> Option<Resource> {
        let holds = |resource: &&Resource| {
            let number = psn.distance(resource.first);
            number >= 0 && number.unsigned_abs() < resource.packets
        };
        self.resources.iter().rev().find(holds).copied()
    }
}

/// Whether a READ asks for what is left of one that was answered when its first `skipped` bytes are, with the same key.
/// Nothing here can wrap.
fn is_tail(reth: &Reth, remote: RemoteAddr, length: u32, skipped: u64) -> bool {
    reth.rkey == remote.rkey
        && reth.va.checked_sub(remote.va) == Some(skipped)
        && skipped + u64::from(reth.length) == u64::from(length)
}
