//! Memory regions that work requests register.

use std::ops::{Deref, RangeBounds};
use std::sync::Mutex;

use uroce_stack::{Access, RegisterMr, Sge};

use crate::bytes::{RegisteredBytes, bounds};
use crate::driver::lock;
use crate::error::Error;
use crate::mr::{Registration, entry};
use crate::mw::next_key;
use crate::pd::ProtectionDomain;
use crate::remote::RemoteMr;

/// Memory that is opened and closed by work requests, in order with others and without a control call: from
/// [`ProtectionDomain::alloc_fast_mr`] (`ib_alloc_mr` of the kernel; IBTA, fast register).
///
/// [`SendWr::reg_mr`](crate::SendWr::reg_mr) opens a part of it under a new key;
/// [`SendWr::local_inv`](crate::SendWr::local_inv) or the peer's
/// [`SendWr::send_with_inv`](crate::SendWr::send_with_inv) closes it. The memory itself is reached through
/// [`RegisteredBytes`] all the time. Dropping it revokes it.
#[derive(Debug)]
pub struct FastMemoryRegion {
    registration: Registration,
    pd: ProtectionDomain,
    bytes: RegisteredBytes,
    /// What is open when everything that was asked for has been done.
    shown: Mutex<RemoteMr>,
}

impl FastMemoryRegion {
    pub(crate) fn new(pd: &ProtectionDomain, len: usize) -> Result<Self, Error> {
        let bytes = RegisteredBytes::alloc(len)?;
        let registration =
            Registration::new(pd.context(), |engine| engine.alloc_mr(pd.handle(), bytes.region().clone()))?;
        let shown = RemoteMr { addr: 0, len: 0, rkey: registration.key() };
        Ok(Self { registration, pd: pd.clone(), bytes, shown: Mutex::new(shown) })
    }

    /// The local key of what was registered last.
    #[must_use]
    pub fn lkey(&self) -> u32 {
        self.rkey()
    }

    /// The remote key of what was registered last: the same as the local one.
    #[must_use]
    pub fn rkey(&self) -> u32 {
        self.remote().rkey
    }

    /// What a peer needs to reach what was registered last.
    #[must_use]
    pub fn remote(&self) -> RemoteMr {
        *lock(&self.shown)
    }

    /// Names bytes of what was registered last, counted from its first one, as
    /// [`MemoryRegion::sge`](crate::MemoryRegion::sge) does.
    #[must_use]
    pub fn sge(&self, range: impl RangeBounds<usize>) -> Sge {
        let shown = self.remote();
        entry(range, shown.len as usize, shown.addr, shown.rkey)
    }

    /// The domain that it belongs to.
    #[must_use]
    pub const fn pd(&self) -> &ProtectionDomain {
        &self.pd
    }

    /// Says what the key is, after a registration that was asked for and has failed: the key before it.
    pub fn set_rkey(&self, rkey: u32) {
        lock(&self.shown).rkey = rkey;
    }

    /// The registration of a part under the next key.
    pub(crate) fn advance(&self, part: impl RangeBounds<usize>, access: Access) -> RegisterMr {
        let (start, end) = bounds(part, self.len());
        let (offset, length) = (start as u64, end.saturating_sub(start) as u64);
        let own = self.bytes.region().addr().wrapping_add(offset);
        let iova = if access.contains(Access::ZERO_BASED) { 0 } else { own };
        let mut shown = lock(&self.shown);
        let mr = shown.rkey;
        *shown = RemoteMr { addr: iova, len: length, rkey: next_key(mr) };
        RegisterMr { mr, key: shown.rkey, offset, length, iova, access }
    }
}

impl Deref for FastMemoryRegion {
    type Target = RegisteredBytes;

    fn deref(&self) -> &RegisteredBytes {
        &self.bytes
    }
}

impl Drop for FastMemoryRegion {
    fn drop(&mut self) {
        self.registration.revoke();
    }
}
