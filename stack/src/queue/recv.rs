//! Receive queues: buffers that wait for messages, of one queue pair or shared by many.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;

use super::QpShared;
use super::ring::{Consumer, Producer, regrow, ring};
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
    pub(crate) fn new(max_sge: usize) -> Self {
        Self { wr_id: 0, num_sge: 0, sges: vec![Sge::default(); max_sge].into() }
    }

    pub(crate) fn sges(&self) -> &[Sge] {
        &self.sges[..self.num_sge]
    }

    /// How many bytes a message may have.
    pub(crate) fn room(&self) -> u64 {
        self.sges().iter().map(|sge| u64::from(sge.length)).sum()
    }

    /// Becomes a receive of `sges`, for which it has room.
    pub(crate) fn fill(&mut self, wr_id: u64, sges: &[Sge]) {
        self.wr_id = wr_id;
        self.num_sge = sges.len();
        self.sges[..sges.len()].copy_from_slice(sges);
    }
}

/// The posting half of a ring of receives.
#[derive(Debug)]
struct RecvRing {
    ring: Producer<RecvSlot>,
    max_sge: usize,
}

impl RecvRing {
    fn push(&mut self, wr_id: u64, sges: &[Sge]) -> Result<(), PostError> {
        check_sges(sges, self.max_sge)?;
        self.ring.next().ok_or(PostError::QueueFull)?.fill(wr_id, sges);
        self.ring.stage();
        Ok(())
    }
}

fn recv_ring(capacity: u32, max_sge: usize) -> (RecvRing, Consumer<RecvSlot>) {
    let (ring, consumer) = ring(capacity, || RecvSlot::new(max_sge));
    (RecvRing { ring, max_sge }, consumer)
}

pub(crate) fn recv_queue(
    capacity: u32,
    caps: QueueCaps,
    shared: &Arc<QpShared>,
) -> (RecvQueue, Consumer<RecvSlot>) {
    let (ring, consumer) = recv_ring(capacity, caps.max_recv_sge);
    (RecvQueue { ring, shared: Arc::clone(shared), kind: caps.receives }, consumer)
}

pub(crate) fn shared_recv_queue(capacity: u32, max_sge: usize) -> (SharedRecvQueue, Consumer<RecvSlot>) {
    let (ring, consumer) = recv_ring(capacity, max_sge);
    (SharedRecvQueue { ring }, consumer)
}

/// Whether a queue pair takes receives of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnReceives {
    Posted,
    /// From a shared receive queue.
    Shared,
    /// It receives no messages, or not under its own name.
    None,
}

/// The application's half of a receive queue.
#[derive(Debug)]
pub struct RecvQueue {
    ring: RecvRing,
    shared: Arc<QpShared>,
    kind: OwnReceives,
}

impl RecvQueue {
    /// Queues one receive; messages find it after the next [`ring_doorbell`](Self::ring_doorbell).
    ///
    /// # Errors
    /// When the queue pair is in RESET, when the queue is full, when there are more entries than the queue was
    /// created for, or when the queue pair takes its receives from elsewhere. Nothing is queued then.
    pub fn push(&mut self, wr_id: u64, sges: &[Sge]) -> Result<(), PostError> {
        self.check_kind()?;
        if self.state() == QpState::Reset {
            return Err(PostError::State(QpState::Reset));
        }
        self.ring.push(wr_id, sges)
    }

    /// Hands every queued receive to the engine.
    pub fn ring_doorbell(&mut self) {
        self.ring.ring.publish();
        self.shared.announce_receives();
    }

    /// Takes back what was queued since the last doorbell.
    pub fn abort(&mut self) {
        self.ring.ring.unstage();
    }

    /// The state of the queue pair, as the engine last set it.
    #[must_use]
    pub fn state(&self) -> QpState {
        self.shared.state()
    }

    /// How many receives the queue holds.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.ring.ring.capacity()
    }

    const fn check_kind(&self) -> Result<(), PostError> {
        match self.kind {
            OwnReceives::Posted => Ok(()),
            OwnReceives::Shared => Err(PostError::Invalid(
                "the queue pair takes receives from a shared receive queue: post them there",
            )),
            OwnReceives::None => Err(PostError::Invalid(
                "an XRC queue pair takes no receives: post them to the XRC receive queue",
            )),
        }
    }
}

/// The application's half of a shared receive queue.
#[derive(Debug)]
pub struct SharedRecvQueue {
    ring: RecvRing,
}

impl SharedRecvQueue {
    /// Queues one receive; messages find it after the next [`ring_doorbell`](Self::ring_doorbell).
    ///
    /// # Errors
    /// When the queue is full, or when there are more entries than it was created for. Nothing is queued then.
    pub fn push(&mut self, wr_id: u64, sges: &[Sge]) -> Result<(), PostError> {
        self.ring.push(wr_id, sges)
    }

    /// Hands every queued receive to the engine.
    pub fn ring_doorbell(&mut self) {
        self.ring.ring.publish();
    }

    /// Takes back what was queued since the last doorbell.
    pub fn abort(&mut self) {
        self.ring.ring.unstage();
    }

    /// How many receives the queue holds.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.ring.ring.capacity()
    }

    /// See [`regrow`].
    pub(crate) fn regrow(&mut self, consumer: &mut Consumer<RecvSlot>, capacity: u32) -> bool {
        let max_sge = self.ring.max_sge;
        regrow(&mut self.ring.ring, consumer, capacity, || RecvSlot::new(max_sge))
    }
}
