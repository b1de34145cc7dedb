//! Unreliable services: nothing is acknowledged, nothing is sent again.
//!
//! A send completes when its last packet has been written to a frame. What arrives is taken, or dropped in silence; a
//! message that lost a packet is dropped as a whole.

mod connected;
mod datagram;
mod requester;

pub(crate) use connected::ConnectedReceiver;
pub(crate) use datagram::DatagramReceiver;
pub(crate) use requester::UnreliableRequester;
