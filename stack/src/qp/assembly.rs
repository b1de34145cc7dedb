//! The message whose packets are arriving on a connection.

use crate::wire::{Operation, Position};
use crate::work::RemoteAddr;

/// How far the message has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Assembly {
    /// None is open.
    #[default]
    Idle,
    /// A SEND; so many bytes of it are in the receive that it took.
    Send { placed: u64 },
    /// A WRITE.
    Write(Target),
}

/// Where the next byte of a WRITE goes, how many are to come, how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) next: RemoteAddr,
    left: u32,
    pub(super) total: u32,
}

impl Assembly {
    /// Whether a packet goes on with the open message.
    pub(super) const fn is_continued_by(&self, operation: &Operation) -> bool {
        match (self, operation) {
            (Self::Send { .. }, Operation::Send { position, .. })
            | (Self::Write(_), Operation::Write { position, .. }) => !position.is_start(),
            _ => false,
        }
    }
}

impl Target {
    /// A WRITE of `length` bytes to `remote`, of which none has come.
    pub(super) const fn new(remote: RemoteAddr, length: u32) -> Self {
        Self { next: remote, left: length, total: length }
    }

    /// Behind a packet of `len` bytes. `None` when that breaks the length that was announced: every packet but the last
    /// leaves something to come, the last leaves nothing.
    pub(super) fn behind(self, len: usize, position: Position) -> Option<Self> {
        let left = self.left.checked_sub(len as u32)?;
        let next = RemoteAddr { va: self.next.va.wrapping_add(len as u64), rkey: self.next.rkey };
        ((left == 0) == position.is_end()).then_some(Self { next, left, ..self })
    }
}
