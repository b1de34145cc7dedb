//! Errors of the calls of a connection manager.

use thiserror::Error;

use super::CmState;
use crate::wire::Qpn;
use crate::wire::cm::ServiceId;

/// Why a call was refused. Nothing was changed and nothing is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CmError {
    /// No such connection, question or listener (`EINVAL`).
    #[error("no such connection: it has ended, or belongs to another connection manager")]
    NotFound,
    /// The connection does not take the call in its state (`EINVAL`).
    #[error("{call} does not fit a connection in {state:?}")]
    State {
        /// The call.
        call: &'static str,
        /// The state it is in.
        state: CmState,
    },
    /// More private data than the message has room for (`EINVAL`).
    #[error("{found} bytes of private data, the message has room for {limit}")]
    PrivateDataTooLong {
        /// How many bytes there were.
        found: usize,
        /// How many there may be.
        limit: usize,
    },
    /// A value is out of its range (`EINVAL`).
    #[error("{what} is out of range: {found}, allowed are {low} to {high}")]
    OutOfRange {
        /// Which value.
        what: &'static str,
        /// What was asked for.
        found: u64,
        /// The smallest that is allowed.
        low: u64,
        /// The largest that is allowed.
        high: u64,
    },
    /// The values do not fit together (`EINVAL`).
    #[error("invalid: {0}")]
    Invalid(&'static str),
    /// As many exist as the configuration allows (`ENOMEM`).
    #[error("no {what} left: {limit} exist, which is the limit; end one first, or configure a higher limit")]
    Exhausted {
        /// What.
        what: &'static str,
        /// How many there may be.
        limit: u32,
    },
    /// The queue pair belongs to another connection (`EBUSY`).
    #[error(
        "queue pair {0} belongs to a connection that has not ended, or whose last packets may still be on their way: \
         use another queue pair, or wait for its time-wait to end"
    )]
    QpnBusy(Qpn),
    /// Somebody listens to the service already (`EADDRINUSE`).
    #[error("somebody listens to service {0} already: end that listener first, or choose another port")]
    AddressInUse(ServiceId),
}
