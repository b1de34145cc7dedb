//! Queue pair attributes: what `ibv_qp_attr` and `ibv_qp_init_attr` hold.

use bitflags::bitflags;

use crate::access::Access;
use crate::engine::{Cq, Srq, Xrcd};
use crate::wire::{Mtu, Path, Psn, Qpn, Service};

/// The state of a queue pair; the values of `ibv_qp_state`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum QpState {
    /// Made, or reset: nothing may be posted, nothing is received.
    #[default]
    Reset = 0,
    /// Receives may be posted; nothing is received yet.
    Init = 1,
    /// Ready to receive: requests of the peer are processed.
    Rtr = 2,
    /// Ready to send: everything runs.
    Rts = 3,
    /// The send queue drains: what was started finishes, nothing new starts.
    Sqd = 4,
    /// The send queue failed; unconnected services only.
    Sqe = 5,
    /// Failed or being torn down: everything posted is flushed.
    Err = 6,
}

impl QpState {
    pub(crate) const fn from_value(value: u8) -> Option<Self> {
        Some(match value {
            0 => Self::Reset,
            1 => Self::Init,
            2 => Self::Rtr,
            3 => Self::Rts,
            4 => Self::Sqd,
            5 => Self::Sqe,
            6 => Self::Err,
            _ => return None,
        })
    }

    /// Whether requests of the peer are processed.
    pub(crate) const fn receives(self) -> bool {
        matches!(self, Self::Rtr | Self::Rts | Self::Sqd | Self::Sqe)
    }

    /// Whether responses of the peer are processed, and requests leave.
    pub(crate) const fn sends(self) -> bool {
        matches!(self, Self::Rts | Self::Sqd)
    }
}

/// The kind of a queue pair: its transport service, and for XRC which end of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QpType {
    /// Reliable Connected.
    #[default]
    Rc,
    /// Unreliable Connected: SEND and WRITE to one peer, without acknowledgements.
    Uc,
    /// Unreliable Datagram: single packets to any peer and to multicast groups.
    Ud,
    /// The initiator of an extended reliable connection: sends, and names a shared receive queue at the peer.
    XrcIni,
    /// The target of an extended reliable connection: receives for the shared receive queues of an XRC domain.
    XrcTgt,
    /// Queue pair 1, which carries management datagrams: a UD queue pair with a fixed number and Q_Key.
    Gsi,
}

/// The Q_Key of queue pair 1 (IBTA, well-known queue pairs).
pub(crate) const GSI_QKEY: u32 = 0x8001_0000;

impl QpType {
    pub(crate) const fn service(self) -> Service {
        match self {
            Self::Rc => Service::Rc,
            Self::Uc => Service::Uc,
            Self::Ud | Self::Gsi => Service::Ud,
            Self::XrcIni | Self::XrcTgt => Service::Xrc,
        }
    }

    /// Whether it has one peer, and takes packets from nobody else.
    pub(crate) const fn is_connected(self) -> bool {
        !self.is_datagram()
    }

    pub(crate) const fn is_datagram(self) -> bool {
        matches!(self, Self::Ud | Self::Gsi)
    }

    /// Whether requests are acknowledged.
    pub(crate) const fn is_reliable(self) -> bool {
        matches!(self, Self::Rc | Self::XrcIni | Self::XrcTgt)
    }

    /// Whether it takes requests of a peer.
    pub(crate) const fn takes_requests(self) -> bool {
        !matches!(self, Self::XrcIni)
    }

    /// Whether the application posts sends to it.
    pub(crate) const fn posts_sends(self) -> bool {
        !matches!(self, Self::XrcTgt)
    }

    /// Whether it may have receives of its own.
    pub(crate) const fn posts_receives(self) -> bool {
        !matches!(self, Self::XrcIni | Self::XrcTgt)
    }
}

/// What a queue pair is created with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpInit {
    /// Transport service.
    pub qp_type: QpType,
    /// Where sends complete.
    pub send_cq: Cq,
    /// Where receives complete.
    pub recv_cq: Cq,
    /// Send work requests outstanding at most; rounded up to a power of two.
    pub max_send_wr: u32,
    /// Receives outstanding at most; rounded up to a power of two.
    pub max_recv_wr: u32,
    /// Entries of one send work request.
    pub max_send_sge: u32,
    /// Entries of one receive.
    pub max_recv_sge: u32,
    /// Bytes that a send work request may carry inline.
    pub max_inline_data: u32,
    /// Every send work request completes with a completion, signaled or not.
    pub sq_sig_all: bool,
    /// Takes receives from here instead of from a queue of its own: `max_recv_wr` and `max_recv_sge` are ignored then.
    pub srq: Option<Srq>,
    /// The XRC domain of an XRC target, which completes on the queues of the shared receive queues that it is sent to:
    /// its own `send_cq` and `recv_cq` are ignored.
    pub xrcd: Option<Xrcd>,
    /// A multicast datagram of its own does not come back to it (`IBV_QP_CREATE_BLOCK_SELF_MCAST_LB`).
    pub block_multicast_loopback: bool,
}

impl QpInit {
    /// A queue pair of this kind that holds nothing, to be completed with the sizes that are wanted.
    #[must_use]
    pub const fn new(qp_type: QpType, send_cq: Cq, recv_cq: Cq) -> Self {
        Self {
            qp_type,
            send_cq,
            recv_cq,
            max_send_wr: 0,
            max_recv_wr: 0,
            max_send_sge: 0,
            max_recv_sge: 0,
            max_inline_data: 0,
            sq_sig_all: false,
            srq: None,
            xrcd: None,
            block_multicast_loopback: false,
        }
    }

