//! The four programs of rdma-core, and in what they differ.

use uroce::{GRH_BYTES, QpType};

/// Which of them the other end is, or could be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    /// `ibv_rc_pingpong`
    Rc,
    /// `ibv_uc_pingpong`
    Uc,
    /// `ibv_ud_pingpong`
    Ud,
    /// `ibv_srq_pingpong`: RC, many queue pairs that share their receives.
    Srq,
}

/// Addresses that `ibv_srq_pingpong` exchanges, however many queue pairs there are: those beyond are all zero.
pub(super) const SLOTS: usize = 256;

/// The Q_Key of `ibv_ud_pingpong`.
pub(super) const QKEY: u32 = 0x1111_1111;

impl Service {
    pub(super) const fn program(self) -> &'static str {
        match self {
            Self::Rc => "ibv_rc_pingpong",
            Self::Uc => "ibv_uc_pingpong",
            Self::Ud => "ibv_ud_pingpong",
            Self::Srq => "ibv_srq_pingpong",
        }
    }

    pub(super) const fn qp_type(self) -> QpType {
        match self {
            Self::Rc | Self::Srq => QpType::Rc,
            Self::Uc => QpType::Uc,
            Self::Ud => QpType::Ud,
        }
    }

    /// As verbs abbreviate it.
    pub(super) const fn connection(self) -> &'static str {
        match self {
            Self::Rc | Self::Srq => "RC",
            Self::Uc => "UC",
            Self::Ud => "UD",
        }
    }

    /// Whether a lost packet is sent again.
    pub(super) const fn is_reliable(self) -> bool {
        matches!(self, Self::Rc | Self::Srq)
    }

    pub(super) const fn default_size(self) -> u32 {
        match self {
            Self::Ud => 2048,
            _ => 4096,
        }
    }

    pub(super) const fn default_qps(self) -> u32 {
        match self {
            Self::Srq => 16,
            _ => 1,
        }
    }

    /// Addresses that each end says.
    pub(super) const fn slots(self) -> usize {
        match self {
            Self::Srq => SLOTS,
            _ => 1,
        }
    }

    /// Bytes that a receive has before the message.
    pub(super) const fn headroom(self) -> usize {
        match self {
            Self::Ud => GRH_BYTES,
            _ => 0,
        }
    }
}
