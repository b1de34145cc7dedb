//! Protection domains.

use std::ptr::NonNull;
use std::sync::Arc;

use uroce_stack::{Access, Completion, MwType, Pd, QpType, Region};

use crate::ah::AddressHandle;
use crate::bytes::{Lent, RegisteredBytes};
use crate::context::Context;
use crate::cq::CompletionQueue;
use crate::error::Error;
use crate::fast::FastMemoryRegion;
use crate::grh;
use crate::mr::{MemoryRegion, NULL};
use crate::mw::MemoryWindow;
use crate::qp::{AddressVector, QpBuilder};
use crate::scope::MrScope;
use crate::srq::{SharedReceiveQueue, SrqAttr};
use crate::xrc::XrcDomain;

/// Ties memory to the queue pairs that may use it (`ibv_pd`): a queue pair reaches the memory regions of its
/// own domain only. A cheap handle: clones name the same domain, which lives until its last user is gone.
///
/// Give each peer that need not see the memory of others a domain of its own; they are cheap.
#[derive(Clone)]
pub struct ProtectionDomain(Arc<Inner>);

struct Inner {
    ctx: Context,
    pd: Pd,
}

impl ProtectionDomain {
    pub(crate) fn new(ctx: &Context) -> Result<Self, Error> {
        let pd = ctx.core().control(|port, _| port.engine.alloc_pd())?;
        Ok(Self(Arc::new(Inner { ctx: ctx.clone(), pd })))
    }

