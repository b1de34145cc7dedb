//! Errors of the control calls.

use thiserror::Error;

use crate::qp::{AttrMask, QpState};
use crate::wire::Qpn;

/// Why a control call was refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
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
    /// The engine holds as many of these as its limits allow (`ENOMEM`).
    #[error(
        "no {what} left: {limit} exist, which is the device's limit; destroy one or open the device with a higher limit"
    )]
    Exhausted {
        /// Which object.
        what: &'static str,
        /// How many there may be.
        limit: u32,
    },
    /// Others still use the object (`EBUSY`).
    #[error("the {0} is still in use; destroy what was created on it first")]
    Busy(&'static str),
    /// No such object: it was destroyed, or belongs to another engine (`EINVAL`).
    #[error("no such {0}: it was destroyed, or belongs to another device")]
    NotFound(&'static str),
}

/// Why `modify_qp` was refused (`EINVAL`). The queue pair is as it was.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ModifyError {
    /// No such queue pair.
    #[error("no such queue pair: it was destroyed, or belongs to another device")]
    NotFound,
    /// The state machine has no such transition.
    #[error("a queue pair cannot go from {from:?} to {to:?}")]
    Transition {
        /// The state it is in.
        from: QpState,
        /// The state asked for.
        to: QpState,
    },
    /// Attributes that the transition requires are absent.
    #[error("{from:?} to {to:?} also needs {missing}")]
    Missing {
        /// The state it is in.
        from: QpState,
        /// The state asked for.
        to: QpState,
        /// What was left out.
        missing: AttrMask,
    },
    /// Attributes that the transition does not allow are present.
    #[error("{from:?} to {to:?} does not take {disallowed}")]
    Disallowed {
        /// The state it is in.
        from: QpState,
        /// The state asked for.
        to: QpState,
        /// What must not be there.
        disallowed: AttrMask,
    },
    /// An attribute has a value out of its range.
    #[error("{attribute} is out of range: {found}, allowed are 0 to {high}")]
    OutOfRange {
        /// Which attribute.
        attribute: &'static str,
        /// What was asked for.
        found: u32,
        /// The largest value allowed.
        high: u32,
    },
    /// The claimed current state is not the current state.
    #[error("the queue pair is in {actual:?}, not in {claimed:?}")]
    CurrentState {
        /// What `cur_state` said.
        claimed: QpState,
        /// What it is.
        actual: QpState,
    },
    /// Another queue pair of this device is connected to that queue pair already: packets do not say who sent them, so
    /// two of them would take each other's.
    #[error(
        "queue pair {other} is connected to queue pair {peer} at that address already; connect to another one, or \
         destroy it first"
    )]
    PeerTaken {
        /// The queue pair that both want.
        peer: Qpn,
        /// The one that has it.
        other: Qpn,
    },
    /// A Q_Key with bit 31 set on a device that was not opened for privileged use.
    #[error(
        "Q_Key {0:#010x} has bit 31 set, which lets datagrams reach management queue pairs: clear the bit, or open \
         the device with controlled Q_Keys allowed"
    )]
    ControlledQkey(u32),
    /// Source and destination of the path are of different address families.
    #[error("the path mixes IPv4 and IPv6 addresses")]
    Path,
}

/// Why a work request was not accepted. Nothing of it was queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PostError {
    /// The queue takes no work requests in this state (`EINVAL`).
    #[error(
        "the queue pair is in {0:?} and takes no such work request: bring it to INIT to receive, to RTS to send"
    )]
    State(QpState),
    /// As many work requests are outstanding as the queue holds (`ENOMEM`).
    #[error("the queue is full: poll for completions first, or create the queue pair with a larger one")]
    QueueFull,
    /// More scatter/gather entries than the queue was created for (`EINVAL`).
    #[error("{found} scatter/gather entries, the queue was created for {limit}")]
    TooManySges {
        /// How many there were.
        found: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// More inline data than the queue was created for (`EINVAL`).
    #[error("{found} bytes of inline data, the queue was created for {limit}")]
    InlineTooLong {
        /// How many bytes there were.
        found: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// The message is longer than the device's largest (`EINVAL`).
    #[error("a message of {found} bytes, the largest is {limit}")]
    TooLong {
        /// The length asked for.
        found: u64,
        /// The largest.
        limit: u64,
    },
    /// The operation cannot be posted like this (`EINVAL`).
    #[error("invalid work request: {0}")]
    Invalid(&'static str),
}
