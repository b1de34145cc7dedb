//! The operations that a send work request may ask for.

use std::ops::RangeBounds;

use uroce_stack::{Access, BindMw, FlushPlacement, FlushScope, RegisterMr, SendOp, Sge};

use super::data::{Data, Word};
use super::send::SendWr;
use super::sge::SgeList;
use crate::fast::FastMemoryRegion;
use crate::mw::{BindInfo, MemoryWindow};
use crate::remote::RemoteMr;

impl SendWr {
    /// SEND: the data fills the peer's next receive.
    #[must_use]
    pub fn send(wr_id: u64, sges: impl Into<SgeList>) -> Self {
        Self::new(wr_id, SendOp::Send { immediate: None }, sges)
    }

    /// [`send`](Self::send) of bytes that are copied now (`IBV_SEND_INLINE`): no registered memory is needed.
    /// The queue pair must have been made with a `max_inline_data` of their number or more.
    #[must_use]
    pub fn send_inline(wr_id: u64, bytes: &[u8]) -> Self {
        Self::with_data(wr_id, SendOp::Send { immediate: None }, Data::inline(bytes))
    }

    /// [`send`](Self::send) that also invalidates a key of the peer: of a type 2 window bound to the peer's queue pair, or
    /// of a fast-registered region. The peer learns which one from
    /// [`Completion::invalidated_rkey`](crate::Completion::invalidated_rkey). RC and XRC.
    #[must_use]
    pub fn send_with_inv(wr_id: u64, sges: impl Into<SgeList>, rkey: u32) -> Self {
        Self::new(wr_id, SendOp::SendInvalidate { rkey }, sges)
    }

    /// RDMA WRITE: the data goes to `to`, from its first byte on.
    #[must_use]
    pub fn rdma_write(wr_id: u64, sges: impl Into<SgeList>, to: RemoteMr) -> Self {
        Self::new(wr_id, SendOp::Write { remote: to.into(), immediate: None }, sges)
    }

    /// [`rdma_write`](Self::rdma_write) of bytes that are copied now, as [`send_inline`](Self::send_inline)
    /// does.
    #[must_use]
    pub fn rdma_write_inline(wr_id: u64, bytes: &[u8], to: RemoteMr) -> Self {
        Self::with_data(wr_id, SendOp::Write { remote: to.into(), immediate: None }, Data::inline(bytes))
    }

    /// RDMA READ: fills the entries with what `from` holds; their total length is what is read.
    #[must_use]
    pub fn rdma_read(wr_id: u64, sges: impl Into<SgeList>, from: RemoteMr) -> Self {
        Self::new(wr_id, SendOp::Read { remote: from.into() }, sges)
    }

    /// CMP_SWAP on the 64-bit word at the start of `on`, which must lie at a multiple of 8: if it equals
    /// `compare` it becomes `swap`. Its former value lands in the 8 bytes of `result`, in host order.
    #[must_use]
    pub fn cmp_and_swp(wr_id: u64, result: Sge, on: RemoteMr, compare: u64, swap: u64) -> Self {
        Self::new(wr_id, SendOp::CompareSwap { remote: on.into(), compare, swap }, result)
    }

    /// FETCH_ADD on the 64-bit word at the start of `on`, which must lie at a multiple of 8: adds `add`
    /// modulo 2^64. Its former value lands in the 8 bytes of `result`, in host order.
    #[must_use]
    pub fn fetch_and_add(wr_id: u64, result: Sge, on: RemoteMr, add: u64) -> Self {
        Self::new(wr_id, SendOp::FetchAdd { remote: on.into(), add }, result)
    }

    /// ATOMIC WRITE: 8 bytes appear at once at the start of `to`, which must lie at a multiple of 8
    /// (`IBV_WR_ATOMIC_WRITE`). The peer's region must allow [`Access::REMOTE_WRITE`].
    #[must_use]
    pub fn atomic_write(wr_id: u64, word: impl Into<Word>, to: RemoteMr) -> Self {
        Self::with_data(wr_id, SendOp::AtomicWrite { remote: to.into() }, word.into().0)
    }

    /// FLUSH: completes when what was written before to the first `length` bytes of `range`, or with
    /// [`FlushScope::Region`] to its whole region, has got as far as `placement` says (`IBV_WR_FLUSH`). Region and queue
    /// pair of the peer must allow it: [`Access::FLUSH_GLOBAL`].
    #[must_use]
    pub fn flush(
        wr_id: u64,
        range: RemoteMr,
        length: u32,
        placement: FlushPlacement,
        scope: FlushScope,
    ) -> Self {
        Self::new(wr_id, SendOp::Flush { remote: range.into(), length, placement, scope }, [])
    }

    /// Invalidates a key of our own: of a type 2 window bound to this queue pair, or of a fast-registered region
    /// (`IBV_WR_LOCAL_INV`). It waits for every request before it.
    #[must_use]
    pub fn local_inv(wr_id: u64, rkey: u32) -> Self {
        Self::new(wr_id, SendOp::LocalInvalidate { rkey }, [])
    }

    /// Binds a window to bytes of a region (`IBV_WR_BIND_MW`), under the next key of the window, which is what
    /// [`MemoryWindow::rkey`] tells from now on. So post what is made here, once and in the order in which it was made.
    #[must_use]
    pub fn bind_mw(wr_id: u64, window: &MemoryWindow, info: BindInfo<'_>) -> Self {
        Self::bind_mw_keys(wr_id, window.advance(&info))
    }

    /// [`bind_mw`](Self::bind_mw) by keys, for callers that keep account of them by themselves.
    #[must_use]
    pub fn bind_mw_keys(wr_id: u64, bind: BindMw) -> Self {
        Self::new(wr_id, SendOp::BindMw(bind), [])
    }

    /// Registers a part of a region's memory (`IB_WR_REG_MR` of the kernel), under the next key of the region, which is
    /// what [`FastMemoryRegion::rkey`] tells from now on. The first byte of the part has its own address, or 0 with
    /// [`Access::ZERO_BASED`]. What was registered before has to be invalidated first.
    #[must_use]
    pub fn reg_mr(wr_id: u64, mr: &FastMemoryRegion, part: impl RangeBounds<usize>, access: Access) -> Self {
        Self::reg_mr_keys(wr_id, mr.advance(part, access))
    }

    /// [`reg_mr`](Self::reg_mr) by keys, for callers that keep account of them by themselves.
    #[must_use]
    pub fn reg_mr_keys(wr_id: u64, register: RegisterMr) -> Self {
        Self::new(wr_id, SendOp::RegisterMr(register), [])
    }
}
