//! Sending without acknowledgement: UC and UD (protocol sections 4.11 and 4.12).

use super::super::attr::QpAttr;
use super::super::connection::{Connection, Header, position};
use super::super::env::Env;
use super::super::sends::{
    Failure, Transmit, check_keys, complete, copy_data, data_operation, is_solicited, protection_error,
    run_local,
};
use crate::completion::WcStatus;
use crate::counters::Counter;
use crate::queue::{Consumer, SendSlot};
use crate::wire::{Operation, Psn};

/// The sending half of an unreliable queue pair.
#[derive(Debug)]
pub(crate) struct UnreliableRequester {
    sq: Consumer<SendSlot>,
    /// Packets of the oldest work request that have left.
    sent: u32,
    next_psn: Psn,
    sq_psn: Psn,
    draining: bool,
}

impl UnreliableRequester {
    pub(crate) fn new(sq: Consumer<SendSlot>) -> Self {
        Self { sq, sent: 0, next_psn: Psn::default(), sq_psn: Psn::default(), draining: false }
    }

    pub(crate) fn apply(&mut self, attr: &QpAttr) {
        if let Some(psn) = attr.sq_psn {
            (self.sq_psn, self.next_psn) = (psn, psn);
        }
    }

    pub(crate) const fn sq_psn(&self) -> Psn {
        self.sq_psn
    }

    /// SQD: start nothing new; or start again.
    pub(crate) const fn set_draining(&mut self, draining: bool) {
        self.draining = draining;
    }

    /// Whether everything that was started has completed.
    pub(crate) const fn is_drained(&self) -> bool {
        self.sent == 0
    }

    /// Fills `frame` with the next packet, if there is one. Local operations on the way are carried out.
    pub(crate) fn poll_transmit(
        &mut self,
        connection: &mut Connection,
        env: &mut Env<'_>,
        frame: &mut [u8],
    ) -> Transmit {
        while self.has_request() {
            let slot = self.sq.get(self.sq.head());
            if !slot.op.is_local() {
                return self.send(connection, env, frame);
            }
            if let Err(status) = run_local(connection, env, &slot.op) {
                return Transmit::Failed(status.into());
            }
            self.finish(connection, env, WcStatus::Success.into());
        }
        Transmit::Idle
    }

    fn has_request(&mut self) -> bool {
        self.sent != 0 || (!self.draining && self.sq.head() < self.sq.refresh())
    }

    fn send(&mut self, connection: &mut Connection, env: &mut Env<'_>, frame: &mut [u8]) -> Transmit {
        let slot = self.sq.get(self.sq.head());
        if self.sent == 0
            && let Err(status) = check_start(connection, env, slot)
        {
            return Transmit::Failed(status.into());
        }
        let packets = connection.packets(slot.length);
        let last = self.sent + 1 == packets;
        let Some(operation) = data_operation(slot, position(self.sent, packets)) else {
            return Transmit::Failed(WcStatus::LocQpOpErr.into());
        };
        let solicited = last && is_solicited(slot);
        let header = Header { psn: self.next_psn, operation, ack_request: false, solicited, srqn: None };
        let Some(len) = emit(connection, env, frame, &header, slot, self.sent) else {
            return Transmit::Failed(protection_error(env).into());
        };
        self.next_psn = self.next_psn.next();
        self.sent += 1;
        if last {
            if matches!(operation, Operation::Send { .. }) {
                env.counters.add(Counter::RdmaSends);
            }
            self.finish(connection, env, WcStatus::Success.into());
        }
        Transmit::Frame(len)
    }

    /// Ends the oldest work request, which completes whether signaled or not when it failed.
    pub(crate) fn fail_oldest(&mut self, connection: &Connection, env: &mut Env<'_>, failure: Failure) {
        if self.sq.head() < self.sq.refresh() {
            self.finish(connection, env, failure);
        }
    }

    /// Completes every work request that is left as flushed.
    pub(crate) fn flush(&mut self, connection: &Connection, env: &mut Env<'_>) {
        while self.sq.head() < self.sq.refresh() {
            self.finish(connection, env, WcStatus::WrFlushErr.into());
        }
    }

    /// Forgets every work request without a completion: a reset.
    pub(crate) fn discard(&mut self) {
        let end = self.sq.refresh();
        self.sq.release_to(end);
        (self.sent, self.draining) = (0, false);
    }

    fn finish(&mut self, connection: &Connection, env: &mut Env<'_>, end: Failure) {
        let head = self.sq.head();
        complete(connection, env, self.sq.get(head), end);
        self.sq.release_to(head + 1);
        self.sent = 0;
    }
}

/// A datagram is one packet; the rest is the same for all.
fn check_start(connection: &Connection, env: &mut Env<'_>, slot: &SendSlot) -> Result<(), WcStatus> {
    if connection.init.qp_type.is_datagram() && connection.packets(slot.length) > 1 {
        return Err(WcStatus::LocLenErr);
    }
    check_keys(connection, env, slot)
}

fn emit(
    connection: &mut Connection,
    env: &Env<'_>,
    frame: &mut [u8],
    header: &Header,
    slot: &SendSlot,
    packet: u32,
) -> Option<usize> {
    let (pd, memory) = (connection.pd, &*env.memory);
    let offset = u64::from(packet) * connection.mtu.bytes() as u64;
    let len = connection.payload_len(slot.length, packet);
    let fill = |out: &mut [u8], crc| copy_data(memory, pd, slot, offset, out, crc);
    if connection.init.qp_type.is_datagram() {
        connection.emit_datagram(frame, header, slot.datagram()?, len, fill)
    } else {
        connection.emit(frame, header, len, fill)
    }
}
