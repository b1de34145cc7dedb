//! What both sides tell each other about a connection (protocol section 6.6).

use crate::qp::QpType;
use crate::wire::cm::{CmTransport, Rep, Req};
use crate::wire::{Mtu, Psn, Qpn};

/// What a REQ says about the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTerms {
    /// RC or UC.
    pub qp_type: QpType,
    /// The active side's queue pair.
    pub qpn: Qpn,
    /// The first PSN that the passive side sends (case X09).
    pub starting_psn: Psn,
    /// Payload bytes of one packet.
    pub path_mtu: Mtu,
    /// READ and atomic requests that the active side serves at a time.
    pub responder_resources: u8,
    /// READ and atomic requests that the active side wants to have outstanding.
    pub initiator_depth: u8,
    /// Retries after timeouts, for both sides.
    pub retry_count: u8,
    /// RNR retries of the passive side.
    pub rnr_retry_count: u8,
    /// Whether the active side uses end-to-end credits.
    pub flow_control: bool,
    /// Whether the active side's receives come from a shared receive queue.
    pub srq: bool,
    /// ACK timeout exponent of the passive side; one more than the life of a packet.
    pub ack_timeout: u8,
    /// What spreads connections over paths, 20 bits.
    pub flow_label: u32,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Hop limit or TTL.
    pub hop_limit: u8,
}

/// What a REP says about the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyTerms {
    /// The passive side's queue pair.
    pub qpn: Qpn,
    /// The first PSN that the active side sends.
    pub starting_psn: Psn,
    /// READ and atomic requests that the passive side serves at a time.
    pub responder_resources: u8,
    /// READ and atomic requests that the passive side wants to have outstanding.
    pub initiator_depth: u8,
    /// RNR retries of the active side.
    pub rnr_retry_count: u8,
    /// Whether the passive side uses end-to-end credits.
    pub flow_control: bool,
    /// Whether the passive side's receives come from a shared receive queue.
    pub srq: bool,
    /// How long the passive side takes for an acknowledgement, an exponent.
    pub target_ack_delay: u8,
}

impl RequestTerms {
    /// What `req` says; `None` when no connection could be so: another transport, or no such path MTU.
    #[must_use]
    pub fn of(req: &Req) -> Option<Self> {
        let qp_type = match req.transport {
            CmTransport::Rc => QpType::Rc,
            CmTransport::Uc => QpType::Uc,
            CmTransport::Rd | CmTransport::Extended(_) => return None,
        };
        Some(Self {
            qp_type,
            qpn: req.local_qpn,
            starting_psn: req.starting_psn,
            path_mtu: Mtu::from_code(req.path_mtu)?,
            responder_resources: req.responder_resources,
            initiator_depth: req.initiator_depth,
            retry_count: req.retry_count,
            rnr_retry_count: req.rnr_retry_count,
            flow_control: req.flow_control,
            srq: req.srq,
            ack_timeout: req.primary.ack_timeout,
            flow_label: req.primary.flow_label,
            traffic_class: req.primary.traffic_class,
            hop_limit: req.primary.hop_limit.max(1),
        })
    }
}

impl ReplyTerms {
    /// What `rep` says.
    #[must_use]
    pub const fn of(rep: &Rep) -> Self {
        Self {
            qpn: rep.local_qpn,
            starting_psn: rep.starting_psn,
            responder_resources: rep.responder_resources,
            initiator_depth: rep.initiator_depth,
            rnr_retry_count: rep.rnr_retry_count,
            flow_control: rep.flow_control,
            srq: rep.srq,
            target_ack_delay: rep.target_ack_delay,
        }
    }

    /// No deeper than `request` allows: who asks crosses over with who serves (case C77).
    #[must_use]
    pub fn within(self, request: &RequestTerms) -> Self {
        Self {
            responder_resources: self.responder_resources.min(request.initiator_depth),
            initiator_depth: self.initiator_depth.min(request.responder_resources),
            ..self
        }
    }
}
