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
    }
}

impl Access {
    /// The rights that concern peers.
    pub const REMOTE: Self = Self::REMOTE_WRITE.union(Self::REMOTE_READ).union(Self::REMOTE_ATOMIC);

    /// Whether a region may be registered so: what peers may change, the local side must be
    /// allowed to change too (IBTA, Register Memory Region; `EINVAL` in verbs).
    pub(crate) fn is_valid_for_region(self) -> bool {
        let remote_change = Self::REMOTE_WRITE.union(Self::REMOTE_ATOMIC);
        !self.intersects(remote_change) || self.contains(Self::LOCAL_WRITE)
    }
}
