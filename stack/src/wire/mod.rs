//! Packet formats of RoCEv2: one file a format, the same names in each.
//!
//! [`Packet::parse`] turns the bytes of a frame into a value; a value that exists passed every check that
//! does not need a queue pair: lengths, versions, checksums, the opcode, the invariant CRC. [`emit`] writes a
//! frame from a per-path [`Template`] and the headers of one packet. Neither allocates, neither panics on
//! what a peer sent.
//!
//! Wire integers are types ([`Psn`], [`Qpn`], ...), and an [`Operation`] carries exactly the headers its
//! opcode has.

mod aeth;
mod atomic_eth;
mod bth;
mod bytes;
mod class;
pub mod cm;
mod deth;
mod emit;
#[cfg(test)]
mod examples;
mod feth;
mod icrc;
mod ip;
mod link;
mod mac;
mod mad;
mod malformed;
mod mtu;
mod opcode;
mod opcode_table;
mod operation;
mod packet;
mod path;
mod payload;
mod psn;
mod qpn;
mod reth;
mod service;
mod source_port;
mod template;

pub use aeth::{Aeth, NakCode, Syndrome};
pub use atomic_eth::AtomicEth;
pub use bth::Bth;
pub use class::Class;
pub use deth::Deth;
pub use emit::{MAX_HEADER, emit, overhead};
pub use feth::Feth;
pub use icrc::{double_icrc, icrc};
pub use ip::Ip;
pub use link::VlanTag;
pub use mac::{MacAddr, ParseMacError};
pub use mad::{MAD_LEN, MadHeader, MadRefused};
pub use malformed::Malformed;
pub use mtu::Mtu;
pub use opcode::{Opcode, PayloadRule};
pub use operation::Operation;
pub use packet::Packet;
pub use path::{Path, PathError};
pub use payload::{Pad, Payload};
pub use psn::Psn;
pub use qpn::Qpn;
pub use reth::Reth;
pub use service::{Position, Service};
pub use source_port::source_port;
pub use template::Template;

/// UDP destination port of RoCEv2 (protocol section 1.1).
pub const ROCE_PORT: u16 = 4791;
