//! The receive queue: buffers that wait for messages.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;

use super::QpShared;
use super::ring::{Consumer, Producer, ring};
use super::send::{QueueCaps, check_sges};
use crate::error::PostError;
use crate::qp::QpState;
use crate::work::Sge;

/// One posted receive work request.
#[derive(Debug)]
pub(crate) struct RecvSlot {
    pub(crate) wr_id: u64,
    num_sge: usize,
    sges: Box<[Sge]>,
}

impl RecvSlot {
    fn new(max_sge: usize) -> Self {
        Self { wr_id: 0, num_sge: 0, sges: vec![Sge::default(); max_sge].into() }
    }

    pub(crate) fn sges(&self) -> &[Sge] {
        &self.sges[..self.num_sge]
    }

    /// How many bytes a message may have.
    pub(crate) fn room(&self) -> u64 {
        self.sges().iter().map(|sge| u64::from(sge.length)).sum()
    }
}

pub(crate) fn recv_ring(
    capacity: u32,
    caps: QueueCaps,
    shared: &Arc<QpShared>,
) -> (RecvQueue, Consumer<RecvSlot>) {
    let (producer, consumer) = ring(capacity, || RecvSlot::new(caps.max_recv_sge));
    (RecvQueue { ring: producer, shared: Arc::clone(shared), max_sge: caps.max_recv_sge }, consumer)
}

/// The application's half of a receive queue.
#[derive(Debug)]
pub struct RecvQueue {
    ring: Producer<RecvSlot>,
    shared: Arc<QpShared>,
    max_sge: usize,
}

impl RecvQueue {
    /// Queues one receive; messages find it after the next [`ring_doorbell`](Self::ring_doorbell).
    ///
    /// # Errors
    /// When the queue pair is in RESET, when the queue is full, or when there are more entries than the queue was
    /// created for. Nothing is queued then.
    pub fn push(&mut self, wr_id: u64, sges: &[Sge]) -> Result<(), PostError> {
        if self.state() == QpState::Reset {
            return Err(PostError::State(QpState::Reset));
        }
        check_sges(sges, self.max_sge)?;
        let slot = self.ring.next().ok_or(PostError::QueueFull)?;
        slot.wr_id = wr_id;
        slot.num_sge = sges.len();
        slot.sges[..sges.len()].copy_from_slice(sges);
        self.ring.stage();
        Ok(())
    }

    /// Hands every queued receive to the engine.
    pub fn ring_doorbell(&mut self) {
        self.ring.publish();
        self.shared.announce_receives();
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

    /// How many receives the queue holds.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.ring.capacity()
    }
}
