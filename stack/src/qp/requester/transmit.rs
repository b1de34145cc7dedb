//! Building request packets, one for each frame that there is.

use super::super::connection::{Connection, Header, position};
use super::super::env::Env;
use super::{Cursor, Failure, Progress, Requester};
use crate::access::Access;
use crate::completion::WcStatus;
use crate::counters::Counter;
use crate::memory::{AccessError, Crc, Memory};
use crate::queue::{SendData, SendSlot};
use crate::wire::{AtomicEth, Operation, Psn, Reth};
use crate::work::{RemoteAddr, SendFlags, SendOp};

/// An acknowledgement is asked for at least every this many packets.
const ACK_INTERVAL: u32 = 64;

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
        if self.sq.get(self.cursor.wqe).op.expects_data() {
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

    /// Whether a started work request stands at the cursor, or one could be started.
    fn has_request(&mut self, connection: &Connection, env: &mut Env<'_>) -> bool {
        if self.cursor.wqe < self.unstarted {
            return true;
        }
        if self.draining || self.cursor.wqe == self.sq.refresh() || self.must_wait(connection) {
            return false;
        }
        let checked = self.check_start(connection, env.memory);
        match checked {
            Ok(()) => self.start(connection),
            Err(status) => self.stop(env, status),
        }
        checked.is_ok()
    }

    /// Fences, the limit of outstanding READs and atomics, and the PSN space hold a work request back.
    fn must_wait(&self, connection: &Connection) -> bool {
        let slot = self.sq.get(self.cursor.wqe);
        if slot.flags.contains(SendFlags::FENCE) && self.reads_in_flight > 0 {
            return true;
        }
        let limit = u32::from(self.settings.max_rd_atomic);
        if slot.op.expects_data() && limit != 0 && self.reads_in_flight >= limit {
            return true;
        }
        // What can never fit is refused by `check_start`; here the space is only taken.
        let outstanding = self.next_psn.distance(self.una).unsigned_abs();
        outstanding != 0 && outstanding + psns(slot, connection) > Psn::MAX_AHEAD.unsigned_abs()
    }

    fn check_start(&self, connection: &Connection, memory: &Memory) -> Result<(), WcStatus> {
        let slot = self.sq.get(self.cursor.wqe);
        if slot.op.expects_data() && self.settings.max_rd_atomic == 0 {
            return Err(WcStatus::LocQpOpErr);
        }
        // The answer to 2^31 bytes in packets of 256 takes half of all PSNs: one too many to tell new from old.
        if slot.op.expects_data() && psns(slot, connection) > Psn::MAX_AHEAD.unsigned_abs() {
            return Err(WcStatus::LocLenErr);
        }
        let rights = if slot.op.expects_data() { Access::LOCAL_WRITE } else { Access::empty() };
        memory.check_local(connection.pd, slot.sges(), rights).map_err(|_| WcStatus::LocProtErr)
    }

    fn start(&mut self, connection: &Connection) {
        let wqe = self.cursor.wqe;
        let packets = psns(self.sq.get(wqe), connection);
        self.progress[self.sq.place(wqe)] = Progress { first: self.next_psn, packets };
        self.next_psn = self.next_psn + packets;
        self.unstarted = wqe + 1;
    }

    fn stop(&mut self, env: &mut Env<'_>, status: WcStatus) {
        if status == WcStatus::LocProtErr {
            env.counters.add(Counter::ReqLocalProtErr);
        }
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
        let header = Header {
            psn,
            operation: data_operation(slot, packet, progress.packets),
            ack_request,
            solicited: last && is_solicited(slot),
        };
        let (pd, memory) = (connection.pd, env.memory);
        let offset = u64::from(packet) * connection.mtu.bytes() as u64;
        let payload_len = connection.payload_len(slot.length, packet);
        let emitted = connection.emit(frame, &header, payload_len, |out, crc| match slot.data() {
            SendData::Sges(sges) => memory.gather(pd, sges, offset, out, crc),
            SendData::Inline(bytes) => Ok::<Crc, AccessError>(copy_inline(bytes, offset, out, crc)),
        });
        let Some(len) = emitted else { return self.cannot_emit(env) };
        if last && matches!(slot.op, SendOp::Send { .. }) && psn == self.sent_end {
            env.counters.add(Counter::RdmaSends);
        }
        self.unasked = if ack_request { 0 } else { self.unasked + 1 };
        self.cursor =
            if last { Cursor { wqe: wqe + 1, packet: 0 } } else { Cursor { wqe, packet: packet + 1 } };
        self.sent(env, psn, psn.next());
        Transmit::Frame(len)
    }

    /// The one request packet of a READ or an atomic operation.
    fn send_request(&mut self, connection: &mut Connection, env: &mut Env<'_>, frame: &mut [u8]) -> Transmit {
        let wqe = self.cursor.wqe;
        let progress = self.progress_of(wqe);
        let psn = self.first_unanswered(&progress);
        let answered = psn.distance(progress.first).unsigned_abs();
        let slot = self.sq.get(wqe);
        let operation = data_request(slot, answered, connection);
        let header = Header { psn, operation, ack_request: true, solicited: false };
        let Some(len) = connection.emit_bare(frame, &header) else { return self.cannot_emit(env) };
        self.unasked = 0;
        self.reads_in_flight += 1;
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
        self.stop(env, WcStatus::LocProtErr);
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
    if slot.op.is_atomic() { 1 } else { connection.packets(slot.length) }
}

/// SE is defined for what completes a receive.
const fn is_solicited(slot: &SendSlot) -> bool {
    let completes_receive = matches!(slot.op, SendOp::Send { .. } | SendOp::Write { immediate: Some(_), .. });
    slot.flags.contains(SendFlags::SOLICITED) && completes_receive
}

fn data_operation(slot: &SendSlot, packet: u32, packets: u32) -> Operation {
    let position = position(packet, packets);
    let at_end = |immediate: Option<u32>| immediate.filter(|_| position.is_end());
    match slot.op {
        SendOp::Write { remote, immediate } => {
            let reth = position.is_start().then_some(reth(remote, slot.length));
            Operation::Write { position, reth, immediate: at_end(immediate) }
        }
        SendOp::Send { immediate } => {
            Operation::Send { position, immediate: at_end(immediate), invalidate: None }
        }
        SendOp::Read { .. } | SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. } => {
            unreachable!("READ and atomic requests are sent by send_request")
        }
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
        SendOp::Send { .. } | SendOp::Write { .. } => unreachable!("SEND and WRITE are sent by send_data"),
    }
}

const fn reth(remote: RemoteAddr, length: u32) -> Reth {
    Reth { va: remote.va, rkey: remote.rkey, length }
}

fn copy_inline(bytes: &[u8], offset: u64, out: &mut [u8], crc: Crc) -> Crc {
    let start = offset as usize;
    out.copy_from_slice(&bytes[start..start + out.len()]);
    crc.update(out)
}
