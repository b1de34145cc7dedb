//! Registered memory: what the application and the wire both write.
//!
//! Remote writes race with the application by design, as they do with RDMA hardware. So no reference to registered
//! memory exists while it is registered: bytes move in and out by copy only, through [`copy_out`] and [`copy_in`],
//! and the aligned words of atomic operations through [`core::sync::atomic::AtomicU64`]. A racing writer
//! changes which bytes are copied and nothing else, as each byte is read or written once.
//!
//! Every access names a key that is looked up when the bytes move. Deregistering removes the key, so it revokes the
//! region: later work requests fail, and peers get a NAK.
//!
//! A key names an object: a region that a control call registered, a region for fast registration, or a window. What
//! an object opens at present is a view: bytes, the address of the first one, rights. A window's view is a part of the
//! bytes of a region, cut out when it is bound, so an access takes the same steps whatever its key names, and a region
//! stays as long as windows are bound to it. The upper 24 bits of a key find the object and never change; the lower
//! 8 may, each time a work request opens it anew. All 32 are random and all are compared.

mod copy;
mod crc;
mod fast;
mod invalidate;
mod keys;
mod mr;
mod object;
mod region;
mod table;
#[cfg(test)]
mod tests;
mod transfer;
mod window;

pub use copy::{copy_in, copy_out};
pub use crc::Crc;
pub(crate) use keys::Keys;
pub use mr::{MrKeys, Reregister};
pub(crate) use object::{AccessError, Subject};
pub use region::Region;
pub(crate) use table::Memory;
pub(crate) use transfer::AtomicOp;
pub use window::MwType;
