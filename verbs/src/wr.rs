//! Work requests: values that own what they say, to be built, kept and posted in any order.

use uroce_stack::{Gather, RemoteAddr, SendFlags, SendOp, Sge};

use crate::mr::RemoteMr;

/// Scatter/gather entries that are kept in place before they move to the heap.
const INLINE_SGES: usize = 4;
/// Bytes of inline data that are kept in place; as large as the entries.
const INLINE_BYTES: usize = INLINE_SGES * size_of::<Sge>();

/// A list of scatter/gather entries: from one [`Sge`], from an array, a slice or a vector of them.
///
/// ```
/// use uroce::{Sge, SgeList};
/// let one: SgeList = Sge::default().into();
/// let none: SgeList = [].into();
/// assert_eq!((one.as_slice().len(), none.as_slice().len()), (1, 0));
/// ```
#[derive(Clone, Debug)]
pub struct SgeList(List);

#[derive(Clone, Debug)]
enum List {
    Few { count: u8, sges: [Sge; INLINE_SGES] },
    Many(Box<[Sge]>),
}

impl SgeList {
    /// The entries.
    #[must_use]
    pub fn as_slice(&self) -> &[Sge] {
        match &self.0 {
            List::Few { count, sges } => &sges[..usize::from(*count)],
            List::Many(sges) => sges,
        }
    }
}

impl From<&[Sge]> for SgeList {
    fn from(from: &[Sge]) -> Self {
        if from.len() > INLINE_SGES {
            return Self(List::Many(from.into()));
        }
        let mut sges = [Sge::default(); INLINE_SGES];
        sges[..from.len()].copy_from_slice(from);
        Self(List::Few { count: from.len() as u8, sges })
    }
}

impl<const N: usize> From<[Sge; N]> for SgeList {
    fn from(sges: [Sge; N]) -> Self {
        sges.as_slice().into()
    }
}

impl From<Vec<Sge>> for SgeList {
    fn from(sges: Vec<Sge>) -> Self {
        sges.as_slice().into()
    }
}

impl From<Sge> for SgeList {
    fn from(sge: Sge) -> Self {
        [sge].into()
    }
}

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
/// completion; failure always does.
#[derive(Clone, Debug)]
pub struct SendWr {
    wr_id: u64,
    op: SendOp,
    flags: SendFlags,
    data: Data,
    /// An immediate was asked for where the operation has none.
    stray_immediate: bool,
}

#[derive(Clone, Debug)]
enum Data {
    Sges(SgeList),
    Short { count: u8, bytes: [u8; INLINE_BYTES] },
    Long(Box<[u8]>),
}

impl Data {
    fn inline(from: &[u8]) -> Self {
        if from.len() > INLINE_BYTES {
            return Self::Long(from.into());
        }
        let mut bytes = [0; INLINE_BYTES];
        bytes[..from.len()].copy_from_slice(from);
        Self::Short { count: from.len() as u8, bytes }
    }

    fn gather(&self) -> Gather<'_> {
        match self {
            Self::Sges(sges) => Gather::Sges(sges.as_slice()),
            Self::Short { count, bytes } => Gather::Inline(&bytes[..usize::from(*count)]),
            Self::Long(bytes) => Gather::Inline(bytes),
        }
    }
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
        Self::new_inline(wr_id, SendOp::Send { immediate: None }, bytes)
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
        Self::new_inline(wr_id, SendOp::Write { remote: to.into(), immediate: None }, bytes)
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

    /// Adds an immediate, which the peer finds in the completion of a receive; also an RDMA WRITE consumes
    /// one then.
    ///
    /// The value is in host order at both ends. Only SEND and RDMA WRITE carry one: on anything else posting
    /// fails.
    #[must_use]
    pub fn imm(mut self, value: u32) -> Self {
        match &mut self.op {
            SendOp::Send { immediate } | SendOp::Write { immediate, .. } => *immediate = Some(value),
            _ => self.stray_immediate = true,
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

    pub(crate) fn as_stack(&self) -> Result<uroce_stack::SendWr<'_>, uroce_stack::PostError> {
        if self.stray_immediate {
            let why = "only SEND and RDMA WRITE carry an immediate";
            return Err(uroce_stack::PostError::Invalid(why));
        }
        let (wr_id, op, flags) = (self.wr_id, self.op, self.flags);
        Ok(uroce_stack::SendWr { wr_id, op, flags, data: self.data.gather(), to: uroce_stack::Recipient::Peer })
    }

    fn new(wr_id: u64, op: SendOp, sges: impl Into<SgeList>) -> Self {
        Self { wr_id, op, flags: SendFlags::empty(), data: Data::Sges(sges.into()), stray_immediate: false }
    }

    fn new_inline(wr_id: u64, op: SendOp, bytes: &[u8]) -> Self {
        Self { wr_id, op, flags: SendFlags::INLINE, data: Data::inline(bytes), stray_immediate: false }
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

/// A receive: room for one incoming SEND, or for the immediate of one RDMA WRITE.
#[derive(Clone, Debug)]
pub struct RecvWr {
    pub(crate) wr_id: u64,
    pub(crate) sges: SgeList,
}

impl RecvWr {
    /// A receive into these entries, filled one after the other. None at all will do for messages without
    /// data.
    #[must_use]
    pub fn new(wr_id: u64, sges: impl Into<SgeList>) -> Self {
        Self { wr_id, sges: sges.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REMOTE: RemoteMr = RemoteMr { addr: 0x1000, len: 64, rkey: 7 };

    fn sges(count: u32) -> Vec<Sge> {
        (0..count).map(|n| Sge { addr: u64::from(n), length: n, lkey: n }).collect()
    }

    #[test]
    fn lists_of_every_length_keep_their_entries() {
        for count in 0..=32 {
            assert_eq!(SgeList::from(sges(count)).as_slice(), sges(count));
        }
    }

    #[test]
    fn inline_data_of_every_length_is_kept() {
        for length in [0, 1, INLINE_BYTES, INLINE_BYTES + 1, 512] {
            let bytes = vec![0x5a; length];
            let wr = SendWr::send_inline(1, &bytes);
            let wr = wr.as_stack().expect("a valid request");
            assert!(matches!(wr.data, Gather::Inline(kept) if kept == bytes));
        }
    }

    #[test]
    fn the_builder_says_what_was_asked_for() {
        let wr = SendWr::rdma_write(9, sges(1), REMOTE).imm(5).signaled().fence().solicited();
        let wr = wr.as_stack().expect("a valid request");
        let remote = RemoteAddr { va: 0x1000, rkey: 7 };
        assert_eq!((wr.wr_id, wr.op), (9, SendOp::Write { remote, immediate: Some(5) }));
        assert_eq!(wr.flags, SendFlags::SIGNALED | SendFlags::FENCE | SendFlags::SOLICITED);
    }

    #[test]
    fn an_immediate_on_a_read_is_refused() {
        assert!(SendWr::rdma_read(1, sges(1), REMOTE).imm(5).as_stack().is_err());
    }
}
