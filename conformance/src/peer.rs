//! One end of a connection as the scenarios see it: one queue pair, one memory region, one completion queue. Who
//! stands behind it (the rdma_rxe of a Linux kernel, or uRoCE) a scenario does not know.

use std::error::Error;
use std::fmt;
use std::net::Ipv6Addr;
use std::time::Duration;

/// What the operations of a peer return; the error's text is all a scenario needs.
pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Access rights, with the values of `ibv_access_flags`.
pub mod access {
    /// The peer's own receives and READs may write here.
    pub const LOCAL_WRITE: u32 = 1;
    /// WRITEs of the other side.
    pub const REMOTE_WRITE: u32 = 2;
    /// READs of the other side.
    pub const REMOTE_READ: u32 = 4;
    /// Atomics of the other side.
    pub const REMOTE_ATOMIC: u32 = 8;
    /// All of them.
    pub const ALL: u32 = 15;
}

/// Completion statuses, with the values of `ibv_wc_status`.
pub mod status {
    /// It worked.
    pub const SUCCESS: u32 = 0;
    /// A message longer than the receive posted for it.
    pub const LOC_LEN_ERR: u32 = 1;
    /// The same, as rdma_rxe says it.
    pub const LOC_QP_OP_ERR: u32 = 2;
    /// The other side found the request invalid.
    pub const REM_INV_REQ_ERR: u32 = 9;
    /// The other side refused the access.
    pub const REM_ACCESS_ERR: u32 = 10;
    /// The other side could not carry the request out.
    pub const REM_OP_ERR: u32 = 11;
    /// The other side never had a receive posted.
    pub const RNR_RETRY_EXC_ERR: u32 = 13;
}

/// Completion opcodes, with the values of `ibv_wc_opcode`.
pub mod opcode {
    /// A SEND completed at its sender.
    pub const SEND: u32 = 0;
    /// A WRITE completed.
    pub const WRITE: u32 = 1;
    /// A READ completed.
    pub const READ: u32 = 2;
    /// A COMPARE SWAP completed.
    pub const COMPARE_SWAP: u32 = 3;
    /// A FETCH ADD completed.
    pub const FETCH_ADD: u32 = 4;
    /// A SEND arrived.
    pub const RECV: u32 = 128;
    /// A WRITE with immediate data arrived.
    pub const RECV_WRITE_WITH_IMM: u32 = 129;
}

/// Which of its addresses a peer uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6, not link-local.
    V6,
}

impl Family {
    /// Whether an address, IPv4 ones being mapped, is a usable one of the family.
    pub fn has(self, gid: Ipv6Addr) -> bool {
        match self {
            Self::V4 => gid.to_ipv4_mapped().is_some(),
            Self::V6 => gid.to_ipv4_mapped().is_none() && !gid.is_unicast_link_local(),
        }
    }
}

/// How the two ends are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Address family.
    pub family: Family,
    /// Path MTU in bytes: 256, 512, 1024, 2048 or 4096.
    pub mtu: u32,
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = match self.family {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        };
        write!(f, "{family} {}", self.mtu)
    }
}

/// What a scenario asks of each end.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// How the ends are joined.
    pub route: Route,
    /// Length of the region in bytes. It starts filled with [`Setup::FILL`].
    pub region: usize,
    /// Rights of the region and of the queue pair.
    pub access: u32,
    /// How often a sender tries again when no receive is posted; 7 means for ever.
    pub rnr_retry: u8,
}

impl Setup {
    /// What memory holds before anything happens.
    pub const FILL: u8 = 0xa5;
}

/// What one end must know of the other.
#[derive(Clone, Copy, Debug)]
pub struct Endpoint {
    /// Its address.
    pub gid: Ipv6Addr,
    /// Number of its queue pair.
    pub qp_num: u32,
    /// First packet sequence number it sends with.
    pub psn: u32,
    /// Address of its region.
    pub addr: u64,
    /// Key of its region.
    pub rkey: u32,
}

/// A part of a peer's region.
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

/// What a send request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of the verbs operations")]
pub enum Operation {
    /// SEND.
    Send { immediate: Option<u32> },
    /// RDMA WRITE.
    Write { remote: Remote, immediate: Option<u32> },
    /// RDMA READ.
    Read { remote: Remote },
    /// COMPARE SWAP.
    CompareSwap { remote: Remote, compare: u64, swap: u64 },
    /// FETCH ADD.
    FetchAdd { remote: Remote, add: u64 },
}

/// A send request; always signaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// What to do.
    pub operation: Operation,
    /// Local memory.
    pub part: Part,
}

/// A work completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// As in the work request.
    pub wr_id: u64,
    /// One of [`status`].
    pub status: u32,
    /// One of [`opcode`]; undefined unless the status is success.
    pub opcode: u32,
    /// Bytes received or read; undefined for other operations.
    pub byte_len: u32,
    /// Immediate data that arrived.
    pub immediate: Option<u32>,
}

/// One end. At most one connection is open at a time.
pub trait Peer {
    /// Who it is.
    fn name(&self) -> &str;

    /// Creates queue pair, completion queue and region; what was open before is closed.
    ///
    /// # Errors
    /// When the peer refuses; the same goes for everything below.
    fn open(&mut self, setup: &Setup) -> Result<Endpoint>;

    /// Brings the queue pair to RTS, joined to the other end.
    fn connect(&mut self, other: &Endpoint) -> Result<()>;

    /// Overwrites memory of the region.
    fn write(&mut self, offset: usize, data: &[u8]) -> Result<()>;

    /// Reads memory of the region.
    fn read(&mut self, part: Part) -> Result<Vec<u8>>;

    /// Posts a receive.
    fn post_recv(&mut self, wr_id: u64, part: Part) -> Result<()>;

    /// Posts a send.
    fn post_send(&mut self, request: &Request) -> Result<()>;

    /// Waits until `count` completions have come or the time is over; returns what came.
    fn completions(&mut self, count: usize, limit: Duration) -> Result<Vec<Completion>>;

    /// Closes what is open.
    fn close(&mut self) -> Result<()>;
}
