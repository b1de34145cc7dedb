//! Building request packets, one for each frame that there is.

use super::super::connection::{Connection, Header, position};
use super::super::env::Env;
use super::super::sends::{
    Failure, Transmit, check_keys, copy_data, data_operation, is_solicited, protection_error, reth, run_local,
};
use super::{Cursor, Progress, Requester};
use crate::completion::WcStatus;
use crate::counters::Counter;
use crate::queue::SendSlot;
use crate::wire::{AtomicEth, Feth, Operation, Psn};
use crate::work::{FlushPlacement, FlushScope, RemoteAddr, SendFlags, SendOp};

/// An acknowledgement is asked for at least every this many packets.
const ACK_INTERVAL: u32 = 64;

impl Requester {
    /// Fills `frame` with the next request packet, if there is one.
    pub(crate) fn poll_transmit(
        &mut self,
        connection: &mut Connection,
        env: &mut Env<'_>,
        frame: &mut [u8],
    ) -> Transmit {
        if let Some(failure) = self.due_failure() {
            return Transmit::Failed(failure);
        }
        if self.must_be_silent() || self.is_stopped_here() || !self.has_request(connection, env) {
            return self.due_failure().map_or(Transmit::Idle, Transmit::Failed);
        }
        if self.sq.get(self.cursor.wqe).op.is_answered() {
            self.send_request(connection, env, frame)
        } else {
            self.send_data(connection, env, frame)
        }
    }

    /// The peer asked to wait, or was asked whether it is there.
    fn must_be_silent(&self) -> bool {
        self.rnr_until.is_some() || (self.is_probing() && self.cursor != self.oldest_packet())
    }

    /// A work request that cannot be sent fails when it has become the oldest.
    fn due_failure(&self) -> Option<Failure> {
        let (wqe, status) = self.stopped?;
        (wqe == self.oldest()).then(|| status.into())
    }

    fn is_stopped_here(&self) -> bool {
        self.stopped.is_some_and(|(wqe, _)| wqe == self.cursor.wqe)
    }

    /// Whether a started work request stands at the cursor, or one could be started. Local operations on the way are
    /// carried out.
    fn has_request(&mut self, connection: &Connection, env: &mut Env<'_>) -> bool {
        loop {
            if self.cursor.wqe == self.unstarted && !self.start_next(connection, env) {
                return false;
            }
            if !self.sq.get(self.cursor.wqe).op.is_local() {
                return true;
            }
            self.cursor = Cursor { wqe: self.cursor.wqe + 1, packet: 0 };
            self.retire_local(connection, env);
        }
    }

    /// Starts the work request at the cursor, if there is one that may start.
    fn start_next(&mut self, connection: &Connection, env: &mut Env<'_>) -> bool {
        let nothing = self.cursor.wqe == self.sq.refresh();
        if self.draining || nothing || self.is_stopped_here() || self.must_wait(connection) {
            return false;
        }
        match self.check_start(connection, env) {
            Ok(()) => self.start(connection),
            Err(status) => self.stop(status),
        }
        self.cursor.wqe < self.unstarted
    }

    /// Fences, the limit of outstanding READs and atomics, and the PSN space hold a work request back.
    fn must_wait(&self, connection: &Connection) -> bool {
        let slot = self.sq.get(self.cursor.wqe);
        if slot.flags.contains(SendFlags::FENCE) && self.reads_in_flight > 0 {
            return true;
        }
        // Nothing that was posted before may still use the key (IBTA 10.6.5.1, local invalidate fence).
        if matches!(slot.op, SendOp::LocalInvalidate { .. }) && self.oldest() < self.cursor.wqe {
            return true;
        }
        let limit = u32::from(self.settings.max_rd_atomic);
        if slot.op.takes_depth() && limit != 0 && self.reads_in_flight >= limit {
            return true;
        }
        // What can never fit is refused by `check_start`; here the space is only taken.
        let outstanding = self.next_psn.distance(self.una).unsigned_abs();
        outstanding != 0 && outstanding + psns(slot, connection) > Psn::MAX_AHEAD.unsigned_abs()
    }

    /// Checks a work request before its first packet; a local operation is carried out.
    fn check_start(&self, connection: &Connection, env: &mut Env<'_>) -> Result<(), WcStatus> {
        let slot = self.sq.get(self.cursor.wqe);
        if slot.op.is_local() {
            return run_local(connection, env, &slot.op);
        }
        if slot.op.takes_depth() && self.settings.max_rd_atomic == 0 {
            return Err(WcStatus::LocQpOpErr);
        }
        // The answer to 2^31 bytes in packets of 256 takes half of all PSNs: one too many to tell new from old.
        if slot.op.is_answered() && psns(slot, connection) > Psn::MAX_AHEAD.unsigned_abs() {
            return Err(WcStatus::LocLenErr);
        }
        check_keys(connection, env, slot)
    }

    fn start(&mut self, connection: &Connection) {
        let wqe = self.cursor.wqe;
        let packets = psns(self.sq.get(wqe), connection);
        self.progress[self.sq.place(wqe)] = Progress { first: self.next_psn, packets };
        self.next_psn = self.next_psn + packets;
        self.unstarted = wqe + 1;
    }

    const fn stop(&mut self, status: WcStatus) {
        self.stopped = Some((self.cursor.wqe, status));
    }

