//! Access rights of memory regions and queue pairs.

use bitflags::bitflags;

bitflags! {
    /// What a memory region or a queue pair lets others do; the values of `ibv_access_flags`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Access: u32 {
        /// The local endpoint may write: receive buffers, READ and atomic results.
        const LOCAL_WRITE = 1;
        /// Peers may RDMA WRITE. On a region it requires [`Access::LOCAL_WRITE`].
        const REMOTE_WRITE = 1 << 1;
        /// Peers may RDMA READ.
        const REMOTE_READ = 1 << 2;
        /// Peers may CMP_SWAP and FETCH_ADD. On a region it requires [`Access::LOCAL_WRITE`].
        const REMOTE_ATOMIC = 1 << 3;
        /// Memory windows may be bound to the region.
        const MW_BIND = 1 << 4;
        /// Addresses count from 0 at the first byte: `iova` of the region or window must be 0.
        const ZERO_BASED = 1 << 5;
        /// Peers may FLUSH to make earlier writes visible to everybody.
        const FLUSH_GLOBAL = 1 << 8;
        /// Peers may FLUSH to make earlier writes survive a loss of power. No region here can be registered so.
        const FLUSH_PERSISTENT = 1 << 9;
        /// Writes may be seen out of order. Accepted and without effect: they are always in order here.
        const RELAXED_ORDERING = 1 << 20;
    }
}

impl Access {
    /// The rights that concern peers.
    pub const REMOTE: Self = Self::REMOTE_WRITE.union(Self::REMOTE_READ).union(Self::REMOTE_ATOMIC);

    /// The rights that a memory window may give.
    pub const WINDOW: Self = Self::REMOTE.union(Self::ZERO_BASED).union(Self::FLUSH_GLOBAL);

    /// Whether a region may be registered so: what peers may change, the local side must be
    /// allowed to change too (IBTA, Register Memory Region; `EINVAL` in verbs).
    pub(crate) fn is_valid_for_region(self) -> bool {
        let remote_change = Self::REMOTE_WRITE.union(Self::REMOTE_ATOMIC);
        !self.intersects(remote_change) || self.contains(Self::LOCAL_WRITE)
    }
}
