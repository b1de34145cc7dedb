//! Work requests: what an application posts.

use bitflags::bitflags;

use crate::qp::AddressHandle;
use crate::wire::Qpn;

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
    /// SEND that also invalidates one of the peer's keys (IBTA, Send with Invalidate); RC and XRC.
    SendInvalidate {
        /// The peer's key: of a type 2 window that is bound, or of a fast-registered region.
        rkey: u32,
    },
    /// ATOMIC WRITE: the 8 bytes of data appear at once in an aligned word of the peer; RC and XRC.
    AtomicWrite {
        /// Which word; 8-byte aligned.
        remote: RemoteAddr,
    },
    /// FLUSH: completes when the peer's earlier writes to the range have reached their placement; RC and XRC. Its own
    /// data is empty.
    Flush {
        /// Where the range starts.
        remote: RemoteAddr,
        /// How many bytes; meaningless with [`FlushScope::Region`].
        length: u32,
        /// How far the bytes must have got.
        placement: FlushPlacement,
        /// Which bytes.
        scope: FlushScope,
    },
    /// Invalidates a local key: of a type 2 window, or of a fast-registered region. Starts when everything before
    /// it has completed (IBTA, local invalidate fence).
    LocalInvalidate {
        /// Which key.
        rkey: u32,
    },
    /// Binds a memory window (IBTA, Bind Memory Window).
    BindMw(BindMw),
    /// Registers a region that was allocated for that (IBTA, Fast Register Physical MR).
    RegisterMr(RegisterMr),
}

/// How far a FLUSH pushes (IBTA, FETH placement type).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FlushPlacement {
    /// Visible to everybody.
    #[default]
    Global,
    /// Kept when power is lost.
    Persistent,
}

/// What a FLUSH pushes (IBTA, FETH selectivity level).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FlushScope {
    /// The range that it names.
    #[default]
    Range,
    /// The whole region.
    Region,
}

/// What a memory window is to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BindMw {
    /// The window's key as it stands.
    pub mw: u32,
    /// The key that peers will use: that of the window with any low 8 bits, for a type 2 window other ones than now.
    pub rkey: u32,
    /// The local key of the region behind it, which grants [`crate::Access::MW_BIND`].
    pub mr: u32,
    /// Where it starts, in the address space of the region.
    pub addr: u64,
    /// How many bytes; 0 unbinds a type 1 window and is refused for type 2.
    pub length: u64,
    /// What peers may do through it: [`crate::Access::WINDOW`] at most.
    pub access: crate::Access,
}

/// How a fast-registered region is to be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegisterMr {
    /// The region's key as it stands.
    pub mr: u32,
    /// Its new key: the same with any low 8 bits.
    pub key: u32,
    /// The part of the allocated memory that is registered: where it starts,
    pub offset: u64,
    /// and how many bytes.
    pub length: u64,
    /// The address of its first byte.
    pub iova: u64,
    /// What it may be used for.
    pub access: crate::Access,
}

impl Default for SendOp {
    fn default() -> Self {
        Self::Send { immediate: None }
    }
}

impl SendOp {
    /// Whether the peer answers with more than an acknowledgement: one request packet, and a response of its own.
    pub(crate) const fn is_answered(&self) -> bool {
        self.takes_depth() || matches!(self, Self::Flush { .. })
    }

    /// Whether it counts against `max_rd_atomic`, and holds fences up.
    pub(crate) const fn takes_depth(&self) -> bool {
        matches!(self, Self::Read { .. } | Self::AtomicWrite { .. }) || self.is_atomic()
    }

    /// Whether its result lands in local memory.
    pub(crate) const fn returns_data(&self) -> bool {
        matches!(self, Self::Read { .. }) || self.is_atomic()
    }

    /// Whether nothing of it goes on the wire.
    pub(crate) const fn is_local(&self) -> bool {
        matches!(self, Self::LocalInvalidate { .. } | Self::BindMw(_) | Self::RegisterMr(_))
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

/// Who gets a send work request.
#[derive(Clone, Copy, Debug, Default)]
pub enum Recipient<'a> {
    /// The peer of a connected queue pair.
    #[default]
    Peer,
    /// Any queue pair, or with number 0xFFFFFF a multicast group; UD only.
    Datagram {
        /// The way there; of the queue pair's protection domain.
        ah: &'a AddressHandle,
        /// The queue pair there.
        qpn: Qpn,
        /// Its Q_Key. With bit 31 set, the sender's own Q_Key is sent instead (IBTA, Q_Key).
        qkey: u32,
    },
    /// A shared receive queue at the peer, which the connection names in every packet; XRC initiators only.
    Xrc {
        /// The number of the shared receive queue, 24 bits.
        srqn: u32,
    },
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
    /// To whom.
    pub to: Recipient<'a>,
}
