//! The connection manager in virtual time: each test reads like a packet trace (protocol section 6).

mod abuse;
#[path = "../allocator/mod.rs"]
mod allocator;
mod close;
mod flood;
mod handshake;
mod host;
mod loss;
mod memory;
mod peer;
mod refusals;
mod requests;
mod settings;
mod sidr;
mod states;
mod timers;
