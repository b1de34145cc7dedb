//! The send queue: work requests on their way to the engine.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;

use super::QpShared;
use super::recv::OwnReceives;
use super::ring::{Consumer, Producer, ring};
use crate::engine::Pd;
use crate::error::PostError;
use crate::qp::{QpState, QpType};
use crate::wire::{Qpn, Template};
use crate::work::{Gather, Recipient, SendFlags, SendOp, SendWr, Sge};

/// What the queues of a queue pair were created for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueCaps {
    pub(crate) qp_type: QpType,
    pub(crate) pd: Pd,
    pub(crate) receives: OwnReceives,
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
    /// The shared receive queue at the peer, for XRC.
    srqn: u32,
    /// The receiver, for UD; there is none for other services.
    datagram: Option<Box<Datagram>>,
}

/// The receiver of a datagram.
#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    pub(crate) template: Template,
    pub(crate) qpn: Qpn,
    pub(crate) qkey: u32,
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
            srqn: 0,
            datagram: None,
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

    pub(crate) const fn srqn(&self) -> u32 {
        self.srqn
    }

    pub(crate) fn datagram(&self) -> Option<&Datagram> {
        self.datagram.as_deref()
    }

    /// The place of a receiver is allocated with the first datagram that the slot holds, and then used again.
    fn address(&mut self, to: &Recipient<'_>) {
        match *to {
            Recipient::Peer => {}
            Recipient::Xrc { srqn } => self.srqn = srqn & 0xFF_FFFF,
            Recipient::Datagram { ah, qpn, qkey } => {
                let to = Datagram { template: *ah.template(), qpn, qkey };
                match &mut self.datagram {
                    Some(place) => **place = to,
                    None => self.datagram = Some(Box::new(to)),
                }
            }
        }
    }

    fn fill(&mut self, wr: &SendWr<'_>, length: u32) {
        self.wr_id = wr.wr_id;
        self.op = wr.op;
        self.flags = wr.flags;
        self.length = length;
        self.is_inline = matches!(wr.data, Gather::Inline(_));
        self.address(&wr.to);
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
        self.check_op(&wr.op)?;
        self.check_recipient(&wr.to)?;
        let length = self.check_data(wr)?;
        check_fixed_length(&wr.op, length)?;
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
            Gather::Inline(_) if wr.op.returns_data() => Err(PostError::Invalid(
                "a READ or an atomic operation needs memory for its result, not inline data",
            )),
            Gather::Inline(bytes) if bytes.len() > self.caps.max_inline_data => {
                Err(PostError::InlineTooLong { found: bytes.len(), limit: self.caps.max_inline_data })
            }
            Gather::Inline(bytes) => Ok(bytes.len() as u64),
        }
    }
}

impl SendQueue {
    /// What the transport service has no packet for is refused (case C48).
    const fn check_op(&self, op: &SendOp) -> Result<(), PostError> {
        let allowed = match self.caps.qp_type {
            QpType::Rc | QpType::XrcIni => true,
            QpType::Uc => matches!(op, SendOp::Send { .. } | SendOp::Write { .. }) || op.is_local(),
            QpType::Ud | QpType::Gsi => matches!(op, SendOp::Send { .. }),
            QpType::XrcTgt => return Err(PostError::Invalid("an XRC target sends nothing of its own")),
        };
        if allowed {
            Ok(())
        } else {
            Err(PostError::Invalid("the transport service of the queue pair has no such operation"))
        }
    }

    fn check_recipient(&self, to: &Recipient<'_>) -> Result<(), PostError> {
        match (self.caps.qp_type, to) {
            (QpType::Ud | QpType::Gsi, Recipient::Datagram { ah, .. }) if ah.pd() != self.caps.pd => Err(
                PostError::Invalid("the address handle is of another protection domain than the queue pair"),
            ),
            (QpType::Ud | QpType::Gsi, Recipient::Datagram { .. })
            | (QpType::XrcIni, Recipient::Xrc { .. })
            | (QpType::Rc | QpType::Uc, Recipient::Peer) => Ok(()),
            (QpType::Ud | QpType::Gsi, _) => {
                Err(PostError::Invalid("a datagram needs an address handle, a queue pair number and a Q_Key"))
            }
            (QpType::XrcIni, _) => {
                Err(PostError::Invalid("an XRC request needs the number of the peer's shared receive queue"))
            }
            _ => Err(PostError::Invalid("a connected queue pair sends to its peer and to nobody else")),
        }
    }
}

/// Operations whose data has one possible length.
fn check_fixed_length(op: &SendOp, length: u64) -> Result<(), PostError> {
    match op {
        _ if op.is_atomic() && length != 8 => {
            Err(PostError::Invalid("an atomic operation returns 8 bytes: give it a local buffer of 8"))
        }
        SendOp::AtomicWrite { .. } if length != 8 => {
            Err(PostError::Invalid("an ATOMIC WRITE carries exactly 8 bytes"))
        }
        SendOp::Flush { .. } if length != 0 => Err(PostError::Invalid("a FLUSH carries no data of its own")),
        _ if op.is_local() && length != 0 => Err(PostError::Invalid("a local operation carries no data")),
        _ => Ok(()),
    }
}

pub(super) fn check_sges(sges: &[Sge], limit: usize) -> Result<(), PostError> {
    if sges.len() > limit {
        return Err(PostError::TooManySges { found: sges.len(), limit });
    }
    Ok(())
}
