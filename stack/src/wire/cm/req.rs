//! REQ: a connection is asked for (protocol section 6.2; IBTA volume 1, 12.6.5).

use super::fields::{Body, bytes_at, put, put24};
use super::{CmPath, PrivateData, ServiceId};
use crate::wire::bytes::{be16, be24, be32, be64};
use crate::wire::{Psn, Qpn};

/// The transport that a connection is to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CmTransport {
    /// Reliable Connected.
    Rc,
    /// Unreliable Connected.
    Uc,
    /// Reliable Datagram.
    Rd,
    /// Named by the extended transport field, 3 bits: 1 is XRC.
    Extended(u8),
}

/// A request for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Req {
    /// The sender's identifier of the connection.
    pub local_comm_id: u32,
    /// Whose extensions the attribute modifier speaks of, 24 bits; 0 is nobody's.
    pub vendor_id: u32,
    /// What is asked for.
    pub service_id: ServiceId,
    /// The sender's adapter.
    pub local_ca_guid: u64,
    /// Q_Key of reliable datagrams.
    pub local_qkey: u32,
    /// The sender's queue pair.
    pub local_qpn: Qpn,
    /// READ and atomic requests that the sender serves at a time.
    pub responder_resources: u8,
    /// End-to-end context of reliable datagrams, 24 bits.
    pub local_eecn: u32,
    /// READ and atomic requests that the sender wants to have outstanding.
    pub initiator_depth: u8,
    /// End-to-end context of reliable datagrams, 24 bits.
    pub remote_eecn: u32,
    /// How soon the receiver has to answer, an exponent of 5 bits: 4.096 us * 2^n.
    pub remote_response_timeout: u8,
    /// Transport.
    pub transport: CmTransport,
    /// Whether the sender uses end-to-end credits.
    pub flow_control: bool,
    /// The first PSN that the *receiver* is to send: the sender's receive queue starts there (case X09).
    pub starting_psn: Psn,
    /// How soon the sender answers, an exponent of 5 bits.
    pub local_response_timeout: u8,
    /// Retries of the receiver's requests, 3 bits.
    pub retry_count: u8,
    /// Partition key.
    pub pkey: u16,
    /// Path MTU code, 4 bits; see [`Mtu::from_code`](crate::wire::Mtu::from_code).
    pub path_mtu: u8,
    /// Whether a reliable datagram channel exists already.
    pub rdc_exists: bool,
    /// RNR retries of the receiver's requests, 3 bits; 7 is for ever.
    pub rnr_retry_count: u8,
    /// How often either side repeats a message of connection management, 4 bits.
    pub max_cm_retries: u8,
    /// Whether the sender's receives come from a shared receive queue.
    pub srq: bool,
    /// The path.
    pub primary: CmPath,
    /// The path to fall back to; none over RoCE.
    pub alternate: CmPath,
    /// What the application, and for its services `rdma_cm`, says.
    pub private_data: PrivateData<92>,
}

impl Req {
    pub(super) fn parse(body: &Body) -> Self {
        Self {
            local_comm_id: be32(body, 0),
            vendor_id: be24(body, 5),
            service_id: ServiceId(be64(body, 8)),
            local_ca_guid: be64(body, 16),
            local_qkey: be32(body, 28),
            local_qpn: Qpn::new(be24(body, 32)),
            responder_resources: body[35],
            local_eecn: be24(body, 36),
            initiator_depth: body[39],
            remote_eecn: be24(body, 40),
            remote_response_timeout: body[43] >> 3,
            transport: CmTransport::parse(body[43] >> 1 & 3, body[51] & 7),
            flow_control: body[43] & 1 != 0,
            starting_psn: Psn::new(be24(body, 44)),
            local_response_timeout: body[47] >> 3,
            retry_count: body[47] & 7,
            pkey: be16(body, 48),
            path_mtu: body[50] >> 4,
            rdc_exists: body[50] & 8 != 0,
            rnr_retry_count: body[50] & 7,
            max_cm_retries: body[51] >> 4,
            srq: body[51] & 8 != 0,
            primary: CmPath::at(body, 52),
            alternate: CmPath::at(body, 96),
            private_data: bytes_at(body, 140).into(),
        }
    }

    pub(super) fn emit(&self, body: &mut Body) {
        put(body, 0, &self.local_comm_id.to_be_bytes());
        put24(body, 5, self.vendor_id);
        put(body, 8, &self.service_id.0.to_be_bytes());
        put(body, 16, &self.local_ca_guid.to_be_bytes());
        self.emit_queue_pair(body);
        put(body, 48, &self.pkey.to_be_bytes());
        let (_, extended) = self.transport.bits();
        body[50] = self.path_mtu << 4 | u8::from(self.rdc_exists) << 3 | self.rnr_retry_count & 7;
        body[51] = self.max_cm_retries << 4 | u8::from(self.srq) << 3 | extended;
        put(body, 52, &self.primary.emit());
        put(body, 96, &self.alternate.emit());
        put(body, 140, self.private_data.as_bytes());
    }

    fn emit_queue_pair(&self, body: &mut Body) {
        put(body, 28, &self.local_qkey.to_be_bytes());
        put24(body, 32, self.local_qpn.get());
        body[35] = self.responder_resources;
        put24(body, 36, self.local_eecn);
        body[39] = self.initiator_depth;
        put24(body, 40, self.remote_eecn);
        let (transport, _) = self.transport.bits();
        body[43] = self.remote_response_timeout << 3 | transport << 1 | u8::from(self.flow_control);
        put24(body, 44, self.starting_psn.get());
        body[47] = self.local_response_timeout << 3 | self.retry_count & 7;
    }
}

impl CmTransport {
    const fn parse(transport: u8, extended: u8) -> Self {
        match transport {
            0 => Self::Rc,
            1 => Self::Uc,
            2 => Self::Rd,
            _ => Self::Extended(extended),
        }
    }

    /// The transport field and the extended one.
    const fn bits(self) -> (u8, u8) {
        match self {
            Self::Rc => (0, 0),
            Self::Uc => (1, 0),
            Self::Rd => (2, 0),
            Self::Extended(extended) => (3, extended & 7),
        }
    }
}
