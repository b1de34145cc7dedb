//! Memory regions.

use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use uroce_stack::{Access, MrKeys, Region, Sge};

use crate::error::Error;
use crate::pd::ProtectionDomain;

/// Memory that the wire may read and write (`ibv_mr`).
///
/// Peers may change it at any moment, so no reference to it exists: bytes are copied in and out, and words of
/// 64 bits are read and changed atomically, also with respect to the atomic operations of peers.
///
/// Dropping it revokes it at once. Work requests that still name it complete with
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
    inner: Arc<MrInner>,
}

/// How the memory may be changed through the region itself, whatever `Access` says about the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lent {
    Writable,
    /// Borrowed from a shared reference.
    ReadOnly,
}

/// A registration; revoked once, by whoever comes first.
#[derive(Debug)]
pub(crate) struct MrInner {
    pd: ProtectionDomain,
    region: Region,
    iova: u64,
    keys: MrKeys,
    lent: Lent,
    revoked: AtomicBool,
}

impl MrInner {
    /// Takes the registration back. When it returns, the engine does not touch the memory any more.
    pub(crate) fn revoke(&self) {
        if self.revoked.swap(true, Ordering::AcqRel) {
            return;
        }
        let core = self.pd.context().core();
        let revoked = core.control(|port, _| port.engine.deregister_mr(self.keys.lkey));
        debug_assert!(revoked.is_ok(), "a region is deregistered once: {revoked:?}");
    }
}

impl MemoryRegion {
    pub(crate) fn register(
        pd: &ProtectionDomain,
        region: Region,
        iova: Option<u64>,
        access: Access,
        lent: Lent,
    ) -> Result<Self, Error> {
        let iova = iova.unwrap_or(region.addr());
        let clone = region.clone();
        let core = pd.context().core();
        let keys = core.control(|port, _| port.engine.register_mr(pd.handle(), clone, iova, access))?;
        let (pd, revoked) = (pd.clone(), AtomicBool::new(false));
        Ok(Self { inner: Arc::new(MrInner { pd, region, iova, keys, lent, revoked }) })
    }

    pub(crate) const fn inner(&self) -> &Arc<MrInner> {
        &self.inner
    }

    /// How many bytes it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inner.region.len()
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inner.region.is_empty()
    }

    /// The address of the first byte as [`Sge`]s and peers know it: its iova.
    #[must_use]
    pub fn addr(&self) -> u64 {
        self.inner.iova
    }

    /// The local key, for [`Sge`].
    #[must_use]
    pub fn lkey(&self) -> u32 {
        self.inner.keys.lkey
    }

    /// The remote key, to be told to peers who may reach the memory.
    #[must_use]
    pub fn rkey(&self) -> u32 {
        self.inner.keys.rkey
    }

    /// The memory itself. To dereference it, the caller must know that no peer and no work request touches
    /// the bytes meanwhile.
    #[must_use]
    pub fn as_ptr(&self) -> *mut u8 {
        self.inner.region.as_ptr()
    }

    /// The domain that it belongs to.
    #[must_use]
    pub fn pd(&self) -> &ProtectionDomain {
        &self.inner.pd
    }

    /// Names bytes of it in a work request.
    ///
    /// The range is not checked here: whoever posts an entry that reaches beyond the region gets
    /// [`LocProtErr`](crate::WcStatus::LocProtErr). One entry holds at most 2^32 - 1 bytes; longer ranges are
    /// cut there.
    #[must_use]
    pub fn sge(&self, range: impl RangeBounds<usize>) -> Sge {
        let (start, end) = bounds(range, self.len());
        let length = u32::try_from(end.saturating_sub(start)).unwrap_or(u32::MAX);
        Sge { addr: self.addr().wrapping_add(start as u64), length, lkey: self.lkey() }
    }

    /// What a peer needs to reach the whole region, as far as `Access` allows it.
    #[must_use]
    pub fn remote(&self) -> RemoteMr {
        RemoteMr { addr: self.addr(), len: self.len() as u64, rkey: self.rkey() }
    }

    /// Copies `out.len()` bytes out, from `offset` on.
    ///
    /// Bytes that a peer or a work request writes meanwhile may be old or new, each on its own.
    ///
    /// # Errors
    /// [`Error::Bounds`].
    pub fn read_at(&self, offset: usize, out: &mut [u8]) -> Result<(), Error> {
        let length = out.len();
        if self.inner.region.read_at(offset, out) { Ok(()) } else { Err(self.out_of_bounds(offset, length)) }
    }

    /// Copies `bytes` in, from `offset` on.
    ///
    /// # Errors
    /// [`Error::Bounds`]; [`Error::ReadOnly`] when the memory was lent for reading.
    pub fn write_at(&self, offset: usize, bytes: &[u8]) -> Result<(), Error> {
        self.check_writable()?;
        if self.inner.region.write_at(offset, bytes) {
            Ok(())
        } else {
            Err(self.out_of_bounds(offset, bytes.len()))
        }
    }

    /// Copies a range out.
    ///
    /// # Errors
    /// [`Error::Bounds`].
    pub fn to_vec(&self, range: impl RangeBounds<usize>) -> Result<Vec<u8>, Error> {
        let (start, end) = bounds(range, self.len());
        let length = end.saturating_sub(start);
        if end > self.len() || start > end {
            return Err(self.out_of_bounds(start, length));
        }
        let mut bytes = vec![0; length];
        self.read_at(start, &mut bytes)?;
        Ok(bytes)
    }

    /// The word at `offset`, in host order. What was written before a peer's or another thread's store of it
    /// is visible afterwards (acquire).
    ///
    /// # Errors
    /// [`Error::Bounds`], [`Error::Unaligned`].
    pub fn load_u64(&self, offset: usize) -> Result<u64, Error> {
        Ok(self.word(offset)?.load(Ordering::Acquire))
    }

    /// Stores a word at `offset`, in host order (release).
    ///
    /// # Errors
    /// [`Error::Bounds`], [`Error::Unaligned`], [`Error::ReadOnly`].
    pub fn store_u64(&self, offset: usize, value: u64) -> Result<(), Error> {
        self.check_writable()?;
        self.word(offset)?.store(value, Ordering::Release);
        Ok(())
    }

    /// Adds to the word at `offset`, modulo 2^64, and returns what it was. Atomic also with respect to peers.
    ///
    /// # Errors
    /// [`Error::Bounds`], [`Error::Unaligned`], [`Error::ReadOnly`].
    pub fn fetch_add_u64(&self, offset: usize, value: u64) -> Result<u64, Error> {
        self.check_writable()?;
        Ok(self.word(offset)?.fetch_add(value, Ordering::AcqRel))
    }

    /// Stores `new` at `offset` if the word there is `current`, and returns what it was: `Ok` if it was
    /// `current`, an inner `Err` otherwise, as [`AtomicU64::compare_exchange`] does. Atomic also with respect
    /// to peers.
    ///
    /// # Errors
    /// [`Error::Bounds`], [`Error::Unaligned`], [`Error::ReadOnly`].
    pub fn compare_exchange(&self, offset: usize, current: u64, new: u64) -> Result<Result<u64, u64>, Error> {
        self.check_writable()?;
        Ok(self.word(offset)?.compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire))
    }

    fn word(&self, offset: usize) -> Result<&AtomicU64, Error> {
        self.inner.region.word(offset).ok_or_else(|| {
            let inside = offset.checked_add(8).is_some_and(|end| end <= self.len());
            if inside { Error::Unaligned(offset) } else { self.out_of_bounds(offset, 8) }
        })
    }

    fn check_writable(&self) -> Result<(), Error> {
        if self.inner.lent == Lent::Writable { Ok(()) } else { Err(Error::ReadOnly) }
    }

    fn out_of_bounds(&self, offset: usize, length: usize) -> Error {
        Error::Bounds { offset, end: offset as u128 + length as u128, length: self.len() }
    }
}

