//! Asynchronous events: what `ibv_get_async_event` reports.

use crate::engine::{Cq, Srq};
use crate::wire::Qpn;

/// Something that no completion tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsyncEvent {
    /// A completion queue overflowed: completions were lost, and its queue pairs are in error.
    CqErr(Cq),
    /// A queue pair went into error for a reason that no completion of it tells.
    QpFatal(Qpn),
    /// The peer sent an invalid request (answered with NAK 0x61); the queue pair is in error.
    QpReqErr(Qpn),
    /// The peer attempted a forbidden access (answered with NAK 0x62); the queue pair is in error.
    QpAccessErr(Qpn),
    /// The first request arrived while the queue pair was ready to receive (RTR) but not yet to send.
    CommEst(Qpn),
    /// The send queue has drained after a transition to SQD that asked to be told.
    SqDrained(Qpn),
    /// A queue pair on a shared receive queue is in error and takes no more receives from it.
    QpLastWqeReached(Qpn),
    /// A shared receive queue holds fewer receives than its limit, which is 0 from now on: set it again to be told again.
    SrqLimitReached(Srq),
}

impl AsyncEvent {
    /// The queue pair that the event is about, if it is about one.
    #[must_use]
    pub const fn queue_pair(&self) -> Option<Qpn> {
        match *self {
            Self::CqErr(_) | Self::SrqLimitReached(_) => None,
            Self::QpFatal(qpn)
            | Self::QpReqErr(qpn)
            | Self::QpAccessErr(qpn)
            | Self::CommEst(qpn)
            | Self::SqDrained(qpn)
            | Self::QpLastWqeReached(qpn) => Some(qpn),
        }
    }
}
