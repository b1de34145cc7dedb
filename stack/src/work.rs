//! Work requests: what an application posts.

use bitflags::bitflags;

/// A piece of registered local memory, as `ibv_sge`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sge {
    /// Where it starts, in the address space of the region (its iova).
    pub addr: u64,
    /// How many bytes.
    pub length: u32,
    /// The region's local key.
    pub lkey: u32,
}

/// A place in the peer's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteAddr {
    /// Virtual address, in the address space of the peer's region.
    pub va: u64,
    /// The region's remote key.
    pub rkey: u32,
}

/// What a send work request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOp {
    /// SEND into the peer's next receive.
    Send {
        /// Handed to the peer's completion, in host order.
        immediate: Option<u32>,
    },
    /// RDMA WRITE.
    Write {
        /// Where to.
        remote: RemoteAddr,
        /// When set, the write consumes a receive at the peer and completes it with this value.
        immediate: Option<u32>,
    },
    /// RDMA READ.
    Read {
        /// Where from.
        remote: RemoteAddr,
    },
    /// CMP_SWAP on an aligned 64-bit word: when it equals `compare` it becomes `swap`; its former value lands
    /// in the local buffer, in host order.
    CompareSwap {
        /// Which word; 8-byte aligned.
        remote: RemoteAddr,
        /// The value expected.
        compare: u64,
        /// The value stored when it was.
        swap: u64,
    },
    /// FETCH_ADD on an aligned 64-bit word, modulo 2^64; its former value lands in the local buffer.
    FetchAdd {
        /// Which word; 8-byte aligned.
        remote: RemoteAddr,
        /// What is added.
        add: u64,
    },
}

impl Default for SendOp {
    fn default() -> Self {
        Self::Send { immediate: None }
    }
}

impl SendOp {
    /// Whether the peer answers with data: such requests count against `max_rd_atomic` and hold fences up.
    pub(crate) const fn expects_data(&self) -> bool {
        matches!(self, Self::Read { .. } | Self::CompareSwap { .. } | Self::FetchAdd { .. })
    }

    pub(crate) const fn is_atomic(&self) -> bool {
        matches!(self, Self::CompareSwap { .. } | Self::FetchAdd { .. })
    }
}

bitflags! {
    /// Flags of a send work request; the values of `ibv_send_flags`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct SendFlags: u32 {
        /// Do not start before every earlier READ and atomic of the queue pair has completed.
        const FENCE = 1;
        /// Report the completion even on success.
        const SIGNALED = 2;
        /// Fire a solicited event at the peer.
        const SOLICITED = 4;
        /// The data is copied when posted; implied by [`Gather::Inline`].
        const INLINE = 8;
    }
}

/// Where the data of a send work request is, or where its result goes.
#[derive(Clone, Copy, Debug)]
pub enum Gather<'a> {
    /// In registered memory, in this order.
    Sges(&'a [Sge]),
    /// Here; copied when posted. SEND and WRITE only.
    Inline(&'a [u8]),
}

/// A send work request.
#[derive(Clone, Copy, Debug)]
pub struct SendWr<'a> {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// What to do.
    pub op: SendOp,
    /// How.
    pub flags: SendFlags,
    /// With what data.
    pub data: Gather<'a>,
}