impl Drop for MemoryRegion {
    fn drop(&mut self) {
        self.inner.revoke();
    }
}

fn bounds(range: impl RangeBounds<usize>, len: usize) -> (usize, usize) {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&start) => start.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&end) => end.saturating_add(1),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => len.max(start),
    };
    (start, end)
}

/// What one needs to reach a peer's memory: where it is, how long, and its remote key.
///
/// Send it to the peer in whatever way the applications talk before RDMA does; [`to_bytes`](Self::to_bytes)
/// and [`from_bytes`](Self::from_bytes) are one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteMr {
    /// Address of the first byte, in the peer's terms.
    pub addr: u64,
    /// How many bytes. For the reader only: the peer checks for itself.
    pub len: u64,
    /// The peer's remote key.
    pub rkey: u32,
}

impl RemoteMr {
    /// How many bytes [`to_bytes`](Self::to_bytes) makes.
    pub const BYTES: usize = 20;

    /// The part from `offset` on; an empty one when `offset` lies beyond the end.
    #[must_use]
    pub const fn at(self, offset: u64) -> Self {
        Self { addr: self.addr.wrapping_add(offset), len: self.len.saturating_sub(offset), rkey: self.rkey }
    }

    /// Address, length and key, each big-endian.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.addr.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.len.to_be_bytes());
        bytes[16..].copy_from_slice(&self.rkey.to_be_bytes());
        bytes
    }

    /// What [`to_bytes`](Self::to_bytes) made.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let word = |at| bytes[at..at + 8].iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
        let rkey = bytes[16..].iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
        Self { addr: word(0), len: word(8), rkey }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_region_travels_as_bytes() {
        let remote = RemoteMr { addr: 0x0123_4567_89ab_cdef, len: 1 << 40, rkey: 0xdead_beef };
        assert_eq!(RemoteMr::from_bytes(remote.to_bytes()), remote);
        assert_eq!(remote.at(16), RemoteMr { addr: remote.addr + 16, len: remote.len - 16, ..remote });
        assert_eq!(remote.at(1 << 41).len, 0);
    }

    #[test]
    fn ranges_of_every_shape() {
        assert_eq!(bounds(.., 9), (0, 9));
        assert_eq!(bounds(2..=5, 9), (2, 6));
        assert_eq!(bounds(20.., 9), (20, 20));
        assert_eq!(bounds(..20, 9), (0, 20));
        assert_eq!(
            bounds((Bound::Excluded(usize::MAX), Bound::Included(usize::MAX)), 9),
            (usize::MAX, usize::MAX)
        );
    }
}
