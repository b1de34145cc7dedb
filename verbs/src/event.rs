//! Asynchronous events: what no completion tells.

use uroce_stack::wire::Qpn;

use crate::cq::CqId;
use crate::srq::SrqId;

/// Something that no completion tells, as `ibv_get_async_event` reports it.
///
/// Read with [`Context::async_event`](crate::Context::async_event). An event that is already waiting is not
/// reported twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AsyncEvent {
    /// A completion queue overflowed: completions were lost, and its queue pairs are in error.
    CqErr(CqId),
    /// A queue pair went into error for a reason that no completion of it tells.
    QpFatal(Qpn),
    /// The peer sent an invalid request; the queue pair is in error.
    QpReqErr(Qpn),
    /// The peer attempted a forbidden access; the queue pair is in error.
    QpAccessErr(Qpn),
    /// The first request arrived while the queue pair was in RTR, before it was told to go to RTS.
    CommEst(Qpn),
    /// The send queue has drained after a transition to SQD that asked to be told.
    SqDrained(Qpn),
    /// A queue pair on a shared receive queue is in error and takes no more receives from it.
    QpLastWqeReached(Qpn),
    /// A shared receive queue holds fewer receives than its limit, which is 0 from now on:
    /// [set it](crate::SharedReceiveQueue::set_limit) again to be told again.
    SrqLimitReached(SrqId),
    /// The device is gone or its driver failed: every queue pair is in error, and none will work again. Drop
    /// the context and open another.
    DeviceFatal,
    /// The link is up again. Queue pairs that went into error with it stay there.
    PortActive,
    /// The interface is down, or has lost its carrier.
    PortErr,
    /// The addresses of the interface have changed.
    GidChange,
}

impl AsyncEvent {
    /// The queue pair that it concerns, if it concerns one.
    #[must_use]
    pub const fn qpn(self) -> Option<Qpn> {
        match self {
            Self::QpFatal(qpn)
            | Self::QpReqErr(qpn)
            | Self::QpAccessErr(qpn)
            | Self::CommEst(qpn)
            | Self::SqDrained(qpn)
            | Self::QpLastWqeReached(qpn) => Some(qpn),
            _ => None,
        }
    }
}
