//! Ethernet frames in and out of one queue of one interface, and what the kernel knows about the way to a peer.
//!
//! # The contract
//!
//! A [`Nic`] lends frames, it never hands them over: [`rx`](Nic::rx) shows each received frame to a closure and
//! takes it back when the closure returns; [`tx`](Nic::tx) lends an empty frame to a closure that fills it.
//! Nothing is allocated per frame and nothing is queued above the ring of the backend, so a full ring simply
//! lends nothing: back-pressure without a packet queue.
//!
//! * Frames start with the Ethernet header and end before the frame check sequence.
//! * A transmitted frame is linear; a received one may lie in two pieces ([`RxFrame`]).
//! * After [`flush`](Nic::flush) every frame filled so far is with the wire or the kernel.
//! * To sleep: wait on [`fd`](Nic::fd) only after an `rx` that delivered fewer frames than its budget, with no frame
//!   sent since. That an interface is gone does not wake a sleeper: watch [`host::Changes`] as well.
//! * An [`std::io::Error`] means the interface is gone for good. Everything transient (full rings, busy devices,
//!   exhausted kernel buffers) is handled inside and counted in [`NicStats`]; no frame is dropped uncounted.
//!
//! The backends know nothing of RoCE but its UDP port, [`ROCE_PORT`], by which they choose their frames.

mod capture;
mod error;
mod fault;
mod loopback;
mod nic;
mod sys;

pub mod af_packet;
#[cfg(feature = "af-xdp")]
pub mod af_xdp;
pub mod cable;
pub mod host;
pub mod probe;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use af_packet::AfPacket;
#[cfg(feature = "af-xdp")]
pub use af_xdp::{AfXdp, XdpConfig, XdpProgram};
pub use cable::Cable;
pub use capture::Capture;
pub use error::OpenError;
pub use fault::{Fate, Fault, Plan, Seeded};
pub use loopback::Loopback;
pub use nic::{Mode, Nic, NicStats, RxFrame, XdpAttach};

/// The UDP destination port of RoCEv2.
pub const ROCE_PORT: u16 = 4791;
