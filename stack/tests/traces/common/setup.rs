//! How a connection is made.

use std::net::IpAddr;
use std::time::Duration;

use super::*;

/// What a connection is made with.
#[derive(Clone, Debug)]
pub struct Setup {
    pub qp_type: QpType,
    pub mtu: Mtu,
    /// What the link carries: of datagrams the longest.
    pub port_mtu: Mtu,
    /// Receives come from a shared receive queue of this size. An XRC target has one in any case.
    pub srq: Option<u32>,
    pub block_multicast_loopback: bool,
    /// The peer's first PSN.
    pub rq_psn: u32,
    /// The engine's first PSN.
    pub sq_psn: u32,
    pub access: Access,
    pub max_rd_atomic: u8,
    pub max_dest_rd_atomic: u8,
    /// 10 is 4.194304 ms.
    pub timeout: u8,
    pub retry_cnt: u8,
    pub rnr_retry: u8,
    /// 14 is 1.28 ms.
    pub min_rnr_timer: u8,
    pub sq_sig_all: bool,
    pub window: u32,
    pub depth: u32,
    pub cqe: u32,
    pub rxe_flush_icrc: bool,
    /// How far the queue pair is brought.
    pub state: QpState,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            qp_type: QpType::Rc,
            mtu: Mtu::B1024,
            port_mtu: Mtu::B4096,
            srq: None,
            block_multicast_loopback: false,
            rq_psn: 100,
            sq_psn: 500,
            access: Access::REMOTE,
            max_rd_atomic: 4,
            max_dest_rd_atomic: 4,
            timeout: 10,
            retry_cnt: 3,
            rnr_retry: 3,
            min_rnr_timer: 14,
            sq_sig_all: true,
            window: 128,
            depth: 64,
            cqe: 256,
            rxe_flush_icrc: false,
            state: QpState::Rts,
        }
    }
}

/// What a timeout exponent of 10 comes to.
pub const TIMEOUT: Duration = Duration::from_nanos(4_194_304);

impl Setup {
    /// A queue pair of another kind than RC.
    pub fn of(qp_type: QpType) -> Self {
        Self { qp_type, ..Self::default() }
    }
}

/// The attributes of one step towards RTS.
pub fn attr_to(state: QpState, setup: &Setup) -> QpAttr {
    let full = attr_of_rc(state, setup);
    match setup.qp_type {
        QpType::Rc => full,
        QpType::XrcIni => QpAttr { max_dest_rd_atomic: None, min_rnr_timer: None, ..full },
        QpType::XrcTgt => QpAttr { retry_cnt: None, rnr_retry: None, max_rd_atomic: None, ..full },
        QpType::Uc => QpAttr {
            path: full.path,
            path_mtu: full.path_mtu,
            dest_qpn: full.dest_qpn,
            rq_psn: full.rq_psn,
            access: full.access,
            qkey: None,
            ..attr_of_ud(full)
        },
        QpType::Gsi => QpAttr { port: None, ..attr_of_ud(full) },
        _ => attr_of_ud(full),
    }
}

fn attr_of_ud(full: QpAttr) -> QpAttr {
    QpAttr {
        state: full.state,
        pkey_index: full.pkey_index,
        port: full.port,
        qkey: full.access.map(|_| QKEY),
        sq_psn: full.sq_psn,
        ..QpAttr::default()
    }
}

fn attr_of_rc(state: QpState, setup: &Setup) -> QpAttr {
    let to = QpAttr::to(state);
    match state {
        QpState::Init => QpAttr { pkey_index: Some(0), port: Some(1), access: Some(setup.access), ..to },
        QpState::Rtr => QpAttr {
            path: Some(path(HOST, PEER)),
            path_mtu: Some(setup.mtu),
            dest_qpn: Some(PEER_QPN),
            rq_psn: Some(Psn::new(setup.rq_psn)),
            max_dest_rd_atomic: Some(setup.max_dest_rd_atomic),
            min_rnr_timer: Some(setup.min_rnr_timer),
            ..to
        },
        QpState::Rts => QpAttr {
            timeout: Some(setup.timeout),
            retry_cnt: Some(setup.retry_cnt),
            rnr_retry: Some(setup.rnr_retry),
            sq_psn: Some(Psn::new(setup.sq_psn)),
            max_rd_atomic: Some(setup.max_rd_atomic),
            ..to
        },
        _ => to,
    }
}

pub const fn path(source: IpAddr, destination: IpAddr) -> Path {
    Path {
        source_mac: MacAddr([2, 0, 0, 0, 0, 1]),
        destination_mac: MacAddr([2, 0, 0, 0, 0, 2]),
        vlan: None,
        source,
        destination,
        source_port: 0xC000,
        traffic_class: 0,
        hop_limit: 64,
        flow_label: 0,
    }
}

pub const fn qp_init(setup: &Setup, send_cq: Cq, recv_cq: Cq) -> QpInit {
    QpInit {
        max_send_wr: setup.depth,
        max_recv_wr: setup.depth,
        max_send_sge: 32,
        max_recv_sge: 32,
        max_inline_data: 512,
        sq_sig_all: setup.sq_sig_all,
        block_multicast_loopback: setup.block_multicast_loopback,
        ..QpInit::new(setup.qp_type, send_cq, recv_cq)
    }
}
