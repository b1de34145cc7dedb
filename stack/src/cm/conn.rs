//! One connection, or one question after a queue pair for datagrams.

use core::net::IpAddr;
use core::time::Duration;

use super::config::MAX_EXPONENT;
use super::params::Route;
use super::terms::RequestTerms;
use super::{ConnId, ListenId};
use crate::time::Instant;
use crate::wire::cm::{CmKind, ServiceId};
use crate::wire::{MAD_LEN, Qpn};

/// The state of a connection; the names of IBTA volume 1, 12.9.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CmState {
    /// Asked for; no answer yet.
    ReqSent,
    /// Asked for; the peer takes its time.
    MraReqRcvd,
    /// Granted by the peer; our application sets its queue pair up.
    RepRcvd,
    /// The same, and the peer knows that it takes time.
    MraRepSent,
    /// A peer asks; our application decides.
    ReqRcvd,
    /// The same, and the peer knows that it takes time.
    MraReqSent,
    /// Granted to the peer; not confirmed yet.
    RepSent,
    /// The same; the peer takes its time.
    MraRepRcvd,
    /// In use.
    Established,
    /// We end it; no answer yet.
    DreqSent,
    /// The peer ends it; our application has not stopped yet.
    DreqRcvd,
    /// Ended; packets of it may still be under way.
    Timewait,
    /// Asked for a queue pair for datagrams; no answer yet.
    SidrReqSent,
    /// A peer asks for a queue pair for datagrams; our application decides.
    SidrReqRcvd,
}

impl CmState {
    /// Begun by a peer, and waiting for our application.
    pub(super) const fn is_pending(self) -> bool {
        matches!(self, Self::ReqRcvd | Self::MraReqSent | Self::SidrReqRcvd)
    }

    /// Begun by a peer, and not established: what a flood of requests makes.
    pub(super) const fn is_half_open(self) -> bool {
        self.is_pending() || self.is_granted()
    }

    /// Granted by our application, and not confirmed.
    pub(super) const fn is_granted(self) -> bool {
        matches!(self, Self::RepSent | Self::MraRepRcvd)
    }

    /// Asked for by us, and neither granted nor refused.
    pub(super) const fn is_asked(self) -> bool {
        matches!(self, Self::ReqSent | Self::MraReqRcvd)
    }

    /// Granted by the peer, and not confirmed by us.
    pub(super) const fn is_replied(self) -> bool {
        matches!(self, Self::RepRcvd | Self::MraRepSent)
    }

    /// Granted by one side, and not ended by either.
    pub(super) const fn is_connected(self) -> bool {
        matches!(self, Self::Established) || self.is_granted() || self.is_replied()
    }
}

/// The peer's end, once a REQ or REP has told it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Remote {
    pub(super) ca_guid: u64,
    pub(super) comm_id: u32,
    pub(super) qpn: Qpn,
}

#[derive(Debug)]
pub(super) struct Conn {
    /// Our communication identifier, and the application's handle.
    pub(super) id: ConnId,
    pub(super) state: CmState,
    /// Whether the application still holds the handle: if not, it is told nothing.
    pub(super) owned: bool,
    /// Where it was asked for, on the passive side.
    pub(super) listener: Option<ListenId>,
    pub(super) route: Route,
    pub(super) service_id: ServiceId,
    /// What the REQ said; nothing for a question.
    pub(super) terms: Option<RequestTerms>,
    pub(super) local_qpn: Option<Qpn>,
    /// The peer's identifier, which an MRA tells before a REP tells the rest.
    pub(super) remote_id: Option<u32>,
    pub(super) remote: Option<Remote>,
    /// Of the exchange that is going on: answers repeat it.
    pub(super) transaction_id: u64,
    /// How long an answer may take.
    pub(super) interval: Duration,
    pub(super) max_retries: u8,
    pub(super) retries_left: u8,
    pub(super) deadline: Option<Instant>,
    /// How long packets may be under way after the end, an exponent.
    pub(super) ack_timeout: u8,
    /// The last message but MRA and REJ, and its kind: repeated byte by byte when an answer does not come.
    pub(super) sent: Option<(CmKind, [u8; MAD_LEN])>,
}

impl Conn {
    pub(super) fn is_with(&self, peer: IpAddr, ours: IpAddr) -> bool {
        self.route.destination == peer && self.route.source == ours
    }

    pub(super) fn last_sent(&self) -> Option<CmKind> {
        self.sent.as_ref().map(|(kind, _)| *kind)
    }

    /// Starts to wait for an answer anew.
    pub(super) fn await_answer(&mut self, now: Instant) {
        self.retries_left = self.max_retries;
        self.deadline = Some(now + self.interval);
    }
}

/// The time of an exponent, 4.096 us * 2^n, as Linux rounds it: 2^(n-8) ms, and 1 ms at least.
pub(super) fn duration(exponent: u8) -> Duration {
    Duration::from_millis(1 << exponent.min(MAX_EXPONENT).saturating_sub(8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_are_milliseconds() {
        let millis = [(0, 1), (8, 1), (9, 2), (16, 256), (17, 512), (20, 4096), (24, 65536), (31, 65536)];
        for (exponent, millis) in millis {
            assert_eq!(duration(exponent), Duration::from_millis(millis), "{exponent}");
        }
    }
}
