//! The send queue: work requests on their way to the engine.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;

use super::QpShared;
use super::ring::{Consumer, Producer, ring};
use crate::error::PostError;
use crate::qp::QpState;
use crate::work::{Gather, SendFlags, SendOp, SendWr, Sge};

/// What the queues of a queue pair were created for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueCaps {
    pub(crate) max_send_sge: usize,
    pub(crate) max_recv_sge: usize,
    pub(crate) max_inline_data: usize,
    pub(crate) max_msg_sz: u32,
}

/// One posted send work request. The arrays are as large as the queue's caps and filled as far as told.
#[derive(Debug)]
pub(crate) struct SendSlot {
    pub(crate) wr_id: u64,
    pub(crate) op: SendOp,
    pub(crate) flags: SendFlags,
    /// Bytes of the message; for atomics 8.
    pub(crate) length: u32,
    is_inline: bool,
    num_sge: usize,
    sges: Box<[Sge]>,
    inline: Box<[u8]>,
}

/// Where the bytes of a posted request are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SendData<'a> {
    Sges(&'a [Sge]),
    Inline(&'a [u8]),
}

impl SendSlot {
    fn new(caps: &QueueCaps) -> Self {
        Self {
            wr_id: 0,
            op: SendOp::default(),
            flags: SendFlags::empty(),
            length: 0,
            is_inline: false,
            num_sge: 0,
            sges: vec![Sge::default(); caps.max_send_sge].into(),
            inline: vec![0; caps.max_inline_data].into(),
        }
    }

    pub(crate) fn data(&self) -> SendData<'_> {
        if self.is_inline {
            SendData::Inline(&self.inline[..self.length as usize])
        } else {
            SendData::Sges(&self.sges[..self.num_sge])
        }
    }

    pub(crate) fn sges(&self) -> &[Sge] {
        &self.sges[..self.num_sge]
    }

    fn fill(&mut self, wr: &SendWr<'_>, length: u32) {
        self.wr_id = wr.wr_id;
        self.op = wr.op;
        self.flags = wr.flags;
        self.length = length;
        self.is_inline = matches!(wr.data, Gather::Inline(_));
        match wr.data {
            Gather::Sges(sges) => {
                self.num_sge = sges.len();
                self.sges[..sges.len()].copy_from_slice(sges);
            }
            Gather::Inline(bytes) => {
                self.num_sge = 0;
                self.inline[..bytes.len()].copy_from_slice(bytes);
            }
        }
    }
}

pub(crate) fn send_ring(
    capacity: u32,
    caps: QueueCaps,
    shared: &Arc<QpShared>,
) -> (SendQueue, Consumer<SendSlot>) {
    let (producer, consumer) = ring(capacity, || SendSlot::new(&caps));
    (SendQueue { ring: producer, shared: Arc::clone(shared), caps }, consumer)
}

/// The application's half of a send queue.
#[derive(Debug)]
pub struct SendQueue {
    ring: Producer<SendSlot>,
    shared: Arc<QpShared>,
    caps: QueueCaps,
}

impl SendQueue {
    /// Queues one work request; the engine sees it at the next [`ring_doorbell`](Self::ring_doorbell).
    ///
    /// # Errors
    /// When the queue pair is not in RTS, SQD or ERR (in ERR the request is accepted and flushed), when the queue
    /// is full, or when the request does not fit what the queue was created for. Nothing is queued then.
    pub fn push(&mut self, wr: &SendWr<'_>) -> Result<(), PostError> {
        self.check_state()?;
        let length = self.check(wr)?;
        let slot = self.ring.next().ok_or(PostError::QueueFull)?;
        slot.fill(wr, length);
        self.ring.stage();
        Ok(())
    }

    /// Hands every queued work request to the engine.
    pub fn ring_doorbell(&mut self) {
        self.ring.publish();
        self.shared.announce_sends();
    }

    /// Takes back what was queued since the last doorbell.
    pub fn abort(&mut self) {
        self.ring.unstage();
    }

    /// The state of the queue pair, as the engine last set it.
    #[must_use]
    pub fn state(&self) -> QpState {
        self.shared.state()
    }

    /// How many work requests the queue holds.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.ring.capacity()
    }

    fn check_state(&self) -> Result<(), PostError> {
        match self.state() {
            QpState::Rts | QpState::Sqd | QpState::Sqe | QpState::Err => Ok(()),
            state => Err(PostError::State(state)),
        }
    }

    fn check(&self, wr: &SendWr<'_>) -> Result<u32, PostError> {
        let length = self.check_data(wr)?;
        if wr.op.is_atomic() && length != 8 {
            return Err(PostError::Invalid(
                "an atomic operation returns 8 bytes: give it a local buffer of 8",
            ));
        }
        let limit = u64::from(self.caps.max_msg_sz);
        u32::try_from(length)
            .ok()
            .filter(|_| length <= limit)
            .ok_or(PostError::TooLong { found: length, limit })
    }

    fn check_data(&self, wr: &SendWr<'_>) -> Result<u64, PostError> {
        match wr.data {
            Gather::Sges(sges) => {
                check_sges(sges, self.caps.max_send_sge)?;
                Ok(sges.iter().map(|sge| u64::from(sge.length)).sum())
            }
            Gather::Inline(_) if wr.op.expects_data() => Err(PostError::Invalid(
                "a READ or an atomic operation needs memory for its result, not inline data",
            )),
            Gather::Inline(bytes) if bytes.len() > self.caps.max_inline_data => {
                Err(PostError::InlineTooLong { found: bytes.len(), limit: self.caps.max_inline_data })
            }
            Gather::Inline(bytes) => Ok(bytes.len() as u64),
        }
    }
}

pub(super) fn check_sges(sges: &[Sge], limit: usize) -> Result<(), PostError> {
    if sges.len() > limit {
        return Err(PostError::TooManySges { found: sges.len(), limit });
    }
    Ok(())
}
