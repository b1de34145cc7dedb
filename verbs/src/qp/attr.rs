//! Attributes of queue pairs.

use uroce_stack::wire::{Mtu, Path, Psn, Qpn};
use uroce_stack::{Access, QpState, QpType};

use crate::gid::Gid;

/// Where a peer is, and how packets to it are marked (`ibv_ah_attr`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressVector {
    /// The peer's address.
    pub dgid: Gid,
    /// Which entry of the port's GID table packets come from; `None`: the address that the device was opened
    /// with.
    pub sgid_index: Option<u32>,
    /// 20 bits; IPv6 carries it, and it chooses the UDP source port. 0 chooses the port by the queue pair
    /// numbers.
    pub flow_label: u32,
    /// TTL of IPv4, hop limit of IPv6; at least 1.
    pub hop_limit: u8,
    /// DSCP in bits 7:2, ECN in bits 1:0.
    pub traffic_class: u8,
}

impl AddressVector {
    /// The peer at `dgid`, with hop limit 64 and no marking.
    #[must_use]
    pub const fn new(dgid: Gid) -> Self {
        Self { dgid, sgid_index: None, flow_label: 0, hop_limit: 64, traffic_class: 0 }
    }

    fn of_path(path: &Path) -> Self {
        Self {
            flow_label: path.flow_label,
            hop_limit: path.hop_limit,
            traffic_class: path.traffic_class,
            ..Self::new(path.destination.into())
        }
    }
}

/// Attributes to change with [`QueuePair::modify`](crate::QueuePair::modify), or as
/// [`QueuePair::query`](crate::QueuePair::query) tells them (`ibv_qp_attr`). Those that are `None` are left
/// alone: there is no mask beside them.
///
/// Which are required and which are allowed depends on the transition, as `ibv_modify_qp` has it. For RC:
///
/// | transition | required | optional |
/// |---|---|---|
/// | RESET to INIT | `pkey_index`, `port`, `access` | |
/// | INIT to RTR | `av`, `path_mtu`, `dest_qpn`, `rq_psn`, `max_dest_rd_atomic`, `min_rnr_timer` | `access`, `pkey_index` |
/// | RTR to RTS | `timeout`, `retry_cnt`, `rnr_retry`, `sq_psn`, `max_rd_atomic` | `cur_state`, `access`, `min_rnr_timer` |
/// | RTS to SQD | | `en_sqd_async_notify` |
/// | any to RESET, any to ERR | | |
///
/// The others need a part of that: UC neither `max_dest_rd_atomic`, `min_rnr_timer` nor any attribute of retries and READs;
/// an XRC initiator not the first two; an XRC target neither `retry_cnt`, `rnr_retry` nor `max_rd_atomic`; UD `qkey`
/// instead of `access`, nothing from INIT to RTR, and `sq_psn` from RTR to RTS. UC and UD also go from SQE back to RTS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QpAttr {
    /// The state to go to.
    pub state: Option<QpState>,
    /// The state that the caller believes it to be in: the change is refused if it is not.
    pub cur_state: Option<QpState>,
    /// Raise [`AsyncEvent::SqDrained`](crate::AsyncEvent::SqDrained) once drained.
    pub en_sqd_async_notify: Option<bool>,
    /// What the peer may do with memory of the protection domain.
    pub access: Option<Access>,
    /// Index into the P_Key table, which has the one entry 0.
    pub pkey_index: Option<u16>,
    /// Port number, 1.
    pub port: Option<u8>,
    /// Q_Key; unconnected services only.
    pub qkey: Option<u32>,
    /// Where the peer is.
    pub av: Option<AddressVector>,
    /// Payload bytes of one packet; both ends must use the same.
    pub path_mtu: Option<Mtu>,
    /// ACK timeout, 0 to 31: 4.096 us * 2^n, so 14 is 67 ms; 0 waits for ever.
    pub timeout: Option<u8>,
    /// Retries after timeouts and lost packets, 0 to 7.
    pub retry_cnt: Option<u8>,
    /// Retries when the peer has no receive posted, 0 to 7; 7 retries for ever.
    pub rnr_retry: Option<u8>,
    /// First packet sequence number that the peer sends.
    pub rq_psn: Option<Psn>,
    /// First packet sequence number that we send.
    pub sq_psn: Option<Psn>,
    /// READ and atomic operations outstanding at the peer at most.
    pub max_rd_atomic: Option<u8>,
    /// READ and atomic operations of the peer outstanding here at most.
    pub max_dest_rd_atomic: Option<u8>,
    /// How long a peer waits when no receive is posted here, as a code of 0 to 31: 12 is 0.64 ms, 0 is 655.36
    /// ms.
    pub min_rnr_timer: Option<u8>,
    /// The peer's queue pair.
    pub dest_qpn: Option<Qpn>,
}

