//! Queue pair attributes, in the words of the API.

use std::net::Ipv6Addr;

use uroce::{Access, AddressVector, Gid, Mtu, Psn, QpAttr, QpState, Qpn};

use crate::peer::{Endpoint, Result, Service, Setup, State};

/// The steps from RESET to RTS.
pub(super) fn to_rts(setup: &Setup, gid_index: u32, psn: Psn, other: &Endpoint) -> Result<[QpAttr; 3]> {
    let init = QpAttr { pkey_index: Some(0), port: Some(1), ..QpAttr::to(QpState::Init) };
    let (rtr, rts) = (QpAttr::to(QpState::Rtr), QpAttr { sq_psn: Some(psn), ..QpAttr::to(QpState::Rts) });
    Ok(match setup.demands.service {
        Service::Ud => [QpAttr { qkey: Some(Setup::QKEY), ..init }, rtr, rts],
        Service::Uc => [granting(setup, init), to_peer(setup, gid_index, other, rtr)?, rts],
        Service::Rc => {
            let rtr = to_peer(setup, gid_index, other, rtr)?;
            [granting(setup, init), reliable_rtr(rtr), reliable_rts(setup, rts)]
        }
    })
}

/// A change of state alone.
pub(super) fn to_state(state: State) -> QpAttr {
    match state {
        State::Reset => QpAttr::to(QpState::Reset),
        State::Running => QpAttr::to(QpState::Rts),
        State::Draining => QpAttr { en_sqd_async_notify: Some(true), ..QpAttr::to(QpState::Sqd) },
        State::Failed => QpAttr::to(QpState::Err),
    }
}

/// The way to an address or a group from an entry of the GID table.
pub(super) fn address(gid_index: u32, gid: Ipv6Addr) -> AddressVector {
    AddressVector { sgid_index: Some(gid_index), ..AddressVector::new(Gid::from(gid)) }
}

fn granting(setup: &Setup, init: QpAttr) -> QpAttr {
    QpAttr { access: Some(Access::from_bits_truncate(setup.demands.rights)), ..init }
}

fn to_peer(setup: &Setup, gid_index: u32, other: &Endpoint, rtr: QpAttr) -> Result<QpAttr> {
    let mtu = setup.route.mtu as usize;
    Ok(QpAttr {
        av: Some(address(gid_index, other.gid)),
        path_mtu: Some(Mtu::from_bytes(mtu).ok_or_else(|| format!("{mtu} is no path MTU"))?),
        dest_qpn: Some(Qpn::new(other.qp_num)),
        rq_psn: Some(Psn::new(other.psn)),
        ..rtr
    })
}

fn reliable_rtr(rtr: QpAttr) -> QpAttr {
    QpAttr { max_dest_rd_atomic: Some(Setup::READS_IN_FLIGHT), min_rnr_timer: Some(Setup::RNR_TIMER), ..rtr }
}

fn reliable_rts(setup: &Setup, rts: QpAttr) -> QpAttr {
    let patience = setup.demands.patience;
    QpAttr {
        timeout: Some(patience.timeout),
        retry_cnt: Some(patience.retries),
        rnr_retry: Some(patience.rnr_retries),
        max_rd_atomic: Some(Setup::READS_IN_FLIGHT),
        ..rts
    }
}
