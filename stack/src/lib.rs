//! The RoCEv2 protocol as a pure state machine.
//!
//! An [`Engine`] is the HCA: it holds protection domains, memory regions, completion queues and queue pairs, takes
//! received frames, and fills frames to be sent. It has no clock, no I/O, no thread and no lock, and allocates
//! nothing per packet: time is an argument, randomness comes from a seed. The same calls with the same arguments do
//! the same, always.
//!
//! # The contract of the loop
//!
//! ```text
//! now = clock()                                        stamped once a round
//! nic.rx(64, |frame| engine.receive(now, frame))       each received frame; marks queue pairs ready, sends nothing
//! engine.expire(now)                                   timers that are due
//! nic.tx(64, |frame| engine.transmit(now, frame))      until it has nothing more to send
//! nic.flush()                                          the frames have left
//! engine.publish(|cq| ...)                             completions become visible
//! ```
//!
//! Completions are published after the flush, so that an application which exits on its last completion leaves no
//! peer without an acknowledgement. Between rounds the driver may sleep until [`Engine::next_deadline`] unless
//! [`Engine::has_work`].
//!
//! Applications post through [`SendQueue`] and [`RecvQueue`] and poll through [`CompletionReader`], each the
//! application's half of a single-producer, single-consumer ring.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod access;
pub mod cm;
mod completion;
mod config;
mod counters;
mod engine;
mod error;
mod event;
pub mod memory;
mod qp;
mod queue;
mod rng;
mod slab;
mod time;
pub mod wire;
mod work;

pub use access::Access;
pub use completion::{Completion, WcFlags, WcOpcode, WcStatus};
pub use config::{Config, Limits};
pub use counters::{Counter, Counters};
pub use engine::{Cq, Engine, NewQp, Pd, Srq, SrqAttr, SrqInit, Xrcd};
pub use error::{Error, ModifyError, PostError};
pub use event::AsyncEvent;
pub use memory::{MrKeys, MwType, Region, Reregister};
pub use qp::{AddressHandle, AttrMask, QpAttr, QpInit, QpState, QpType};
pub use queue::{CompletionReader, RecvQueue, SendQueue, SharedRecvQueue};
pub use time::Instant;
pub use work::{
    BindMw, FlushPlacement, FlushScope, Gather, Recipient, RegisterMr, RemoteAddr, SendFlags, SendOp, SendWr,
    Sge,
};
