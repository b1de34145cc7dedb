//! What both sides tell each other.

use uroce_stack::cm::{ReplyTerms, RequestTerms};
use uroce_stack::wire::Qpn;

use crate::qp::AddressVector;

/// The Q_Key of datagram queue pairs that the connection manager makes known (`RDMA_UDP_QKEY`).
pub const UDP_QKEY: u32 = 0x0123_4567;

/// What a connection is asked for, or granted, with (`rdma_conn_param`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnParam {
    /// For the peer's application: at most 56 bytes in a request, 196 in an answer.
    pub private_data: Vec<u8>,
    /// READ and atomic operations of the peer that are served at a time. 16 unless set.
    pub responder_resources: u8,
    /// READ and atomic operations that may be outstanding at the peer. 16 unless set.
    pub initiator_depth: u8,
    /// Tells the peer that end-to-end credits are used, which changes nothing.
    pub flow_control: bool,
    /// Retries after timeouts, 0 to 7, for both sides; of the active side. 7 unless set.
    pub retry_count: u8,
    /// Retries of the peer when no receive is posted here, 0 to 7; 7, which is for ever, unless set, as everybody does.
    pub rnr_retry_count: u8,
    /// Tells the peer that receives come from a shared receive queue.
    pub srq: bool,
    /// The peer's queue pair, in events.
    pub qp_num: Qpn,
}

impl Default for ConnParam {
    fn default() -> Self {
        Self {
            private_data: Vec::new(),
            responder_resources: 16,
            initiator_depth: 16,
            flow_control: false,
            retry_count: 7,
            rnr_retry_count: 7,
            srq: false,
            qp_num: Qpn::default(),
        }
    }
}

impl ConnParam {
    /// With this for the peer's application.
    #[must_use]
    pub fn private_data(self, data: impl Into<Vec<u8>>) -> Self {
        Self { private_data: data.into(), ..self }
    }

    /// What a peer asks for, seen from here: who serves and who asks are swapped.
    pub(super) fn of_request(terms: &RequestTerms, private_data: &[u8]) -> Self {
        Self {
            private_data: private_data.to_vec(),
            responder_resources: terms.initiator_depth,
            initiator_depth: terms.responder_resources,
            flow_control: terms.flow_control,
            retry_count: terms.retry_count,
            rnr_retry_count: terms.rnr_retry_count,
            srq: terms.srq,
            qp_num: terms.qpn,
        }
    }

    /// What a peer grants, seen from here.
    pub(super) fn of_reply(terms: &ReplyTerms, private_data: &[u8]) -> Self {
        Self {
            private_data: private_data.to_vec(),
            responder_resources: terms.initiator_depth,
            initiator_depth: terms.responder_resources,
            flow_control: terms.flow_control,
            retry_count: 0,
            rnr_retry_count: terms.rnr_retry_count,
            srq: terms.srq,
            qp_num: terms.qpn,
        }
    }
}

/// Where datagrams to a peer go (`rdma_ud_param`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdParam {
    /// What the peer's application says.
    pub private_data: Vec<u8>,
    /// For [`create_ah`](crate::ProtectionDomain::create_ah).
    pub av: AddressVector,
    /// The peer's queue pair; 0xFFFFFF for a multicast group.
    pub qp_num: Qpn,
    /// Its Q_Key.
    pub qkey: u32,
}
