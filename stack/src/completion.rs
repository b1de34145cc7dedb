//! Work completions: what `ibv_wc` holds.

use bitflags::bitflags;

use crate::wire::{MacAddr, Qpn};

/// How a work request ended; the values of `ibv_wc_status`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum WcStatus {
    /// It was carried out.
    #[default]
    Success = 0,
    /// A message did not fit the receive buffer, or a length was out of range.
    LocLenErr = 1,
    /// The work request was malformed, or the local queue pair could not process it.
    LocQpOpErr = 2,
    /// A local key was wrong, revoked, or did not cover the access.
    LocProtErr = 4,
    /// The queue pair was in error before the work request could finish.
    WrFlushErr = 5,
    /// A memory window could not be bound.
    MwBindErr = 6,
    /// The peer answered with a packet that does not answer the request.
    BadRespErr = 7,
    /// A protection error on a local buffer while a remote write was placed.
    LocAccessErr = 8,
    /// The peer refused the request as invalid (NAK 0x61); on a receive: the incoming message was invalid.
    RemInvReqErr = 9,
    /// The peer refused the access: wrong rkey, range or right (NAK 0x62).
    RemAccessErr = 10,
    /// The peer failed while carrying the request out (NAK 0x63).
    RemOpErr = 11,
    /// No answer after all retries: the peer is gone, unreachable, or its queue pair is not ready.
    RetryExcErr = 12,
    /// The peer had no receive posted, and `rnr_retry` attempts were used up.
    RnrRetryExcErr = 13,
    /// The peer aborted the operation.
    RemAbortErr = 16,
    /// The transport failed beyond recovery.
    FatalErr = 19,
    /// Anything else.
    GeneralErr = 21,
}

impl WcStatus {
    /// What happened, in a few words.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::LocLenErr => "local length error",
            Self::LocQpOpErr => "local QP operation error",
            Self::LocProtErr => "local protection error",
            Self::WrFlushErr => "work request flushed",
            Self::MwBindErr => "memory window bind error",
            Self::BadRespErr => "bad response",
            Self::LocAccessErr => "local access error",
            Self::RemInvReqErr => "remote invalid request",
            Self::RemAccessErr => "remote access error",
            Self::RemOpErr => "remote operation error",
            Self::RetryExcErr => "transport retry counter exceeded",
            Self::RnrRetryExcErr => "RNR retry counter exceeded",
            Self::RemAbortErr => "remote aborted",
            Self::FatalErr => "fatal error",
            Self::GeneralErr => "general error",
        }
    }
}

impl core::fmt::Display for WcStatus {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} ({})", self.description(), *self as u8)
    }
}

/// Which operation completed; the values of `ibv_wc_opcode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum WcOpcode {
    /// SEND, with or without immediate.
    #[default]
    Send = 0,
    /// RDMA WRITE, with or without immediate.
    RdmaWrite = 1,
    /// RDMA READ.
    RdmaRead = 2,
    /// CMP_SWAP.
    CompSwap = 3,
    /// FETCH_ADD.
    FetchAdd = 4,
    /// A memory window was bound.
    BindMw = 5,
    /// A local key was invalidated.
    LocalInv = 6,
    /// FLUSH.
    Flush = 8,
    /// ATOMIC WRITE.
    AtomicWrite = 9,
    /// A region was fast-registered; no value of `ibv_wc_opcode` exists, this is the next that is free.
    RegMr = 10,
    /// A received SEND.
    Recv = 128,
    /// A received RDMA WRITE with immediate.
    RecvRdmaWithImm = 129,
}

bitflags! {
    /// What else a completion says; the values of `ibv_wc_flags`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct WcFlags: u32 {
        /// The message arrived with a global route header, as every RoCE message does.
        const GRH = 1;
        /// [`Completion::immediate`] is set.
        const WITH_IMM = 2;
        /// An rkey was invalidated.
        const WITH_INV = 8;
    }
}

/// One work completion.
///
/// When `status` is not [`WcStatus::Success`], only `wr_id`, `status`, `opcode` and `qp_num` mean anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// The number that the work request was posted with.
    pub wr_id: u64,
    /// How it ended.
    pub status: WcStatus,
    /// What ended.
    pub opcode: WcOpcode,
    /// Bytes received, written with immediate, read, or returned by an atomic operation.
    pub byte_len: u32,
    /// The immediate that came with the message, in host order.
    pub immediate: Option<u32>,
    /// The local key that the message invalidated.
    pub invalidated_rkey: Option<u32>,
    /// The local queue pair.
    pub qp_num: Qpn,
    /// The queue pair that sent the message; on connected services the peer.
    pub src_qp: Qpn,
    /// Who sent the frame, for datagrams: an answer goes back there.
    pub source_mac: Option<MacAddr>,
    /// What else is known.
    pub flags: WcFlags,
    /// An implementation's own error detail: the AETH syndrome of the NAK that failed the request, else 0.
    pub vendor_err: u32,
}
