//! Frames through an AF_XDP socket: one queue of one interface, past the kernel's network stack.
//!
//! Two objects share the work. An [`XdpProgram`] is attached once to an interface and sends the frames of RoCEv2 to
//! the sockets bound to its queues, everything else to the kernel. An [`AfXdp`] is such a socket for one queue.
//!
//! The program is attached through a link that the process holds open: whatever way the process ends, the kernel
//! detaches it. Dropping the last user of an [`XdpProgram`] detaches it at once, and [`detach_all`] does so for
//! every one of the process, for a handler of Ctrl-C.
//!
//! Frames longer than [`Nic::max_frame`](crate::Nic::max_frame) of a single buffer (3840 bytes) travel in two; see
//! `rings`, the one module that touches the shared memory.

mod asm;
mod bpf;
mod program;
mod rings;
mod rx;
mod shield;
mod socket;
mod steer;
mod tx;

pub use program::{XdpProgram, detach_all};
pub use socket::{AfXdp, XdpConfig};

pub(crate) use shield::Shield;
pub(crate) use socket::try_bind;
pub(crate) use xsk_rs::config::BindFlags;
