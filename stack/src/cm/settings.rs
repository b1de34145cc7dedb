//! The queue pair attributes that follow from what both sides agreed on (protocol section 6.6).

use core::net::IpAddr;

use super::terms::{ReplyTerms, RequestTerms};
use crate::access::Access;
use crate::qp::{QpAttr, QpState, QpType};
use crate::wire::{MacAddr, Mtu, Path, Psn, Qpn, VlanTag, source_port};

/// What one side sets its queue pair to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpSettings {
    /// RC or UC.
    pub qp_type: QpType,
    /// Our address.
    pub source: IpAddr,
    /// The peer's.
    pub destination: IpAddr,
    /// UDP source port.
    pub source_port: u16,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Hop limit or TTL.
    pub hop_limit: u8,
    /// 20 bits.
    pub flow_label: u32,
    /// Payload bytes of one packet.
    pub path_mtu: Mtu,
    /// The peer's queue pair.
    pub dest_qpn: Qpn,
    /// First PSN that the peer sends.
    pub rq_psn: Psn,
    /// First PSN that we send.
    pub sq_psn: Psn,
    /// ACK timeout exponent.
    pub timeout: u8,
    /// Retries after timeouts.
    pub retry_cnt: u8,
    /// Retries after RNR NAKs.
    pub rnr_retry: u8,
    /// READ and atomic requests outstanding at the peer at most.
    pub max_rd_atomic: u8,
    /// READ and atomic requests of the peer outstanding here at most.
    pub max_dest_rd_atomic: u8,
}

impl QpSettings {
    /// The active side's, at `source`.
    #[must_use]
    pub fn active(source: IpAddr, destination: IpAddr, request: &RequestTerms, reply: &ReplyTerms) -> Self {
        let reply = reply.within(request);
        Self {
            source_port: source_port(request.flow_label, request.qpn, reply.qpn),
            dest_qpn: reply.qpn,
            rq_psn: request.starting_psn,
            sq_psn: reply.starting_psn,
            timeout: ack_timeout(reply.target_ack_delay, request.ack_timeout.saturating_sub(1)),
            rnr_retry: reply.rnr_retry_count,
            max_rd_atomic: reply.responder_resources,
            max_dest_rd_atomic: reply.initiator_depth,
            ..Self::common(source, destination, request)
        }
    }

    /// The passive side's, at `source`.
    #[must_use]
    pub fn passive(source: IpAddr, destination: IpAddr, request: &RequestTerms, reply: &ReplyTerms) -> Self {
        let reply = reply.within(request);
        Self {
            source_port: source_port(request.flow_label, reply.qpn, request.qpn),
            dest_qpn: request.qpn,
            rq_psn: reply.starting_psn,
            sq_psn: request.starting_psn,
            rnr_retry: request.rnr_retry_count,
            max_rd_atomic: reply.initiator_depth,
            max_dest_rd_atomic: reply.responder_resources,
            ..Self::common(source, destination, request)
        }
    }

    /// What is the same on both sides, and zeros.
    fn common(source: IpAddr, destination: IpAddr, request: &RequestTerms) -> Self {
        Self {
            qp_type: request.qp_type,
            source,
            destination,
            source_port: 0,
            traffic_class: request.traffic_class,
            hop_limit: request.hop_limit,
            flow_label: request.flow_label,
            path_mtu: request.path_mtu,
            dest_qpn: Qpn::default(),
            rq_psn: Psn::default(),
            sq_psn: Psn::default(),
            timeout: request.ack_timeout,
            retry_cnt: request.retry_count,
            rnr_retry: 0,
            max_rd_atomic: 0,
            max_dest_rd_atomic: 0,
        }
    }

    /// The way to the peer, once its MAC, or the gateway's, is known.
    #[must_use]
    pub const fn path(&self, source_mac: MacAddr, destination_mac: MacAddr, vlan: Option<VlanTag>) -> Path {
        Path {
            source_mac,
            destination_mac,
            vlan,
            source: self.source,
            destination: self.destination,
            source_port: self.source_port,
            traffic_class: self.traffic_class,
            hop_limit: self.hop_limit,
            flow_label: self.flow_label,
        }
    }

    /// From RESET to INIT. The peer may write always, and read when requests of it are served at all.
    #[must_use]
    pub fn init(&self) -> QpAttr {
        let served = match self.max_dest_rd_atomic {
            0 => Access::empty(),
            _ => Access::REMOTE_READ | Access::REMOTE_ATOMIC | Access::FLUSH_GLOBAL,
        };
        QpAttr {
            pkey_index: Some(0),
            port: Some(1),
            access: Some(Access::REMOTE_WRITE | served),
            ..QpAttr::to(QpState::Init)
        }
    }

    /// From INIT to RTR, over `path`.
    #[must_use]
    pub fn rtr(&self, path: Path) -> QpAttr {
        let reliable = self.qp_type.is_reliable();
        QpAttr {
            path: Some(path),
            path_mtu: Some(self.path_mtu),
            dest_qpn: Some(self.dest_qpn),
            rq_psn: Some(self.rq_psn),
            max_dest_rd_atomic: reliable.then_some(self.max_dest_rd_atomic),
            min_rnr_timer: reliable.then_some(0),
            ..QpAttr::to(QpState::Rtr)
        }
    }

    /// From RTR to RTS.
    #[must_use]
    pub fn rts(&self) -> QpAttr {
        let reliable = self.qp_type.is_reliable();
        QpAttr {
            sq_psn: Some(self.sq_psn),
            timeout: reliable.then_some(self.timeout),
            retry_cnt: reliable.then_some(self.retry_cnt),
            rnr_retry: reliable.then_some(self.rnr_retry),
            max_rd_atomic: reliable.then_some(self.max_rd_atomic),
            ..QpAttr::to(QpState::Rts)
        }
    }
}

/// The exponent of twice a packet's life and the delay of an acknowledgement, rounded to a power of two: two exponents
/// that are close add up to the next one.
pub(super) const fn ack_timeout(ack_delay: u8, packet_life: u8) -> u8 {
    let round_trip = packet_life.saturating_add(1);
    let sum = if round_trip >= ack_delay {
        round_trip.saturating_add((ack_delay >= packet_life) as u8)
    } else {
        ack_delay.saturating_add((round_trip.saturating_add(1) >= ack_delay) as u8)
    };
    if sum > 31 { 31 } else { sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_cover_the_round_trip_and_the_delay() {
        assert_eq!(ack_timeout(15, 16), 17, "Linux over rdma_rxe");
        assert_eq!(ack_timeout(16, 16), 18);
        assert_eq!(ack_timeout(17, 16), 18);
        assert_eq!(ack_timeout(18, 16), 19);
        assert_eq!(ack_timeout(20, 16), 20);
        assert_eq!((ack_timeout(31, 31), ack_timeout(0, 31), ack_timeout(31, 0)), (31, 31, 31));
        assert_eq!((ack_timeout(255, 255), ack_timeout(255, 0)), (31, 31), "no exponents at all");
    }
}
