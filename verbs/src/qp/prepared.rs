//! From a queue pair to a connection.

use uroce_stack::wire::{Mtu, Psn, Qpn};
use uroce_stack::{QpState, QpType};

use super::{AddressVector, QpAttr, QueuePair};
use crate::endpoint::Endpoint;
use crate::error::{Error, PostError};
use crate::wr::RecvWr;

/// How a connection behaves; the defaults suit a data centre.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionParams {
    /// Payload bytes of one packet; `None`: the port's active MTU. Both ends must use the same.
    pub path_mtu: Option<Mtu>,
    /// ACK timeout, 0 to 31: 4.096 us * 2^n. 14, which is 67 ms, unless set; 0 waits for ever.
    pub timeout: u8,
    /// Retries after timeouts and lost packets, 0 to 7. 7 unless set.
    pub retry_cnt: u8,
    /// Retries when the peer has no receive posted, 0 to 7. 6 unless set; 7 retries for ever, also when the
    /// peer has simply stopped posting.
    pub rnr_retry: u8,
    /// How long the peer waits when no receive is posted here, as a code of 0 to 31. 12, which is 0.64 ms,
    /// unless set.
    pub min_rnr_timer: u8,
    /// READ and atomic operations outstanding at the peer at most. 16 unless set; at most what the peer's
    /// `max_dest_rd_atomic` says.
    pub max_rd_atomic: u8,
    /// READ and atomic operations of the peer outstanding here at most. 16 unless set.
    pub max_dest_rd_atomic: u8,
    /// DSCP in bits 7:2, ECN in bits 1:0. 0 unless set.
    pub traffic_class: u8,
    /// TTL or hop limit. 64 unless set.
    pub hop_limit: u8,
    /// 20 bits; 0, unless set, chooses the UDP source port by the queue pair numbers.
    pub flow_label: u32,
}

impl Default for ConnectionParams {
    fn default() -> Self {
        Self {
            path_mtu: None,
            timeout: 14,
            retry_cnt: 7,
            rnr_retry: 6,
            min_rnr_timer: 12,
            max_rd_atomic: 16,
            max_dest_rd_atomic: 16,
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0,
        }
    }
}

/// A queue pair in INIT: its [`endpoint`](Self::endpoint) can be told to the peer, receives can be posted,
/// and it can be [connected](Self::connect).
#[derive(Debug)]
pub struct PreparedQueuePair {
    qp: QueuePair,
    psn: Psn,
    params: ConnectionParams,
}

impl PreparedQueuePair {
    pub(crate) fn new(qp: QueuePair) -> Self {
        let psn = qp.pd().context().random_psn();
        Self { qp, psn, params: ConnectionParams::default() }
    }

    /// How the connection is to behave.
    #[must_use]
    pub fn params(mut self, params: ConnectionParams) -> Self {
        self.params = params;
        self
    }

    /// Starts to send with this packet sequence number instead of a random one. For tests: guessing it helps
    /// an attacker.
    #[must_use]
    pub const fn initial_psn(mut self, psn: Psn) -> Self {
        self.psn = psn;
        self
    }

    /// What the peer has to know.
    #[must_use]
    pub fn endpoint(&self) -> Endpoint {
        Endpoint { gid: self.qp.pd().context().gid(), qpn: self.qp.qpn(), psn: self.psn }
    }

    /// Its number.
    #[must_use]
    pub fn qpn(&self) -> Qpn {
        self.qp.qpn()
    }

    /// Posts receives: do so before the peer learns the endpoint, so that its first message finds one.
    ///
    /// # Errors
    /// As [`QueuePair::post_recv`].
    pub fn post_recv(&self, requests: &[RecvWr]) -> Result<(), PostError> {
        self.qp.post_recv(requests)
    }

    /// Its transport service.
    #[must_use]
    pub const fn qp_type(&self) -> QpType {
        self.qp.qp_type()
    }

    /// Brings a UD queue pair to RTS, where it takes datagrams with this Q_Key from anybody.
    ///
    /// # Errors
    /// [`Error::Modify`] when the Q_Key is a controlled one, or the queue pair needs a peer. It is dropped then.
    pub fn activate(self, qkey: u32) -> Result<QueuePair, Error> {
        self.qp.modify(&QpAttr { qkey: Some(qkey), ..QpAttr::to(QpState::Rtr) })?;
        self.qp.modify(&QpAttr { sq_psn: Some(self.psn), ..QpAttr::to(QpState::Rts) })?;
        Ok(self.qp)
    }

    /// Connects to `peer`, which has to connect to this [`endpoint`](Self::endpoint) in turn: through RTR to
    /// RTS.
    ///
    /// The first message may leave before the peer is ready: it is repeated until `timeout` times `retry_cnt`
    /// is over.
    ///
    /// # Errors
    /// [`Error::Modify`] when the peer's address cannot be reached or a parameter is out of range. The queue
    /// pair is dropped then.
    pub fn connect(self, peer: Endpoint) -> Result<QueuePair, Error> {
        self.qp.modify(&self.ready_to_receive(peer))?;
        self.qp.modify(&self.ready_to_send())?;
        Ok(self.qp)
    }

    /// The queue pair as it is, in INIT, for callers that go through the remaining states by themselves.
    #[must_use]
    pub fn into_queue_pair(self) -> QueuePair {
        self.qp
    }

    fn ready_to_receive(&self, peer: Endpoint) -> QpAttr {
        let params = &self.params;
        let av = AddressVector {
            flow_label: params.flow_label,
            hop_limit: params.hop_limit,
            traffic_class: params.traffic_class,
            ..AddressVector::new(peer.gid)
        };
        let attr = QpAttr {
            av: Some(av),
            path_mtu: Some(params.path_mtu.unwrap_or(self.qp.pd().context().active_mtu())),
            dest_qpn: Some(peer.qpn),
            rq_psn: Some(peer.psn),
            ..QpAttr::to(QpState::Rtr)
        };
        match self.qp_type() {
            QpType::Rc | QpType::XrcTgt => QpAttr {
                max_dest_rd_atomic: Some(params.max_dest_rd_atomic),
                min_rnr_timer: Some(params.min_rnr_timer),
                ..attr
            },
            _ => attr,
        }
    }

    /// What each type needs of it: a target sends no requests, an unreliable connection repeats none.
    fn ready_to_send(&self) -> QpAttr {
        let params = &self.params;
        let attr = QpAttr { sq_psn: Some(self.psn), ..QpAttr::to(QpState::Rts) };
        match self.qp_type() {
            QpType::Rc | QpType::XrcIni => QpAttr {
                timeout: Some(params.timeout),
                retry_cnt: Some(params.retry_cnt),
                rnr_retry: Some(params.rnr_retry),
                max_rd_atomic: Some(params.max_rd_atomic),
                ..attr
            },
            QpType::XrcTgt => QpAttr { timeout: Some(params.timeout), ..attr },
            _ => attr,
        }
    }
}
