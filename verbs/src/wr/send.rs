//! Send work requests.

use std::ops::RangeBounds;

use uroce_stack::wire::Qpn;
use uroce_stack::{
    Access, BindMw, FlushPlacement, FlushScope, PostError, Recipient, RegisterMr, RemoteAddr, SendFlags,
    SendOp, Sge,
};

use super::data::{Data, Word};
use super::sge::SgeList;
use crate::ah::AddressHandle;
use crate::fast::FastMemoryRegion;
use crate::mw::{BindInfo, MemoryWindow};
use crate::remote::RemoteMr;

/// A send work request: an operation, its data, and how it is to be done.
///
/// Made by the function of its operation, refined by the methods that follow:
///
/// ```
/// # let pair = uroce::testing::loopback_pair(Default::default())?;
/// # let pd = pair.0.alloc_pd()?;
/// # let mr = pd.alloc_mr(64, uroce::Access::LOCAL_WRITE | uroce::Access::REMOTE_WRITE)?;
/// # let remote = mr.remote();
/// use uroce::SendWr;
/// let write = SendWr::rdma_write(1, mr.sge(..8), remote).imm(7).signaled();
/// let fetch = SendWr::fetch_and_add(2, mr.sge(8..16), remote, 1).fence().signaled();
/// # Ok::<(), uroce::Error>(())
/// ```
///
/// Unless [`signaled`](Self::signaled), or on a queue pair made with `sq_sig_all`, success brings no
/// completion; failure always does. What the transport service of a queue pair does not have is refused when posted:
///
/// | | RC, XRC | UC | UD |
/// |---|---|---|---|
/// | SEND, also with immediate | yes | yes | yes, [to](Self::to) an address |
/// | RDMA WRITE, also with immediate | yes | yes | |
/// | SEND with invalidate, RDMA READ, atomics, ATOMIC WRITE, FLUSH | yes | | |
/// | local invalidate, bind, fast registration | yes | yes | |
#[derive(Clone, Debug)]
pub struct SendWr {
    wr_id: u64,
    op: SendOp,
    flags: SendFlags,
    data: Data,
    to: To,
    /// What was asked for that the operation does not have.
    misuse: Option<&'static str>,
}

/// Who gets it.
#[derive(Clone, Debug)]
enum To {
    Peer,
    Datagram { ah: AddressHandle, qpn: Qpn, qkey: u32 },
    Srq(u32),
}

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

    /// Sends it to a queue pair, or to the members of a multicast group, which have number [`Qpn::MULTICAST`]; UD only,
    /// and there always.
    ///
    /// `qkey` is what the receiver must have. With bit 31 set, the sender's own Q_Key is sent instead (IBTA, Q_Key).
    #[must_use]
    pub fn to(mut self, ah: &AddressHandle, qpn: Qpn, qkey: u32) -> Self {
        self.to = To::Datagram { ah: ah.clone(), qpn, qkey };
        self
    }

    /// Addresses it to a shared receive queue of the peer by its [number](crate::SharedReceiveQueue::number); XRC
    /// initiators only, and there always.
    #[must_use]
    pub fn to_srq(mut self, number: u32) -> Self {
        self.to = To::Srq(number);
        self
    }

    /// Adds an immediate, which the peer finds in the completion of a receive; also an RDMA WRITE consumes
    /// one then.
    ///
    /// The value is in host order at both ends. Only SEND and RDMA WRITE carry one: on anything else posting
    /// fails.
    #[must_use]
    pub fn imm(mut self, value: u32) -> Self {
        match &mut self.op {
            SendOp::Send { immediate } | SendOp::Write { immediate, .. } => *immediate = Some(value),
            _ => self.misuse = Some("only SEND without invalidation and RDMA WRITE carry an immediate"),
        }
        self
    }

    /// Success, too, brings a completion.
    #[must_use]
    pub fn signaled(self) -> Self {
        self.with(SendFlags::SIGNALED)
    }

    /// Does not start before every earlier READ and atomic operation of the queue pair has completed.
    #[must_use]
    pub fn fence(self) -> Self {
        self.with(SendFlags::FENCE)
    }

    /// Wakes a peer whose completion queue is armed for solicited completions only.
    #[must_use]
    pub fn solicited(self) -> Self {
        self.with(SendFlags::SOLICITED)
    }

    pub(crate) fn as_stack(&self) -> Result<uroce_stack::SendWr<'_>, PostError> {
        if let Some(misuse) = self.misuse {
            return Err(PostError::Invalid(misuse));
        }
        let to = match &self.to {
            To::Peer => Recipient::Peer,
            To::Datagram { ah, qpn, qkey } => Recipient::Datagram { ah: ah.stack(), qpn: *qpn, qkey: *qkey },
            To::Srq(srqn) => Recipient::Xrc { srqn: *srqn },
        };
        let (wr_id, op, flags) = (self.wr_id, self.op, self.flags);
        Ok(uroce_stack::SendWr { wr_id, op, flags, data: self.data.gather(), to })
    }

    fn new(wr_id: u64, op: SendOp, sges: impl Into<SgeList>) -> Self {
        Self::with_data(wr_id, op, Data::Sges(sges.into()))
    }

    const fn with_data(wr_id: u64, op: SendOp, data: Data) -> Self {
        Self { wr_id, op, flags: data.flags(), data, to: To::Peer, misuse: None }
    }

    fn with(mut self, flag: SendFlags) -> Self {
        self.flags |= flag;
        self
    }
}

impl From<RemoteMr> for RemoteAddr {
    fn from(remote: RemoteMr) -> Self {
        Self { va: remote.addr, rkey: remote.rkey }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REMOTE: RemoteMr = RemoteMr { addr: 0x1000, len: 64, rkey: 7 };

    #[test]
    fn the_builder_says_what_was_asked_for() {
        let wr = SendWr::rdma_write(9, Sge::default(), REMOTE).imm(5).signaled().fence().solicited();
        let wr = wr.as_stack().expect("a valid request");
        let remote = RemoteAddr { va: 0x1000, rkey: 7 };
        assert_eq!((wr.wr_id, wr.op), (9, SendOp::Write { remote, immediate: Some(5) }));
        assert_eq!(wr.flags, SendFlags::SIGNALED | SendFlags::FENCE | SendFlags::SOLICITED);
    }

    #[test]
    fn an_immediate_where_there_is_none_is_refused() {
        for wr in [SendWr::rdma_read(1, [], REMOTE), SendWr::send_with_inv(1, [], 7), SendWr::local_inv(1, 7)]
        {
            assert!(wr.imm(5).as_stack().is_err());
        }
    }

    #[test]
    fn a_shared_receive_queue_is_named_by_its_number() {
        let wr = SendWr::send(1, []).to_srq(0x1234);
        assert!(matches!(wr.as_stack().expect("a valid request").to, Recipient::Xrc { srqn: 0x1234 }));
    }
}
