//! What a connection manager is told when it is made.

use core::ops::Range;

use super::CmError;
use crate::wire::Mtu;

/// The configuration of one [`Cm`](super::Cm).
///
/// Several connection managers may share an interface when their identifiers do not overlap: every message but the
/// first of a connection names the identifier of its receiver.
#[derive(Clone, Debug)]
pub struct CmConfig {
    /// Seeds every random choice: identifiers and starting PSNs. Peers must not be able to guess it: take it from the
    /// operating system, except in tests.
    pub seed: [u8; 32],
    /// The adapter's GUID. It must be unique in the network: peers tell connections apart by it.
    pub ca_guid: u64,
    /// The communication identifiers to hand out, within 1 to 0xFFFFFFFF.
    pub ids: Range<u32>,
    /// The path MTU that the link carries; no connection gets a larger one.
    pub port_mtu: Mtu,
    /// Connections and questions held at a time, those in time-wait among them; 1 to 2^20.
    pub max_connections: u32,
    /// Of those, how many may have been begun by peers and not yet be established. Another one ends the oldest.
    pub half_open: u32,
    /// The same for one peer address.
    pub half_open_per_peer: u32,
    /// The same for one listener, counting only what the application has not answered, when it names no backlog.
    pub backlog: u32,
    /// How long an acknowledgement takes here at most, an exponent: 4.096 us * 2^n, 0 to 31. Told to peers.
    pub ack_delay: u8,
    /// How long a packet lives in the network at most, an exponent, 0 to 24.
    pub packet_life: u8,
    /// How soon either side has to answer a message, an exponent, 0 to 24.
    pub response_timeout: u8,
    /// How long the application may take for an answer, told to a peer that asks again: an exponent, 0 to 24.
    pub service_timeout: u8,
    /// How often a message is sent again, 0 to 15.
    pub max_cm_retries: u8,
}

/// The largest exponent of a time that is waited for: 67 s. What peers ask for beyond is cut to this, so that none of
/// them can make us wait for hours.
pub(super) const MAX_EXPONENT: u8 = 24;

impl CmConfig {
    /// The times that Linux uses over RoCE, and bounds for a device of 4096 queue pairs.
    #[must_use]
    pub const fn new(seed: [u8; 32], ca_guid: u64, port_mtu: Mtu) -> Self {
        Self {
            seed,
            ca_guid,
            ids: 1..u32::MAX,
            port_mtu,
            max_connections: 8192,
            half_open: 2048,
            half_open_per_peer: 1024,
            backlog: 1024,
            ack_delay: 15,
            packet_life: 16,
            response_timeout: 20,
            service_timeout: 24,
            max_cm_retries: 15,
        }
    }

    pub(super) fn check(&self) -> Result<(), CmError> {
        let exponent = u64::from(MAX_EXPONENT);
        check("the first identifier", self.ids.start.into(), 1, u32::MAX.into())?;
        check(
            "the end of the identifiers",
            self.ids.end.into(),
            u64::from(self.ids.start) + 1,
            u32::MAX.into(),
        )?;
        check("max_connections", self.max_connections.into(), 1, 1 << 20)?;
        check("half_open", self.half_open.into(), 1, self.max_connections.into())?;
        check("half_open_per_peer", self.half_open_per_peer.into(), 1, self.half_open.into())?;
        check("backlog", self.backlog.into(), 1, u32::MAX.into())?;
        check("ack_delay", self.ack_delay.into(), 0, 31)?;
        check("packet_life", self.packet_life.into(), 0, exponent)?;
        check("response_timeout", self.response_timeout.into(), 0, exponent)?;
        check("service_timeout", self.service_timeout.into(), 0, exponent)?;
        check("max_cm_retries", self.max_cm_retries.into(), 0, 15)
    }
}

pub(super) fn check(what: &'static str, found: u64, low: u64, high: u64) -> Result<(), CmError> {
    if (low..=high).contains(&found) { Ok(()) } else { Err(CmError::OutOfRange { what, found, low, high }) }
}