    /// A packet of a SEND or WRITE.
    fn send_data(&mut self, connection: &mut Connection, env: &mut Env<'_>, frame: &mut [u8]) -> Transmit {
        let Cursor { wqe, packet } = self.cursor;
        let progress = self.progress_of(wqe);
        let psn = progress.first + packet;
        let ahead = psn.distance(self.window_base).unsigned_abs();
        if ahead >= self.window {
            return Transmit::Idle;
        }
        let last = packet + 1 == progress.packets;
        let interval = if self.is_probing() { 1 } else { ACK_INTERVAL };
        let ack_request = last || self.unasked + 1 >= interval || ahead + 1 == self.window;
        let slot = self.sq.get(wqe);
        let Some(operation) = data_operation(slot, position(packet, progress.packets)) else {
            unreachable!("what is answered is sent by send_request, what is local by nobody")
        };
        let solicited = last && is_solicited(slot);
        let header = Header { psn, operation, ack_request, solicited, srqn: Some(slot.srqn()) };
        let (pd, memory) = (connection.pd, &*env.memory);
        let offset = u64::from(packet) * connection.mtu.bytes() as u64;
        let payload_len = connection.payload_len(slot.length, packet);
        let emitted = connection
            .emit(frame, &header, payload_len, |out, crc| copy_data(memory, pd, slot, offset, out, crc));
        let Some(len) = emitted else { return self.cannot_emit(env) };
        if last && matches!(operation, Operation::Send { .. }) && psn == self.sent_end {
            env.counters.add(Counter::RdmaSends);
        }
        self.unasked = if ack_request { 0 } else { self.unasked + 1 };
        self.cursor =
            if last { Cursor { wqe: wqe + 1, packet: 0 } } else { Cursor { wqe, packet: packet + 1 } };
        self.sent(env, psn, psn.next());
        Transmit::Frame(len)
    }

    /// The one request packet of what is answered: a READ, an atomic operation, an ATOMIC WRITE, a FLUSH.
    fn send_request(&mut self, connection: &mut Connection, env: &mut Env<'_>, frame: &mut [u8]) -> Transmit {
        let wqe = self.cursor.wqe;
        let progress = self.progress_of(wqe);
        let psn = self.first_unanswered(&progress);
        let answered = psn.distance(progress.first).unsigned_abs();
        let slot = self.sq.get(wqe);
        let operation = data_request(slot, answered, connection);
        let header = Header { psn, operation, ack_request: true, solicited: false, srqn: Some(slot.srqn()) };
        let emitted = if matches!(operation, Operation::AtomicWrite(_)) {
            let (pd, memory) = (connection.pd, &*env.memory);
            connection.emit(frame, &header, 8, |out, crc| copy_data(memory, pd, slot, 0, out, crc))
        } else {
            connection.emit_bare(frame, &header)
        };
        let depth = u32::from(slot.op.takes_depth());
        let Some(len) = emitted else { return self.cannot_emit(env) };
        self.unasked = 0;
        self.reads_in_flight += depth;
        self.window_base = progress.end();
        self.cursor = Cursor { wqe: wqe + 1, packet: 0 };
        self.sent(env, psn, progress.end());
        Transmit::Frame(len)
    }

    /// The PSN of the first response that is missing.
    fn first_unanswered(&self, progress: &Progress) -> Psn {
        if self.una.distance(progress.first) > 0 && self.una.distance(progress.end()) < 0 {
            self.una
        } else {
            progress.first
        }
    }

    /// The payload could not be read: a key was revoked after the message had started.
    fn cannot_emit(&mut self, env: &mut Env<'_>) -> Transmit {
        let status = protection_error(env);
        self.stop(status);
        self.due_failure().map_or(Transmit::Idle, Transmit::Failed)
    }

    fn sent(&mut self, env: &mut Env<'_>, psn: Psn, end: Psn) {
        if psn.distance(self.sent_end) < 0 {
            env.counters.add(Counter::RetransmittedPkts);
        }
        if end.distance(self.sent_end) > 0 {
            self.sent_end = end;
        }
        if self.ack_deadline.is_none() {
            self.restart_timer(env.now);
        }
    }
}

/// PSNs that a work request takes.
fn psns(slot: &SendSlot, connection: &Connection) -> u32 {
    match slot.op {
        _ if slot.op.is_local() => 0,
        SendOp::AtomicWrite { .. } | SendOp::Flush { .. } => 1,
        _ if slot.op.is_atomic() => 1,
        _ => connection.packets(slot.length),
    }
}

/// The request for a READ's responses from number `answered` on, or for an atomic operation.
fn data_request(slot: &SendSlot, answered: u32, connection: &Connection) -> Operation {
    match slot.op {
        SendOp::CompareSwap { remote, compare, swap } => {
            Operation::CompareSwap(AtomicEth { va: remote.va, rkey: remote.rkey, swap_or_add: swap, compare })
        }
        SendOp::FetchAdd { remote, add } => {
            Operation::FetchAdd(AtomicEth { va: remote.va, rkey: remote.rkey, swap_or_add: add, compare: 0 })
        }
        SendOp::Read { remote } => {
            let done = answered * connection.mtu.bytes() as u32;
            let rest = RemoteAddr { va: remote.va.wrapping_add(u64::from(done)), rkey: remote.rkey };
            Operation::ReadRequest(reth(rest, slot.length - done))
        }
        SendOp::AtomicWrite { remote } => Operation::AtomicWrite(reth(remote, slot.length)),
        SendOp::Flush { remote, length, placement, scope } => {
            Operation::Flush { feth: feth(placement, scope), reth: reth(remote, length) }
        }
        _ => unreachable!("SEND and WRITE are sent by send_data, and what is local by nobody"),
    }
}

const fn feth(placement: FlushPlacement, scope: FlushScope) -> Feth {
    let placement = match placement {
        FlushPlacement::Global => Feth::GLOBAL,
        FlushPlacement::Persistent => Feth::PERSISTENT,
    };
    let selectivity = match scope {
        FlushScope::Range => Feth::RANGE,
        FlushScope::Region => Feth::REGION,
    };
    Feth { placement, selectivity }
}
