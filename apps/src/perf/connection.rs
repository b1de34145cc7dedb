//! The transport services that can be measured.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use uroce::{GRH_BYTES, QpType};

use super::args::{BwOp, LatOp};
use super::plan::Test;

/// A transport service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Connection {
    /// Reliable connection
    #[default]
    #[value(name = "RC")]
    Rc,
    /// Unreliable connection: WRITE and SEND
    #[value(name = "UC")]
    Uc,
    /// Unreliable datagrams: SEND of up to the path MTU
    #[value(name = "UD")]
    Ud,
}

impl Connection {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Rc => "RC",
            Self::Uc => "UC",
            Self::Ud => "UD",
        }
    }

    pub(crate) const fn qp_type(self) -> QpType {
        match self {
            Self::Rc => QpType::Rc,
            Self::Uc => QpType::Uc,
            Self::Ud => QpType::Ud,
        }
    }

    /// Whether it has the operation (IBTA, transport functions by service).
    pub(crate) const fn has(self, test: Test) -> bool {
        let send = matches!(test, Test::Bw(BwOp::Send) | Test::Lat(LatOp::Send));
        let write = matches!(test, Test::Bw(BwOp::Write) | Test::Lat(LatOp::Write));
        match self {
            Self::Rc => true,
            Self::Uc => send || write,
            Self::Ud => send,
        }
    }

    /// Bytes that a receive has before the message.
    pub(crate) const fn headroom(self) -> usize {
        match self {
            Self::Ud => GRH_BYTES,
            _ => 0,
        }
    }
}
