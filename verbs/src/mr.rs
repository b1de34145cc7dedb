//! Memory regions.

use std::ops::{Deref, RangeBounds};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use uroce_stack::{Access, Engine, MrKeys, Region, Sge};

use crate::bytes::{Lent, RegisteredBytes, bounds};
use crate::context::Context;
use crate::error::Error;
use crate::pd::ProtectionDomain;
use crate::remote::RemoteMr;

/// Memory that the wire may read and write (`ibv_mr`).
///
/// Peers may change it at any moment, so no reference to it exists: it is reached through [`RegisteredBytes`], which it
/// derefs to.
///
/// Dropping it revokes it at once, and memory windows bound to it with it. Work requests that still name it complete with
/// [`LocProtErr`](crate::WcStatus::LocProtErr), peers get a remote access error, and no byte is touched any
/// more: late packets can do no harm, so posting is safe.
///
/// ```
/// # use uroce::*;
/// # let (ctx, _other) = uroce::testing::loopback_pair(Default::default())?;
/// # let pd = ctx.alloc_pd()?;
/// let mr = pd.alloc_mr_from(b"hello, world", Access::empty())?;
/// let sge = mr.sge(7..);
/// assert_eq!(sge.length, 5);
/// assert_eq!(mr.to_vec(7..)?, b"world");
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct MemoryRegion {
    registration: Arc<Registration>,
    pd: ProtectionDomain,
    bytes: RegisteredBytes,
    iova: u64,
}

impl MemoryRegion {
    /// Registers `bytes`, whose first one gets the address `iova`; `None`: its own, or 0 with [`Access::ZERO_BASED`].
    pub(crate) fn register(
        pd: &ProtectionDomain,
        bytes: RegisteredBytes,
        iova: Option<u64>,
        access: Access,
    ) -> Result<Self, Error> {
        let iova = iova.unwrap_or_else(|| first_address(bytes.region(), access));
        let registration = Registration::new(pd.context(), |engine| {
            engine.register_mr(pd.handle(), bytes.region().clone(), iova, access)
        })?;
        Ok(Self { registration: Arc::new(registration), pd: pd.clone(), bytes, iova })
    }

    pub(crate) const fn registration(&self) -> &Arc<Registration> {
        &self.registration
    }

    /// The address of the first byte as [`Sge`]s and peers know it: its iova.
    #[must_use]
    pub const fn addr(&self) -> u64 {
        self.iova
    }

    /// The local key, for [`Sge`].
    #[must_use]
    pub fn lkey(&self) -> u32 {
        self.registration.keys.lkey
    }

    /// The remote key, to be told to peers who may reach the memory.
    #[must_use]
    pub fn rkey(&self) -> u32 {
        self.registration.keys.rkey
    }

    /// The domain that it belongs to.
    #[must_use]
    pub const fn pd(&self) -> &ProtectionDomain {
        &self.pd
    }

    /// Names bytes of it in a work request.
    ///
    /// The range is not checked here: whoever posts an entry that reaches beyond the region gets
    /// [`LocProtErr`](crate::WcStatus::LocProtErr). One entry holds at most 2^32 - 1 bytes; longer ranges are
    /// cut there.
    #[must_use]
    pub fn sge(&self, range: impl RangeBounds<usize>) -> Sge {
        entry(range, self.len(), self.addr(), self.lkey())
    }

    /// What a peer needs to reach the whole region, as far as `Access` allows it.
    #[must_use]
    pub fn remote(&self) -> RemoteMr {
        RemoteMr { addr: self.addr(), len: self.len() as u64, rkey: self.rkey() }
    }

    /// Changes rights, domain or memory while the keys stay (`ibv_rereg_mr`). Memory that is replaced is not touched any
    /// more when this returns.
    ///
    /// ```
    /// # use uroce::*;
    /// # let (ctx, _other) = uroce::testing::loopback_pair(Default::default())?;
    /// # let pd = ctx.alloc_pd()?;
    /// let mut mr = pd.alloc_mr(4096, Access::LOCAL_WRITE | Access::REMOTE_WRITE)?;
    /// // No peer writes it from here on.
    /// mr.reregister(MrChange::new().access(Access::LOCAL_WRITE))?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Refused`] while windows are bound to it, and as [`ProtectionDomain::alloc_mr`]; [`Error::ReadOnly`] when
    /// a right to write is asked for memory that was lent for reading; [`Error::OtherDevice`]. Nothing was changed.
    pub fn reregister(&mut self, change: MrChange) -> Result<(), Error> {
        let MrChange { access, pd, memory } = change;
        if let Some(pd) = &pd {
            self.pd.context().check_same(pd.context())?;
        }
        self.check_rights(access, memory.as_ref())?;
        let memory = memory.map(|(bytes, iova)| {
            let iova = iova.unwrap_or_else(|| first_address(bytes.region(), access.unwrap_or_default()));
            (bytes, iova)
        });
        let stack = uroce_stack::Reregister {
            pd: pd.as_ref().map(ProtectionDomain::handle),
            memory: memory.as_ref().map(|(bytes, iova)| (bytes.region().clone(), *iova)),
            access,
        };
        let core = self.pd.context().core();
        let former = core.control(|port, _| port.engine.reregister_mr(self.lkey(), stack))?;
        drop(former);
        if let Some((bytes, iova)) = memory {
            (self.bytes, self.iova) = (bytes, iova);
        }
        self.pd = pd.unwrap_or_else(|| self.pd.clone());
        Ok(())
    }

