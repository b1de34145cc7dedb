//! One side as the scenarios see it: a memory region, a completion queue, and one or a few queue pairs over both. Who
//! stands behind it (the rdma_rxe of a Linux kernel, or uRoCE) a scenario does not know.

mod request;
mod setup;
mod values;

use std::error::Error;
use std::net::Ipv6Addr;
use std::time::Duration;

pub use request::{Completion, Datagram, Operation, Part, Placement, Remote, Request};
pub use setup::{Demands, Family, FlushForm, Patience, Route, Service, Setup};
pub use values::{access, event, flag, opcode, status};

/// What the operations of a peer return; the error's text is all a scenario needs.
pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What one end of a connection must know of the other.
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

/// The two kinds of memory windows (IBTA, 10.6.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowKind {
    /// Bound by a call; any queue pair of the protection domain may use it.
    One,
    /// Bound by a work request, to a queue pair and to a key that the consumer chooses.
    Two,
}

/// What a window is to show of the region.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// The part of the region; with no length, a window of type 1 shows nothing any more.
    pub part: Part,
    /// What peers may do through it.
    pub access: u32,
}

/// States a scenario brings the first queue pair to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// RESET: everything posted is forgotten; [`Peer::connect`] brings it back.
    Reset,
    /// RTS.
    Running,
    /// SQD, with an event once the send queue has drained.
    Draining,
    /// ERR.
    Failed,
}

/// One side. What is open belongs to one scenario; opening anew closes it.
pub trait Peer {
    /// Who it is.
    fn name(&self) -> &str;

    /// Whether it is rdma_rxe, whose known deviations from the specification are expected then.
    fn is_rxe(&self) -> bool;

    /// Creates the objects that the setup asks for and returns the endpoint of each queue pair, at least one.
    ///
    /// # Errors
    /// When the peer refuses; the same goes for everything below.
    fn open(&mut self, setup: &Setup) -> Result<Vec<Endpoint>>;

    /// Brings the queue pairs to RTS, each joined to the endpoint of the same index. Datagram queue pairs have no peer.
    fn connect(&mut self, others: &[Endpoint]) -> Result<()>;

    /// Overwrites memory of the region.
    fn write(&mut self, offset: usize, data: &[u8]) -> Result<()>;

    /// Reads memory of the region.
    fn read(&mut self, part: Part) -> Result<Vec<u8>>;

    /// Posts a receive: to the shared receive queue if there is one, else to the first queue pair.
    fn post_recv(&mut self, wr_id: u64, part: Part) -> Result<()>;

    /// Posts a send to the queue pair that the request names.
    fn post_send(&mut self, request: &Request) -> Result<()>;

    /// Waits until `count` completions have come or the time is over; returns what came.
    fn completions(&mut self, count: usize, limit: Duration) -> Result<Vec<Completion>>;

    /// Allocates the memory window of this setup; returns its key.
    fn allocate_window(&mut self, kind: WindowKind) -> Result<u32>;

    /// Binds it through the first queue pair; returns the key that peers use from then on.
    fn bind(&mut self, binding: &Binding) -> Result<u32>;

    /// Asks for an event when the shared receive queue holds fewer receives than this.
    fn arm_limit(&mut self, limit: u32) -> Result<()>;

    /// The next asynchronous event, one of [`event`], or nothing when the time is over.
    fn event(&mut self, limit: Duration) -> Result<Option<u32>>;

    /// Brings the first queue pair to a state.
    fn change(&mut self, state: State) -> Result<()>;

    /// Attaches the first queue pair to a multicast group until it is closed.
    fn join(&mut self, group: Ipv6Addr) -> Result<()>;

    /// Destroys the first queue pair; everything else stays open.
    fn destroy(&mut self) -> Result<()>;

    /// Closes what is open.
    fn close(&mut self) -> Result<()>;
}
