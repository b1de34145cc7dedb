//! Memory windows.

use std::ops::RangeBounds;
use std::sync::Mutex;

use uroce_stack::{Access, BindMw, MwType};

use crate::bytes::bounds;
use crate::driver::lock;
use crate::error::{Error, PostError};
use crate::mr::MemoryRegion;
use crate::pd::ProtectionDomain;
use crate::qp::QueuePair;
use crate::remote::RemoteMr;
use crate::wr::SendWr;

/// A view of a part of a region, with rights of its own, that work requests open and close (`ibv_mw`): cheaper than to
/// register memory, and in order with other work requests.
///
/// A type 1 window opens to every queue pair of its domain, and [`bind`](Self::bind) replaces what it shows. A type 2
/// window opens to the queue pair alone that bound it, by [`SendWr::bind_mw`], until one of
/// [`SendWr::local_inv`] and the peer's [`SendWr::send_with_inv`] closes it.
///
/// Each binding has a new key. Dropping the window closes it at once.
#[derive(Debug)]
pub struct MemoryWindow {
    pd: ProtectionDomain,
    kind: MwType,
    /// What it shows when everything that was asked for has been done.
    shown: Mutex<RemoteMr>,
}

/// What a window is to show.
#[derive(Clone, Copy, Debug)]
pub struct BindInfo<'a> {
    /// The region behind it, which allows [`Access::MW_BIND`].
    pub mr: &'a MemoryRegion,
    /// The first byte, as an address of the region.
    pub addr: u64,
    /// How many bytes; 0 closes a type 1 window.
    pub len: u64,
    /// What peers may do: any of [`Access::WINDOW`]. Writing and atomics need a region with
    /// [`Access::LOCAL_WRITE`].
    pub access: Access,
}

impl<'a> BindInfo<'a> {
    /// These bytes of a region.
    #[must_use]
    pub fn new(mr: &'a MemoryRegion, range: impl RangeBounds<usize>, access: Access) -> Self {
        let (start, end) = bounds(range, mr.len());
        let addr = mr.addr().wrapping_add(start as u64);
        Self { mr, addr, len: end.saturating_sub(start) as u64, access }
    }
}

impl MemoryWindow {
    pub(crate) fn new(pd: &ProtectionDomain, kind: MwType) -> Result<Self, Error> {
        let rkey = pd.context().core().control(|port, _| port.engine.alloc_mw(pd.handle(), kind))?;
        let shown = RemoteMr { addr: 0, len: 0, rkey };
        Ok(Self { pd: pd.clone(), kind, shown: Mutex::new(shown) })
    }

    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> MwType {
        self.kind
    }

    /// The key of the binding that was asked for last, to be told to peers once that has completed.
    #[must_use]
    pub fn rkey(&self) -> u32 {
        self.remote().rkey
    }

    /// What a peer needs to reach what was bound last.
    #[must_use]
    pub fn remote(&self) -> RemoteMr {
        *lock(&self.shown)
    }

    /// The domain that it belongs to.
    #[must_use]
    pub const fn pd(&self) -> &ProtectionDomain {
        &self.pd
    }

    /// Has `qp` bind a type 1 window, in order with its other work requests (`ibv_bind_mw`). Completes with `wr_id` and
    /// [`WcOpcode::BindMw`](crate::WcOpcode::BindMw).
    ///
    /// # Errors
    /// As [`QueuePair::post_send`]; the window's key is what it was then.
    pub fn bind(&self, qp: &QueuePair, wr_id: u64, info: BindInfo<'_>) -> Result<(), PostError> {
        let former = self.remote();
        let posted = qp.post_send(&[SendWr::bind_mw(wr_id, self, info).signaled()]);
        if posted.is_err() {
            *lock(&self.shown) = former;
        }
        posted
    }

    /// Says what the key is, after a binding that was asked for and has failed: the key before it.
    pub fn set_rkey(&self, rkey: u32) {
        lock(&self.shown).rkey = rkey;
    }

    /// The binding under the next key.
    pub(crate) fn advance(&self, info: &BindInfo<'_>) -> BindMw {
        let mut shown = lock(&self.shown);
        let mw = shown.rkey;
        let addr = if info.access.contains(Access::ZERO_BASED) { 0 } else { info.addr };
        *shown = RemoteMr { addr, len: info.len, rkey: next_key(mw) };
        let (mr, addr, length, access) = (info.mr.lkey(), info.addr, info.len, info.access);
        BindMw { mw, rkey: shown.rkey, mr, addr, length, access }
    }
}

impl Drop for MemoryWindow {
    fn drop(&mut self) {
        let rkey = self.rkey();
        let freed = self.pd.context().core().control(|port, _| port.engine.dealloc_mw(rkey));
        debug_assert_eq!(freed, Ok(()), "a window is freed once");
    }
}

/// The key with the next tag, the low 8 bits (`ibv_inc_rkey`).
pub(crate) const fn next_key(key: u32) -> u32 {
    key & !0xff | key.wrapping_add(1) & 0xff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_key_differs_in_its_tag_alone() {
        assert_eq!(next_key(0x1234_5600), 0x1234_5601);
        assert_eq!(next_key(0x1234_56ff), 0x1234_5600);
        assert_eq!(next_key(u32::MAX), 0xffff_ff00);
    }
}