    /// Revokes it, unless memory windows are bound to it (`ibv_dereg_mr`); afterwards it is as if it was dropped. Dropping
    /// it unbinds them.
    ///
    /// # Errors
    /// [`Error::Refused`] while windows are bound to it.
    pub fn try_destroy(&self) -> Result<(), Error> {
        self.registration.end(Engine::deregister_mr)
    }

    /// Memory that was lent for reading is never written, whatever rights are asked for later.
    fn check_rights(
        &self,
        access: Option<Access>,
        memory: Option<&(RegisteredBytes, Option<u64>)>,
    ) -> Result<(), Error> {
        let bytes = memory.map_or(&self.bytes, |(bytes, _)| bytes);
        match access {
            Some(access) if access.contains(Access::LOCAL_WRITE) => bytes.check_writable(),
            None if memory.is_some() => bytes.check_writable(),
            _ => Ok(()),
        }
    }
}

impl Deref for MemoryRegion {
    type Target = RegisteredBytes;

    fn deref(&self) -> &RegisteredBytes {
        &self.bytes
    }
}

impl Drop for MemoryRegion {
    fn drop(&mut self) {
        self.registration.revoke();
    }
}

/// What [`MemoryRegion::reregister`] is to change. What is not named stays as it is.
#[derive(Debug, Default)]
#[must_use = "nothing changes before `MemoryRegion::reregister`"]
pub struct MrChange {
    access: Option<Access>,
    pd: Option<ProtectionDomain>,
    memory: Option<(RegisteredBytes, Option<u64>)>,
}

impl MrChange {
    /// No change.
    pub fn new() -> Self {
        Self::default()
    }

    /// Other rights (`IBV_REREG_MR_CHANGE_ACCESS`).
    pub const fn access(mut self, access: Access) -> Self {
        self.access = Some(access);
        self
    }

    /// Another domain of the same device (`IBV_REREG_MR_CHANGE_PD`).
    pub fn pd(mut self, pd: &ProtectionDomain) -> Self {
        self.pd = Some(pd.clone());
        self
    }

    /// Other memory: `len` zeroed bytes that the region owns (`IBV_REREG_MR_CHANGE_TRANSLATION`).
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn alloc(mut self, len: usize) -> Result<Self, Error> {
        self.memory = Some((RegisteredBytes::alloc(len)?, None));
        Ok(self)
    }

    /// Other memory: that of the caller, with `iova` as the address of its first byte
    /// (`IBV_REREG_MR_CHANGE_TRANSLATION`).
    ///
    /// # Errors
    /// [`Error::Config`] when `start` is null.
    ///
    /// # Safety
    /// As [`ProtectionDomain::reg_mr_raw`], and the memory must be writable.
    pub unsafe fn raw(mut self, start: *mut u8, len: usize, iova: u64) -> Result<Self, Error> {
        let start = std::ptr::NonNull::new(start).ok_or(NULL)?;
        // SAFETY: the caller promises what `Region::from_raw` asks for; every clone of the region is gone when the
        // `MemoryRegion` is, or has got other memory.
        let region = unsafe { Region::from_raw(start, len) };
        self.memory = Some((RegisteredBytes::new(region, Lent::Writable), Some(iova)));
        Ok(self)
    }
}

pub(crate) const NULL: Error = Error::Config("memory at address 0 cannot be registered");

/// A key of an engine; revoked once, by whoever comes first.
#[derive(Debug)]
pub(crate) struct Registration {
    ctx: Context,
    keys: MrKeys,
    revoked: AtomicBool,
}

impl Registration {
    pub(crate) fn new(
        ctx: &Context,
        register: impl FnOnce(&mut Engine) -> Result<MrKeys, uroce_stack::Error>,
    ) -> Result<Self, Error> {
        let keys = ctx.core().control(|port, _| register(&mut port.engine))?;
        Ok(Self { ctx: ctx.clone(), keys, revoked: AtomicBool::new(false) })
    }

    /// The key as it was at first.
    pub(crate) const fn key(&self) -> u32 {
        self.keys.lkey
    }

    /// Takes the registration back, and windows bound to it with it. When it returns, the engine does not touch the memory
    /// any more.
    pub(crate) fn revoke(&self) {
        let revoked = self.end(Engine::revoke_mr);
        debug_assert!(revoked.is_ok(), "a region is deregistered once: {revoked:?}");
    }

    fn end(
        &self,
        end: impl FnOnce(&mut Engine, u32) -> Result<Region, uroce_stack::Error>,
    ) -> Result<(), Error> {
        self.ctx.core().control(|port, _| {
            // Read and changed under the port's lock only.
            if !self.revoked.load(Ordering::Relaxed) {
                end(&mut port.engine, self.keys.lkey)?;
                self.revoked.store(true, Ordering::Relaxed);
            }
            Ok(())
        })
    }
}

/// The address that the first byte has unless the caller says otherwise.
pub(crate) fn first_address(region: &Region, access: Access) -> u64 {
    if access.contains(Access::ZERO_BASED) { 0 } else { region.addr() }
}

/// A scatter/gather entry of a range of something of `len` bytes at `addr`.
pub(crate) fn entry(range: impl RangeBounds<usize>, len: usize, addr: u64, lkey: u32) -> Sge {
    let (start, end) = bounds(range, len);
    let length = u32::try_from(end.saturating_sub(start)).unwrap_or(u32::MAX);
    Sge { addr: addr.wrapping_add(start as u64), length, lkey }
}
