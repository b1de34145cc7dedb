//! Registered memory: what the application and the wire both write.
//!
//! Remote writes race with the application by design, as they do with RDMA hardware. So no reference to registered
//! memory exists while it is registered: bytes move in and out by copy only, through [`copy_out`] and [`copy_in`],
//! and the aligned words of atomic operations through [`core::sync::atomic::AtomicU64`]. A racing writer
//! changes which bytes are copied and nothing else, as each byte is read or written once.
//!
//! Every access names a key that is looked up when the bytes move. Deregistering removes the key, so it revokes the
//! region: later work requests fail, and peers get a NAK.

mod copy;
mod crc;
mod keys;
mod region;
mod table;

pub use copy::{copy_in, copy_out};
pub use crc::Crc;
pub(crate) use keys::Keys;
pub use region::Region;
pub use table::MrKeys;
pub(crate) use table::{AccessError, AtomicOp, Memory};
