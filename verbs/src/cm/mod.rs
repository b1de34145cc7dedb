//! The connection manager: connections by IP address and port, as `librdmacm` makes them.
//!
//! An [`EventChannel`] belongs to a device; [`CmId`]s are made on it. What a call starts ends in a [`CmEvent`] on the
//! channel, under the names and in the order of `rdma_cm`. The device's engine answers peers by itself meanwhile, through
//! queue pair 1.
//!
//! [`Listener`] and [`connect`](crate::Context::connect) wrap this for programs that only want a connection.

mod channel;
mod event;
mod gsi;
mod id;
mod param;
mod resolve;
mod service;
mod shared;
mod simple;

pub use channel::EventChannel;
pub use event::{CmEvent, CmEventType};
pub use id::CmId;
pub use param::{ConnParam, UDP_QKEY, UdParam};
pub use simple::{Connection, Incoming, Listener};
pub use uroce_stack::cm::{CmCounter, CmCounters};
pub use uroce_stack::wire::cm::{PortSpace, RejectReason};

pub(crate) use service::CmService;
pub(crate) use shared::IdShared;
