//! What an engine is told when it is made.

use core::ops::Range;

use crate::wire::Mtu;

/// How many of each object an engine holds and how large they may be, as `ibv_query_device` shows them.
///
/// What is shown here is what the create calls accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Queue pairs, 1 to 4096.
    pub max_qp: u32,
    /// Completion queues.
    pub max_cq: u32,
    /// Memory regions.
    pub max_mr: u32,
    /// Protection domains.
    pub max_pd: u32,
    /// Memory windows.
    pub max_mw: u32,
    /// Shared receive queues.
    pub max_srq: u32,
    /// Outstanding receives of one shared receive queue, 1 to 2^20.
    pub max_srq_wr: u32,
    /// Scatter/gather entries of one receive of a shared receive queue, 1 to 32.
    pub max_srq_sge: u32,
    /// XRC domains.
    pub max_xrcd: u32,
    /// Multicast groups with members here.
    pub max_mcast_grp: u32,
    /// Queue pairs attached to one multicast group.
    pub max_mcast_qp_attach: u32,
    /// Bytes of one memory region.
    pub max_mr_size: u64,
    /// Outstanding work requests of one queue, 1 to 2^20.
    pub max_qp_wr: u32,
    /// Scatter/gather entries of one work request, 1 to 32.
    pub max_sge: u32,
    /// Entries of one completion queue, 1 to 2^22.
    pub max_cqe: u32,
    /// Bytes that a work request may carry inline, at most 4096.
    pub max_inline_data: u32,
    /// Bytes of one message, at most 2^31.
    pub max_msg_sz: u32,
    /// READ and atomic requests that a peer may have outstanding at one queue pair, at most 128.
    pub max_qp_rd_atom: u8,
    /// READ and atomic requests that one queue pair may have outstanding at its peer, at most 128.
    pub max_qp_init_rd_atom: u8,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_qp: 4096,
            max_cq: 4096,
            max_mr: 1 << 16,
            max_pd: 4096,
            max_mw: 1 << 16,
            max_srq: 4096,
            max_srq_wr: 1 << 14,
            max_srq_sge: 32,
            max_xrcd: 4096,
            max_mcast_grp: 1024,
            max_mcast_qp_attach: 64,
            max_mr_size: 1 << 47,
            max_qp_wr: 1 << 14,
            max_sge: 32,
            max_cqe: 1 << 20,
            max_inline_data: 512,
            max_msg_sz: 1 << 31,
            max_qp_rd_atom: 128,
            max_qp_init_rd_atom: 128,
        }
    }
}

/// The configuration of one [`crate::Engine`].
///
/// Several engines may share an interface when their queue pair numbers do not overlap.
#[derive(Clone, Debug)]
pub struct Config {
    /// Seeds every random choice: queue pair numbers, keys, first IP identifications. Peers must not be able
    /// to guess it: take it from the operating system, except in tests.
    pub seed: [u8; 32],
    /// The queue pair numbers that this engine hands out, within 2 to 0xFFFFFE.
    pub qpns: Range<u32>,
    /// Object limits.
    pub limits: Limits,
    /// The most request packets that a queue pair keeps unacknowledged, 1 to 65,536.
    pub window: u32,
    /// The path MTU that the link carries; no queue pair may be set to a larger one.
    pub port_mtu: Mtu,
    /// Whether queue pairs other than number 1 may use a Q_Key with bit 31 set, with which they could speak to queue
    /// pair 1 of a peer: for privileged users only (IBTA, controlled Q_Keys).
    pub controlled_qkeys: bool,
    /// FLUSH as `rdma_rxe` speaks it, whose ICRC covers the transport headers twice: sent so, while both forms are taken
    /// from peers. Without it FLUSH is as the specification says.
    pub rxe_flush_icrc: bool,
}

impl Config {
    /// Defaults for a link that carries `port_mtu`, with every random choice drawn from `seed`.
    #[must_use]
    pub fn new(seed: [u8; 32], port_mtu: Mtu) -> Self {
        Self {
            seed,
            qpns: 2..0xFF_FFFF,
            limits: Limits::default(),
            window: 128,
            port_mtu,
            controlled_qkeys: false,
            rxe_flush_icrc: false,
        }
    }
}