    /// Registers `len` bytes of zeroed memory that the region owns, page-aligned.
    ///
    /// ```
    /// # use uroce::*;
    /// # let (ctx, _other) = uroce::testing::loopback_pair(Default::default())?;
    /// let pd = ctx.alloc_pd()?;
    /// let mr = pd.alloc_mr(4096, Access::LOCAL_WRITE | Access::REMOTE_READ)?;
    /// mr.write_at(0, b"for the peer to read")?;
    /// println!("tell the peer: {:?}", mr.remote());
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] when there is not so much memory; [`Error::Refused`] when `len` is above the limit of the
    /// device, when remote writing or atomics are allowed without [`Access::LOCAL_WRITE`], or when the device has no
    /// region left.
    pub fn alloc_mr(&self, len: usize, access: Access) -> Result<MemoryRegion, Error> {
        MemoryRegion::register(self, RegisteredBytes::alloc(len)?, None, access)
    }

    /// [`alloc_mr`](Self::alloc_mr), filled with `bytes`.
    ///
    /// # Errors
    /// As [`alloc_mr`](Self::alloc_mr).
    pub fn alloc_mr_from(&self, bytes: &[u8], access: Access) -> Result<MemoryRegion, Error> {
        let mr = self.alloc_mr(bytes.len(), access)?;
        mr.write_at(0, bytes)?;
        Ok(mr)
    }

    /// Registers borrowed memory for as long as `body` runs: see [`MrScope`].
    pub fn scope<'env, R>(&self, body: impl for<'s> FnOnce(&'s MrScope<'s, 'env>) -> R) -> R {
        MrScope::run(self, body)
    }

    /// Registers memory of the caller: foreign allocations, mappings, whatever C hands over (`ibv_reg_mr`).
    ///
    /// Peers address it by its own addresses, or from 0 on with [`Access::ZERO_BASED`]. See
    /// [`reg_mr_raw_iova`](Self::reg_mr_raw_iova) for others. Without [`Access::LOCAL_WRITE`] nothing ever writes it.
    ///
    /// # Errors
    /// As [`alloc_mr`](Self::alloc_mr); also when `start` is null.
    ///
    /// # Safety
    /// Until the region is dropped, `start..start + len` must stay mapped and readable, and writable if
    /// `access` holds any right to write; and no Rust reference to it may be used, not even for reading if it
    /// can be written. A peer, or anyone who guesses the key, may read or write all of it at any time as far
    /// as `access` allows. Nothing else checks any of this: unmapping too early crashes the process.
    pub unsafe fn reg_mr_raw(
        &self,
        start: *mut u8,
        len: usize,
        access: Access,
    ) -> Result<MemoryRegion, Error> {
        // SAFETY: the caller answers for the memory.
        unsafe { self.register_raw(start, len, None, access) }
    }

    /// [`reg_mr_raw`](Self::reg_mr_raw) with addresses that differ from the memory's own: the first byte is
    /// known as `iova` to peers and in every [`Sge`](crate::Sge) (`ibv_reg_mr_iova`).
    ///
    /// # Errors
    /// As [`reg_mr_raw`](Self::reg_mr_raw); also when `iova + len` exceeds 2^64.
    ///
    /// # Safety
    /// As [`reg_mr_raw`](Self::reg_mr_raw).
    pub unsafe fn reg_mr_raw_iova(
        &self,
        start: *mut u8,
        len: usize,
        iova: u64,
        access: Access,
    ) -> Result<MemoryRegion, Error> {
        // SAFETY: the caller answers for the memory.
        unsafe { self.register_raw(start, len, Some(iova), access) }
    }

    /// Memory for fast registration: closed until a [`SendWr::reg_mr`](crate::SendWr::reg_mr) opens it.
    ///
    /// # Errors
    /// As [`alloc_mr`](Self::alloc_mr).
    pub fn alloc_fast_mr(&self, len: usize) -> Result<FastMemoryRegion, Error> {
        FastMemoryRegion::new(self, len)
    }

    /// A memory window, which shows nothing yet.
    ///
    /// # Errors
    /// [`Error::Refused`] when the device has none left.
    pub fn alloc_mw(&self, kind: MwType) -> Result<MemoryWindow, Error> {
        MemoryWindow::new(self, kind)
    }

    /// Finds the way to a peer or a multicast group, for datagrams of queue pairs of this domain. As for a connection it
    /// leads to a MAC that is known: finding it may take seconds while the kernel asks for a neighbour. The MAC of a
    /// multicast group follows from its address.
    ///
    /// # Errors
    /// [`Error::Modify`] when the address cannot be reached or the GID table has no such entry.
    pub fn create_ah(&self, av: &AddressVector) -> Result<AddressHandle, Error> {
        AddressHandle::new(self, av)
    }

    /// The way back to who sent a datagram (`ibv_create_ah_from_wc`): `header` is what stands before its payload, and
    /// nobody has to be asked for the MAC.
    ///
    /// # Errors
    /// [`Error::Config`] when the completion is not that of a datagram.
    pub fn create_ah_from_wc(
        &self,
        completion: &Completion,
        header: &[u8; grh::BYTES],
    ) -> Result<AddressHandle, Error> {
        AddressHandle::answer(self, completion, header)
    }

    /// A shared receive queue.
    ///
    /// # Errors
    /// [`Error::Refused`] when a size is out of range or the device has no such queue left.
    pub fn create_srq(&self, attr: SrqAttr) -> Result<SharedReceiveQueue, Error> {
        SharedReceiveQueue::new(self, attr, None)
    }

    /// A shared receive queue for the XRC targets of a domain; its receives complete at `cq` (`ibv_create_srq_ex`).
    ///
    /// # Errors
    /// As [`create_srq`](Self::create_srq), and [`Error::OtherDevice`].
    pub fn create_xrc_srq(
        &self,
        attr: SrqAttr,
        xrcd: &XrcDomain,
        cq: &CompletionQueue,
    ) -> Result<SharedReceiveQueue, Error> {
        self.context().check_same(xrcd.context())?;
        self.context().check_same(cq.context())?;
        SharedReceiveQueue::new(self, attr, Some((xrcd.clone(), cq.clone())))
    }

    /// A queue pair whose sends complete at `send_cq` and whose receives complete at `recv_cq`, which may be
    /// the same.
    pub fn create_qp<'a>(
        &'a self,
        qp_type: QpType,
        send_cq: &'a CompletionQueue,
        recv_cq: &'a CompletionQueue,
    ) -> QpBuilder<'a> {
        QpBuilder::new(self, qp_type, send_cq, recv_cq)
    }

    /// The device that it belongs to.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.ctx
    }

    pub(crate) fn handle(&self) -> Pd {
        self.0.pd
    }

    /// # Safety
    /// As [`reg_mr_raw`](Self::reg_mr_raw).
    unsafe fn register_raw(
        &self,
        start: *mut u8,
        len: usize,
        iova: Option<u64>,
        access: Access,
    ) -> Result<MemoryRegion, Error> {
        let start = NonNull::new(start).ok_or(NULL)?;
        // SAFETY: the caller promises what `Region::from_raw` asks for; every clone of the region is gone
        // when the `MemoryRegion` is, which deregisters it first.
        let region = unsafe { Region::from_raw(start, len) };
        let lent = if access.contains(Access::LOCAL_WRITE) { Lent::Writable } else { Lent::ReadOnly };
        MemoryRegion::register(self, RegisteredBytes::new(region, lent), iova, access)
    }
}

impl std::fmt::Debug for ProtectionDomain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ProtectionDomain").field(&self.0.pd).finish()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let freed = self.ctx.core().control(|port, _| port.engine.dealloc_pd(self.pd));
        debug_assert_eq!(freed, Ok(()), "every user of the domain holds a handle to it");
    }
}
