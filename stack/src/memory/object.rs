//! What a key names, and what it opens.

use super::{MwType, Region};
use crate::access::Access;
use crate::engine::Pd;
use crate::wire::Qpn;

/// Who asks for an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// The protection domain of the queue pair.
    pub(crate) pd: Pd,
    /// The queue pair, which is all that a type 2 window opens to.
    pub(crate) qp: Qpn,
}

/// Why an access, or a work request on memory, was refused. Nothing was read, written or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessError {
    /// Wrong or revoked key, another protection domain or queue pair, a missing right, or out of bounds: NAK 0x62, or
    /// a local error. Which one is not told, here or to the peer.
    Refused,
    /// The address of an atomic operation is not a multiple of 8: NAK 0x61.
    Misaligned,
}

/// A memory region or a memory window.
#[derive(Debug)]
pub(super) struct Object {
    /// The whole key as it stands.
    pub(super) key: u32,
    pub(super) pd: Pd,
    /// What it opens at present: nothing while a window is not bound, or a region for fast registration not registered.
    pub(super) view: Option<View>,
    pub(super) kind: Kind,
    /// How many windows are bound to it.
    pub(super) windows: u32,
}

/// How an object came to be, which decides who may change it.
#[derive(Debug)]
pub(super) enum Kind {
    /// A region that a control call registered.
    Registered,
    /// A region for fast registration, with all of the memory that it may show.
    Fast(Region),
    Window(MwType),
}

/// Bytes, and what may be done with them.
#[derive(Debug)]
pub(super) struct View {
    pub(super) memory: Region,
    /// The address that users of the key give to the first byte.
    pub(super) base: u64,
    pub(super) access: Access,
    /// Set for windows.
    pub(super) binding: Option<Binding>,
}

/// Where a window got its bytes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Binding {
    /// The key of the region behind it, which does not change while windows are bound to it.
    pub(super) mr: u32,
    /// The only queue pair that it opens to; without one, all of its protection domain.
    pub(super) qp: Option<Qpn>,
}

impl Object {
    pub(super) const fn is_window(&self) -> bool {
        matches!(self.kind, Kind::Window(_))
    }

    /// What peers see of it through a queue pair.
    #[inline]
    pub(super) fn remote(&self, by: Subject, rights: Access) -> Result<&View, AccessError> {
        let view = self.view(by.pd, rights)?;
        match view.binding {
            Some(Binding { qp: Some(qp), .. }) if qp != by.qp => Err(AccessError::Refused),
            _ => Ok(view),
        }
    }

    /// What local work requests see of it. A window shows them nothing.
    #[inline]
    pub(super) fn local(&self, pd: Pd, rights: Access) -> Result<&View, AccessError> {
        let view = self.view(pd, rights)?;
        if view.binding.is_some() { Err(AccessError::Refused) } else { Ok(view) }
    }

    #[inline]
    fn view(&self, pd: Pd, rights: Access) -> Result<&View, AccessError> {
        let view = self.view.as_ref().ok_or(AccessError::Refused)?;
        if self.pd == pd && view.access.contains(rights) { Ok(view) } else { Err(AccessError::Refused) }
    }
}

impl View {
    /// The offset of `addr`, when the `len` bytes from there on are inside. Nothing here can wrap.
    #[inline]
    pub(super) fn offset(&self, addr: u64, len: u64) -> Result<usize, AccessError> {
        let offset = addr.checked_sub(self.base).ok_or(AccessError::Refused)?;
        let end = offset.checked_add(len).ok_or(AccessError::Refused)?;
        if end > self.memory.len() as u64 {
            return Err(AccessError::Refused);
        }
        Ok(offset as usize)
    }
}