impl QpAttr {
    /// A transition to `state` and nothing else.
    #[must_use]
    pub fn to(state: QpState) -> Self {
        Self { state: Some(state), ..Self::default() }
    }

    pub(crate) fn to_stack(&self, path: Option<Path>) -> uroce_stack::QpAttr {
        uroce_stack::QpAttr {
            state: self.state,
            cur_state: self.cur_state,
            en_sqd_async_notify: self.en_sqd_async_notify,
            access: self.access,
            pkey_index: self.pkey_index,
            port: self.port,
            qkey: self.qkey,
            path,
            path_mtu: self.path_mtu,
            timeout: self.timeout,
            retry_cnt: self.retry_cnt,
            rnr_retry: self.rnr_retry,
            rq_psn: self.rq_psn,
            sq_psn: self.sq_psn,
            max_rd_atomic: self.max_rd_atomic,
            max_dest_rd_atomic: self.max_dest_rd_atomic,
            min_rnr_timer: self.min_rnr_timer,
            dest_qpn: self.dest_qpn,
        }
    }

    /// With the address vector as it was set, if it was set here.
    pub(crate) fn from_stack(attr: &uroce_stack::QpAttr, av: Option<AddressVector>) -> Self {
        Self {
            state: attr.state,
            cur_state: attr.cur_state,
            en_sqd_async_notify: attr.en_sqd_async_notify,
            access: attr.access,
            pkey_index: attr.pkey_index,
            port: attr.port,
            qkey: attr.qkey,
            av: attr.path.as_ref().map(|path| av.unwrap_or_else(|| AddressVector::of_path(path))),
            path_mtu: attr.path_mtu,
            timeout: attr.timeout,
            retry_cnt: attr.retry_cnt,
            rnr_retry: attr.rnr_retry,
            rq_psn: attr.rq_psn,
            sq_psn: attr.sq_psn,
            max_rd_atomic: attr.max_rd_atomic,
            max_dest_rd_atomic: attr.max_dest_rd_atomic,
            min_rnr_timer: attr.min_rnr_timer,
            dest_qpn: attr.dest_qpn,
        }
    }
}

/// What a queue pair is made with (`ibv_qp_init_attr`, `ibv_qp_cap`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpInitAttr {
    /// Transport service.
    pub qp_type: QpType,
    /// Send work requests outstanding at most.
    pub max_send_wr: u32,
    /// Receives outstanding at most.
    pub max_recv_wr: u32,
    /// Scatter/gather entries of one send work request.
    pub max_send_sge: u32,
    /// Scatter/gather entries of one receive.
    pub max_recv_sge: u32,
    /// Bytes that a send work request may carry inline.
    pub max_inline_data: u32,
    /// Every send work request brings a completion, signaled or not.
    pub sq_sig_all: bool,
    /// A multicast datagram of its own does not come back to it (`IBV_QP_CREATE_BLOCK_SELF_MCAST_LB`).
    pub block_multicast_loopback: bool,
}

impl Default for QpInitAttr {
    /// RC, 128 sends and receives, one entry each, 64 inline bytes.
    fn default() -> Self {
        Self {
            qp_type: QpType::Rc,
            max_send_wr: 128,
            max_recv_wr: 128,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: 64,
            sq_sig_all: false,
            block_multicast_loopback: false,
        }
    }
}
