//! Queue pair attributes: what `ibv_qp_attr` and `ibv_qp_init_attr` hold.

use bitflags::bitflags;

use crate::access::Access;
use crate::engine::Cq;
use crate::wire::{Mtu, Path, Psn, Qpn};

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

/// The transport service of a queue pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum QpType {
    /// Reliable Connected.
    #[default]
    Rc,
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
