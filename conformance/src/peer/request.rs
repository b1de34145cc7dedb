//! Work requests and what comes of them.

use std::net::Ipv6Addr;

/// A part of a peer's region. It may lie outside: the peer must notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where it starts, from the start of the region.
    pub offset: usize,
    /// Bytes.
    pub length: usize,
}

/// Memory of the other side, as a request names it; nobody promises that it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Address of the first byte.
    pub addr: u64,
    /// Key.
    pub rkey: u32,
}

/// What a FLUSH covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// So many bytes from the remote address on.
    Range(u32),
    /// The whole region.
    Region,
}

/// What a send request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of the verbs operations")]
pub enum Operation {
    /// SEND.
    Send { immediate: Option<u32> },
    /// SEND that invalidates a key of the other side.
    SendInvalidate { rkey: u32 },
    /// RDMA WRITE.
    Write { remote: Remote, immediate: Option<u32> },
    /// RDMA READ.
    Read { remote: Remote },
    /// COMPARE SWAP.
    CompareSwap { remote: Remote, compare: u64, swap: u64 },
    /// FETCH ADD.
    FetchAdd { remote: Remote, add: u64 },
    /// ATOMIC WRITE of eight bytes, carried in the request itself.
    AtomicWrite { remote: Remote, value: [u8; 8] },
    /// FLUSH until everybody sees the bytes.
    Flush { remote: Remote, placement: Placement },
    /// Invalidates a key of this side.
    LocalInvalidate { rkey: u32 },
}

/// Who gets a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Address, or multicast group.
    pub gid: Ipv6Addr,
    /// Number of the queue pair there.
    pub qp_num: u32,
    /// Its Q_Key.
    pub qkey: u32,
}

/// A send request; always signaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// What to do.
    pub operation: Operation,
    /// Local memory; what the operation does not use is ignored.
    pub part: Part,
    /// Index of the queue pair it is posted to.
    pub queue_pair: usize,
    /// Who gets it, on a datagram queue pair.
    pub to: Option<Datagram>,
}

impl Request {
    /// A request for the first queue pair.
    pub const fn new(wr_id: u64, operation: Operation, part: Part) -> Self {
        Self { wr_id, operation, part, queue_pair: 0, to: None }
    }

    /// The same for another queue pair.
    #[must_use]
    pub const fn on(self, queue_pair: usize) -> Self {
        Self { queue_pair, ..self }
    }

    /// The same as a datagram.
    #[must_use]
    pub const fn to(self, datagram: Datagram) -> Self {
        Self { to: Some(datagram), ..self }
    }
}

/// A work completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// As in the work request.
    pub wr_id: u64,
    /// One of [`status`](super::status).
    pub status: u32,
    /// One of [`opcode`](super::opcode); undefined unless the status is success.
    pub opcode: u32,
    /// Bytes received or read; undefined for other operations.
    pub byte_len: u32,
    /// Immediate data that arrived.
    pub immediate: Option<u32>,
    /// Key of this side that the message invalidated.
    pub invalidated: Option<u32>,
    /// Number of the local queue pair.
    pub qp_num: u32,
    /// Number of the sender's queue pair; of a datagram.
    pub src_qp: u32,
    /// Bits of [`flag`](super::flag).
    pub flags: u32,
}
