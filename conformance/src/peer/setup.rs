//! What a scenario asks of both sides.

use std::fmt;
use std::net::Ipv6Addr;

use super::values::access;

/// Which of its addresses a peer uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6, not link-local.
    V6,
}

impl Family {
    /// Whether an address, IPv4 ones being mapped, is a usable one of the family.
    pub fn has(self, gid: Ipv6Addr) -> bool {
        match self {
            Self::V4 => gid.to_ipv4_mapped().is_some(),
            Self::V6 => gid.to_ipv4_mapped().is_none() && !gid.is_unicast_link_local(),
        }
    }
}

/// How the two ends are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Address family.
    pub family: Family,
    /// Path MTU in bytes: 256, 512, 1024, 2048 or 4096.
    pub mtu: u32,
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let family = match self.family {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        };
        write!(f, "{family} {}", self.mtu)
    }
}

/// Transport service of the queue pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Unreliable datagram.
    Ud,
}

impl Service {
    /// Its value in `ibv_qp_type`.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Rc => 2,
            Self::Uc => 3,
            Self::Ud => 4,
        }
    }
}

/// How long a sender goes on without an answer.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Acknowledgement timeout: 4.096 us * 2^n.
    pub timeout: u8,
    /// How often it sends again. 7, which rdma_rxe takes as "for ever", is not for tests.
    pub retries: u8,
    /// How often it tries again when no receive is posted; 7 means for ever.
    pub rnr_retries: u8,
}

impl Patience {
    /// 268 ms, six times, and for ever without a receive: an emulated kernel on the other side is slow.
    pub const LONG: Self = Self { timeout: 16, retries: 6, rnr_retries: 7 };
    /// 67 ms, twice, and once without a receive: for those who are to give up.
    pub const SHORT: Self = Self { timeout: 14, retries: 2, rnr_retries: 1 };
}

/// Which ICRC a FLUSH carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushForm {
    /// That of the specification.
    Specified,
    /// That of rdma_rxe, which sums the headers twice: our switch for it is on.
    Doubled,
}

/// What a scenario asks of both ends, beyond the route.
#[derive(Clone, Copy, Debug)]
pub struct Demands {
    /// Transport service.
    pub service: Service,
    /// How many queue pairs.
    pub queue_pairs: usize,
    /// Whether they take receives from one shared receive queue.
    pub shared: bool,
    /// Bytes of memory.
    pub memory: usize,
    /// Rights of the memory.
    pub access: u32,
    /// Rights of the queue pairs.
    pub rights: u32,
    /// When senders give up.
    pub patience: Patience,
    /// How FLUSH is spoken.
    pub flush: FlushForm,
}

impl Demands {
    /// One reliable connection with all rights and much patience, over this much memory.
    pub const fn memory(memory: usize) -> Self {
        Self {
            service: Service::Rc,
            queue_pairs: 1,
            shared: false,
            memory,
            access: access::ALL,
            rights: access::ALL,
            patience: Patience::LONG,
            flush: FlushForm::Specified,
        }
    }
}

/// What one end is opened with.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// How the ends are joined.
    pub route: Route,
    /// Everything else.
    pub demands: Demands,
}

impl Setup {
    /// What memory holds before anything happens.
    pub const FILL: u8 = 0xa5;
    /// Q_Key of every datagram queue pair.
    pub const QKEY: u32 = 0x1234_5678;
    /// Bytes of payload that the links between the ends carry in a packet.
    pub const PORT_MTU: usize = 4096;
    /// READs and atomics outstanding at most.
    pub(crate) const READS_IN_FLIGHT: u8 = 4;
    /// 5.12 ms between tries when no receive is posted.
    pub(crate) const RNR_TIMER: u8 = 18;
    /// Work requests that each queue holds.
    pub(crate) const DEPTH: u32 = 64;
    /// Completions that the completion queue holds: those of two queue pairs.
    pub(crate) const COMPLETIONS: u32 = 4 * Self::DEPTH;
}
