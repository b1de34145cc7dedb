//! Arguments of the calls.

use core::net::IpAddr;

use super::CmError;
use super::config::check;
use super::terms::ReplyTerms;
use crate::qp::QpType;
use crate::wire::cm::{PrivateData, ServiceId};
use crate::wire::{Mtu, Psn, Qpn};

/// Between which addresses, and how, the packets of a connection travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Our address.
    pub source: IpAddr,
    /// The peer's; of the same IP version.
    pub destination: IpAddr,
    /// 20 bits that spread connections over paths. Without, a connection of `rdma_cm` gets one made of its ports.
    pub flow_label: Option<u32>,
    /// DSCP in bits 7:2, ECN in bits 1:0.
    pub traffic_class: u8,
    /// Hop limit or TTL, at least 1.
    pub hop_limit: u8,
    /// Service level, which becomes the VLAN priority, 0 to 7.
    pub sl: u8,
    /// Packet rate code, 0 to 63; 0 says nothing.
    pub packet_rate: u8,
}

impl Route {
    /// A route with the usual hop limit of 64 and nothing special.
    #[must_use]
    pub const fn new(source: IpAddr, destination: IpAddr) -> Self {
        Self { source, destination, flow_label: None, traffic_class: 0, hop_limit: 64, sl: 0, packet_rate: 0 }
    }

    pub(super) fn check(&self) -> Result<(), CmError> {
        if self.source.is_ipv4() != self.destination.is_ipv4() {
            return Err(CmError::Invalid("source and destination are of different IP versions"));
        }
        if !is_pair(self.source, self.destination) {
            return Err(CmError::Invalid("source and destination must be addresses of single hosts"));
        }
        check("hop_limit", self.hop_limit.into(), 1, 255)?;
        check("flow_label", self.label().into(), 0, 0xf_ffff)?;
        check("sl", self.sl.into(), 0, 7)?;
        check("packet_rate", self.packet_rate.into(), 0, 63)
    }

    /// With the flow label that Linux gives connections of `rdma_cm` (protocol section 1.2).
    pub(super) fn labelled(self, service_id: ServiceId, source_port: u16) -> Self {
        if self.flow_label.is_some() || !service_id.has_ip_header() {
            return self;
        }
        let mixed = u32::from(source_port) * 31 + u32::from(service_id.port());
        Self { flow_label: Some(mixed & 0xf_ffff), ..self }
    }

    pub(super) fn label(&self) -> u32 {
        self.flow_label.unwrap_or(0)
    }
}

/// Whether packets may travel between two addresses: each is a single host's, and both are on one host when one of them
/// cannot be reached from elsewhere (protocol section 6.8).
pub(super) fn is_pair(a: IpAddr, b: IpAddr) -> bool {
    is_host(a) && is_host(b) && a.is_loopback() == b.is_loopback()
}

fn is_host(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    !(address.is_unspecified() || address.is_multicast() || broadcast)
}

/// What a connection is asked for with: `rdma_conn_param` of the active side, and its address.
#[derive(Clone, Copy, Debug)]
pub struct ConnectParams<'a> {
    /// The way to the peer.
    pub route: Route,
    /// What is asked for.
    pub service_id: ServiceId,
    /// Our port in the port space of the service.
    pub source_port: u16,
    /// [`QpType::Rc`] or [`QpType::Uc`].
    pub qp_type: QpType,
    /// Our queue pair.
    pub qpn: Qpn,
    /// Where our receive queue starts; see [`Cm::random_psn`](super::Cm::random_psn).
    pub rq_psn: Psn,
    /// Payload bytes of one packet.
    pub path_mtu: Mtu,
    /// READ and atomic requests of the peer that we serve at a time.
    pub responder_resources: u8,
    /// READ and atomic requests that we want to have outstanding.
    pub initiator_depth: u8,
    /// Retries of requests after timeouts, 0 to 7; both sides use it.
    pub retry_count: u8,
    /// RNR retries of the peer's requests, 0 to 7; 7 is for ever.
    pub rnr_retry_count: u8,
    /// Tell the peer that we use end-to-end credits.
    pub flow_control: bool,
    /// Tell the peer that our receives come from a shared receive queue.
    pub srq: bool,
    /// At most 56 bytes for services of `rdma_cm`, at most 92 for others.
    pub private_data: &'a [u8],
}

/// What a connection is granted with: `rdma_conn_param` of the passive side.
#[derive(Clone, Copy, Debug)]
pub struct AcceptParams<'a> {
    /// Our queue pair.
    pub qpn: Qpn,
    /// Where our receive queue starts; see [`Cm::random_psn`](super::Cm::random_psn).
    pub rq_psn: Psn,
    /// READ and atomic requests of the peer that we serve at a time; no more than it asked for will be granted.
    pub responder_resources: u8,
    /// READ and atomic requests that we want to have outstanding; no more than it offered will be used.
    pub initiator_depth: u8,
    /// RNR retries of the peer's requests, 0 to 7; 7 is for ever.
    pub rnr_retry_count: u8,
    /// Tell the peer that we use end-to-end credits.
    pub flow_control: bool,
    /// Tell the peer that our receives come from a shared receive queue.
    pub srq: bool,
    /// At most 196 bytes.
    pub private_data: &'a [u8],
}

impl AcceptParams<'_> {
    /// What the REP will say, by an adapter that acknowledges within `ack_delay`.
    pub(super) const fn terms(&self, ack_delay: u8) -> ReplyTerms {
        ReplyTerms {
            qpn: self.qpn,
            starting_psn: self.rq_psn,
            responder_resources: self.responder_resources,
            initiator_depth: self.initiator_depth,
            rnr_retry_count: self.rnr_retry_count,
            flow_control: self.flow_control,
            srq: self.srq,
            target_ack_delay: ack_delay,
        }
    }
}

/// What to listen to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenParams {
    /// The service, or with `mask` one of a range.
    pub service_id: ServiceId,
    /// Which bits of the service count; all of them for a single service.
    pub mask: u64,
    /// [`QpType::Rc`] or [`QpType::Uc`] for connections, [`QpType::Ud`] for questions after queue pairs for datagrams.
    pub qp_type: QpType,
    /// Only requests to this address of ours; to any without. A listener with an address goes before one without.
    pub address: Option<IpAddr>,
    /// How many requests wait for the application's answer at most; the configuration's number without.
    pub backlog: Option<u32>,
}

impl ListenParams {
    /// Listens to one service on every address.
    #[must_use]
    pub const fn new(service_id: ServiceId, qp_type: QpType) -> Self {
        Self { service_id, mask: u64::MAX, qp_type, address: None, backlog: None }
    }
}

/// What a queue pair for datagrams is asked for with.
#[derive(Clone, Copy, Debug)]
pub struct SidrParams<'a> {
    /// The way to the peer.
    pub route: Route,
    /// What is asked for.
    pub service_id: ServiceId,
    /// Our port in the port space of the service.
    pub source_port: u16,
    /// At most 180 bytes for services of `rdma_cm`, at most 216 for others.
    pub private_data: &'a [u8],
}

/// Who sent a datagram to queue pair 1, and to which of our addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    /// The peer's address.
    pub source: IpAddr,
    /// Ours.
    pub destination: IpAddr,
    /// The peer's queue pair.
    pub source_qp: Qpn,
}

pub(super) fn private_data<const N: usize>(data: &[u8]) -> Result<PrivateData<N>, CmError> {
    PrivateData::new(data).ok_or(CmError::PrivateDataTooLong { found: data.len(), limit: N })
}