    /// The completion queues that it completes on.
    pub(crate) fn completes_on(&self, cq: Cq) -> bool {
        self.qp_type != QpType::XrcTgt && (self.send_cq == cq || self.recv_cq == cq)
    }
}

bitflags! {
    /// Which attributes of [`QpAttr`] are set; the values of `ibv_qp_attr_mask`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct AttrMask: u32 {
        /// [`QpAttr::state`]
        const STATE = 1;
        /// [`QpAttr::cur_state`]
        const CUR_STATE = 1 << 1;
        /// [`QpAttr::en_sqd_async_notify`]
        const EN_SQD_ASYNC_NOTIFY = 1 << 2;
        /// [`QpAttr::access`]
        const ACCESS_FLAGS = 1 << 3;
        /// [`QpAttr::pkey_index`]
        const PKEY_INDEX = 1 << 4;
        /// [`QpAttr::port`]
        const PORT = 1 << 5;
        /// [`QpAttr::qkey`]
        const QKEY = 1 << 6;
        /// [`QpAttr::path`]
        const AV = 1 << 7;
        /// [`QpAttr::path_mtu`]
        const PATH_MTU = 1 << 8;
        /// [`QpAttr::timeout`]
        const TIMEOUT = 1 << 9;
        /// [`QpAttr::retry_cnt`]
        const RETRY_CNT = 1 << 10;
        /// [`QpAttr::rnr_retry`]
        const RNR_RETRY = 1 << 11;
        /// [`QpAttr::rq_psn`]
        const RQ_PSN = 1 << 12;
        /// [`QpAttr::max_rd_atomic`]
        const MAX_QP_RD_ATOMIC = 1 << 13;
        /// [`QpAttr::min_rnr_timer`]
        const MIN_RNR_TIMER = 1 << 15;
        /// [`QpAttr::sq_psn`]
        const SQ_PSN = 1 << 16;
        /// [`QpAttr::max_dest_rd_atomic`]
        const MAX_DEST_RD_ATOMIC = 1 << 17;
        /// [`QpAttr::dest_qpn`]
        const DEST_QPN = 1 << 20;
    }
}

impl core::fmt::Display for AttrMask {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        bitflags::parser::to_writer(self, f)
    }
}

/// Attributes to set with `modify_qp`, or as `query_qp` tells them; those that are `None` are left alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QpAttr {
    /// The state to go to.
    pub state: Option<QpState>,
    /// The state that the caller believes the queue pair to be in.
    pub cur_state: Option<QpState>,
    /// Raise [`crate::AsyncEvent::SqDrained`] once drained; with a transition to SQD.
    pub en_sqd_async_notify: Option<bool>,
    /// What the peer may do with memory of the protection domain.
    pub access: Option<Access>,
    /// Index into the P_Key table, which has one entry: 0.
    pub pkey_index: Option<u16>,
    /// Port number, 1.
    pub port: Option<u8>,
    /// Q_Key; unconnected services only.
    pub qkey: Option<u32>,
    /// Addresses of both ends, resolved down to the MAC: the address vector.
    pub path: Option<Path>,
    /// Payload bytes of one packet; the same at both ends.
    pub path_mtu: Option<Mtu>,
    /// ACK timeout exponent, 0 to 31: 4.096 us * 2^n; 0 never times out.
    pub timeout: Option<u8>,
    /// Retries after timeouts and sequence errors, 0 to 7.
    pub retry_cnt: Option<u8>,
    /// Retries after RNR NAKs, 0 to 7; 7 retries for ever.
    pub rnr_retry: Option<u8>,
    /// First PSN that the peer sends.
    pub rq_psn: Option<Psn>,
    /// First PSN that we send.
    pub sq_psn: Option<Psn>,
    /// READ and atomic requests outstanding at the peer at most.
    pub max_rd_atomic: Option<u8>,
    /// READ and atomic requests of the peer outstanding here at most.
    pub max_dest_rd_atomic: Option<u8>,
    /// RNR timer code told to the peer, 0 to 31: 0 is 655.36 ms, 1 is 0.01 ms, 31 is 491.52 ms.
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

    /// Which attributes are set.
    #[must_use]
    pub fn mask(&self) -> AttrMask {
        let present = [
            (self.state.is_some(), AttrMask::STATE),
            (self.cur_state.is_some(), AttrMask::CUR_STATE),
            (self.en_sqd_async_notify.is_some(), AttrMask::EN_SQD_ASYNC_NOTIFY),
            (self.access.is_some(), AttrMask::ACCESS_FLAGS),
            (self.pkey_index.is_some(), AttrMask::PKEY_INDEX),
            (self.port.is_some(), AttrMask::PORT),
            (self.qkey.is_some(), AttrMask::QKEY),
            (self.path.is_some(), AttrMask::AV),
            (self.path_mtu.is_some(), AttrMask::PATH_MTU),
            (self.timeout.is_some(), AttrMask::TIMEOUT),
            (self.retry_cnt.is_some(), AttrMask::RETRY_CNT),
            (self.rnr_retry.is_some(), AttrMask::RNR_RETRY),
            (self.rq_psn.is_some(), AttrMask::RQ_PSN),
            (self.sq_psn.is_some(), AttrMask::SQ_PSN),
            (self.max_rd_atomic.is_some(), AttrMask::MAX_QP_RD_ATOMIC),
            (self.max_dest_rd_atomic.is_some(), AttrMask::MAX_DEST_RD_ATOMIC),
            (self.min_rnr_timer.is_some(), AttrMask::MIN_RNR_TIMER),
            (self.dest_qpn.is_some(), AttrMask::DEST_QPN),
        ];
        present.into_iter().filter(|(set, _)| *set).map(|(_, bit)| bit).collect()
    }
}
