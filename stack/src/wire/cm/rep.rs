//! REP: the connection is granted (protocol section 6.2; IBTA volume 1, 12.6.8).

use super::PrivateData;
use super::fields::{Body, bytes_at, comm_ids, put, put_comm_ids, put24};
use crate::wire::bytes::{be24, be32, be64};
use crate::wire::{Psn, Qpn};

/// The answer that grants a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rep {
    /// The sender's identifier of the connection.
    pub local_comm_id: u32,
    /// The receiver's.
    pub remote_comm_id: u32,
    /// Q_Key of reliable datagrams.
    pub local_qkey: u32,
    /// The sender's queue pair.
    pub local_qpn: Qpn,
    /// End-to-end context of reliable datagrams, or the queue pair of an XRC target; 24 bits.
    pub local_eecn: u32,
    /// The first PSN that the *receiver* is to send.
    pub starting_psn: Psn,
    /// Whose extensions the attribute modifier speaks of, 24 bits; 0 is nobody's.
    pub vendor_id: u32,
    /// READ and atomic requests that the sender serves at a time.
    pub responder_resources: u8,
    /// READ and atomic requests that the sender wants to have outstanding.
    pub initiator_depth: u8,
    /// How long the sender takes for an acknowledgement at most, an exponent of 5 bits: 4.096 us * 2^n.
    pub target_ack_delay: u8,
    /// Whether the alternate path was accepted, 2 bits.
    pub failover_accepted: u8,
    /// Whether the sender uses end-to-end credits.
    pub flow_control: bool,
    /// RNR retries of the receiver's requests, 3 bits; 7 is for ever.
    pub rnr_retry_count: u8,
    /// Whether the sender's receives come from a shared receive queue.
    pub srq: bool,
    /// The sender's adapter.
    pub local_ca_guid: u64,
    /// What the application says.
    pub private_data: PrivateData<196>,
}

impl Rep {
    pub(super) fn parse(body: &Body) -> Self {
        let (local_comm_id, remote_comm_id) = comm_ids(body);
        Self {
            local_comm_id,
            remote_comm_id,
            local_qkey: be32(body, 8),
            local_qpn: Qpn::new(be24(body, 12)),
            local_eecn: be24(body, 16),
            starting_psn: Psn::new(be24(body, 20)),
            vendor_id: u32::from_be_bytes([0, body[15], body[19], body[23]]),
            responder_resources: body[24],
            initiator_depth: body[25],
            target_ack_delay: body[26] >> 3,
            failover_accepted: body[26] >> 1 & 3,
            flow_control: body[26] & 1 != 0,
            rnr_retry_count: body[27] >> 5,
            srq: body[27] & 0x10 != 0,
            local_ca_guid: be64(body, 28),
            private_data: bytes_at(body, 36).into(),
        }
    }

    pub(super) fn emit(&self, body: &mut Body) {
        put_comm_ids(body, self.local_comm_id, self.remote_comm_id);
        put(body, 8, &self.local_qkey.to_be_bytes());
        put24(body, 12, self.local_qpn.get());
        put24(body, 16, self.local_eecn);
        put24(body, 20, self.starting_psn.get());
        let [_, high, middle, low] = self.vendor_id.to_be_bytes();
        (body[15], body[19], body[23]) = (high, middle, low);
        body[24] = self.responder_resources;
        body[25] = self.initiator_depth;
        let failover = self.failover_accepted & 3;
        body[26] = self.target_ack_delay << 3 | failover << 1 | u8::from(self.flow_control);
        body[27] = self.rnr_retry_count << 5 | u8::from(self.srq) << 4;
        put(body, 28, &self.local_ca_guid.to_be_bytes());
        put(body, 36, self.private_data.as_bytes());
    }
}
