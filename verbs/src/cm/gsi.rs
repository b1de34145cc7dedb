//! Queue pair 1: management datagrams in and out of the engine.

use uroce_stack::cm::Sender;
use uroce_stack::wire::{MacAddr, Path, Psn, Qpn};
use uroce_stack::{
    Access, AddressHandle, Completion, CompletionReader, Engine, Gather, Instant, NewQp, Pd, QpAttr, QpInit,
    QpState, QpType, Recipient, RecvQueue, Region, SendFlags, SendOp, SendQueue, SendWr, Sge, WcOpcode,
    WcStatus,
};

use crate::error::Error;
use crate::grh;

/// Bytes of a management datagram.
pub(super) const MAD: usize = 256;
const SLOT: usize = grh::BYTES + MAD;
const RECEIVES: u32 = 256;
const SENDS: u32 = 256;
/// Every message of management has it (IBTA, well-known Q_Key).
const QKEY: u32 = 0x8001_0000;
/// Completions taken at a time.
const BATCH: usize = 16;

/// Queue pair 1 of an engine, with memory of its own.
#[derive(Debug)]
pub(super) struct Gsi {
    pd: Pd,
    sends: SendQueue,
    recvs: RecvQueue,
    reader: CompletionReader,
    memory: Region,
    lkey: u32,
}

/// A management datagram that has arrived.
pub(super) struct Arrival {
    pub(super) sender: Sender,
    /// Where an answer goes.
    pub(super) mac: MacAddr,
    pub(super) mad: [u8; MAD],
}

impl Gsi {
    pub(super) fn open(engine: &mut Engine, now: Instant) -> Result<Self, Error> {
        let pd = engine.alloc_pd()?;
        let memory = Region::alloc(RECEIVES as usize * SLOT);
        let lkey = engine.register_mr(pd, memory.clone(), 0, Access::LOCAL_WRITE)?.lkey;
        let (cq, reader) = engine.create_cq(RECEIVES + SENDS)?;
        let init = QpInit {
            max_send_wr: SENDS,
            max_recv_wr: RECEIVES,
            max_recv_sge: 1,
            max_inline_data: MAD as u32,
            ..QpInit::new(QpType::Gsi, cq, cq)
        };
        let NewQp { qpn, send: sends, recv: recvs } = engine.create_qp(pd, &init)?;
        bring_up(engine, now, qpn).map_err(crate::error::ModifyError::from)?;
        let mut gsi = Self { pd, sends, recvs, reader, memory, lkey };
        (0..RECEIVES).for_each(|slot| gsi.post(slot));
        gsi.recvs.ring_doorbell();
        Ok(gsi)
    }

    /// Hands over what has arrived since.
    pub(super) fn receive(&mut self, mut deliver: impl FnMut(Arrival)) {
        let mut completions = [Completion::default(); BATCH];
        loop {
            let count = self.reader.poll(&mut completions);
            for completion in
                completions[..count].iter().filter(|completion| completion.opcode == WcOpcode::Recv)
            {
                self.arrival(completion).into_iter().for_each(&mut deliver);
                self.post(completion.wr_id as u32);
            }
            if count == 0 {
                return;
            }
            self.recvs.ring_doorbell();
        }
    }

    /// Sends a message to queue pair 1 at the end of `path`; false when the queue is full.
    pub(super) fn send(&mut self, path: &Path, mad: &[u8; MAD]) -> bool {
        // Addresses of two families never get this far; then the message is as good as lost.
        let Ok(ah) = AddressHandle::new(self.pd, path) else { return true };
        let to = Recipient::Datagram { ah: &ah, qpn: Qpn::GSI, qkey: QKEY };
        let op = SendOp::Send { immediate: None };
        let wr = SendWr { wr_id: 0, op, flags: SendFlags::empty(), data: Gather::Inline(mad), to };
        let accepted = self.sends.push(&wr).is_ok();
        if accepted {
            self.sends.ring_doorbell();
        }
        accepted
    }

    fn post(&mut self, slot: u32) {
        let addr = u64::from(slot) * SLOT as u64;
        let sge = Sge { addr, length: SLOT as u32, lkey: self.lkey };
        let posted = self.recvs.push(slot.into(), &[sge]);
        debug_assert_eq!(posted, Ok(()), "there is a place for each receive of ours");
    }

    fn arrival(&self, completion: &Completion) -> Option<Arrival> {
        let whole = completion.status == WcStatus::Success && completion.byte_len as usize == SLOT;
        let mut bytes = [0; SLOT];
        if !whole || !self.memory.read_at(completion.wr_id as usize * SLOT, &mut bytes) {
            return None;
        }
        let (header, mad) = bytes.split_first_chunk::<{ grh::BYTES }>()?;
        let (source, destination) = grh::addresses(header);
        Some(Arrival {
            sender: Sender { source, destination, source_qp: completion.src_qp },
            mac: completion.source_mac?,
            mad: *mad.first_chunk()?,
        })
    }
}

fn bring_up(engine: &mut Engine, now: Instant, qpn: Qpn) -> Result<(), uroce_stack::ModifyError> {
    let init = QpAttr { pkey_index: Some(0), qkey: Some(QKEY), ..QpAttr::to(QpState::Init) };
    let rts = QpAttr { sq_psn: Some(Psn::default()), ..QpAttr::to(QpState::Rts) };
    [init, QpAttr::to(QpState::Rtr), rts].iter().try_for_each(|attr| engine.modify_qp(now, qpn, attr))
}
