//! One engine in virtual time, and a peer that the test plays by hand.
//!
//! A test reads like the trace of a connection: what the peer sends, what the engine answers, what completes. The
//! peer's first PSN is 100, the engine's first is 500.
#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "shared by test crates, each of which uses its part"
)]

mod frame;
mod host;
mod memory;
mod neighbours;
mod packet;
mod services;
mod setup;
mod shared;

pub use frame::*;
pub use host::*;
pub use memory::*;
pub use neighbours::*;
pub use packet::*;
pub use services::*;
pub use setup::*;
pub use shared::*;
pub use uroce_stack::wire::{
    Class, Deth, MAX_HEADER, MacAddr, Mtu, NakCode, Packet, Path, Position, Psn, Qpn, Syndrome,
};
pub use uroce_stack::{
    Access, AddressHandle, AsyncEvent, Completion, CompletionReader, Config, Counter, Cq, Engine, Gather,
    Instant, MrKeys, NewQp, Pd, PostError, QpAttr, QpInit, QpState, QpType, Recipient, RecvQueue, Region,
    RemoteAddr, SendFlags, SendOp, SendQueue, SendWr, Sge, SharedRecvQueue, Srq, SrqAttr, SrqInit, WcFlags,
    WcOpcode, WcStatus, Xrcd,
};

/// A place in the peer's memory.
pub const FAR: RemoteAddr = RemoteAddr { va: 0x7000_0000_0000, rkey: 0xBEEF };

/// Bytes that differ from their neighbours, and from those a packet before.
pub fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index % 251) as u8 + 1).collect()
}

/// Success for each of these.
pub fn ok(wr_ids: impl IntoIterator<Item = u64>) -> Vec<(u64, WcStatus)> {
    wr_ids.into_iter().map(|wr_id| (wr_id, WcStatus::Success)).collect()
}

/// A flush for each of these.
pub fn flushed(wr_ids: impl IntoIterator<Item = u64>) -> Vec<(u64, WcStatus)> {
    wr_ids.into_iter().map(|wr_id| (wr_id, WcStatus::WrFlushErr)).collect()
}
