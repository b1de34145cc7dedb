//! Queue pair attributes, in the agent's words.

use crate::agent::{Attributes, Path};
use crate::peer::{Endpoint, Service, Setup, State};

/// `ibv_qp_state`.
const RESET: u8 = 0;
const INIT: u8 = 1;
const RTR: u8 = 2;
const RTS: u8 = 3;
const SQD: u8 = 4;
const ERR: u8 = 6;

/// The steps from RESET to RTS.
pub(super) fn to_rts(setup: &Setup, gid_index: u8, psn: u32, other: &Endpoint) -> [Attributes; 3] {
    let (init, rtr, rts) = (init(), rtr(), rts(psn));
    match setup.demands.service {
        Service::Ud => [Attributes { qkey: Some(Setup::QKEY), ..init }, rtr, rts],
        Service::Uc => [granting(setup, init), to_peer(setup, gid_index, other, rtr), rts],
        Service::Rc => {
            let rtr = to_peer(setup, gid_index, other, rtr);
            [granting(setup, init), reliable_rtr(rtr), reliable_rts(setup, rts)]
        }
    }
}

/// A change of state alone.
pub(super) fn to_state(state: State) -> Attributes {
    let (qp_state, notify) = match state {
        State::Reset => (RESET, None),
        State::Running => (RTS, None),
        State::Draining => (SQD, Some(1)),
        State::Failed => (ERR, None),
    };
    Attributes { qp_state: Some(qp_state), en_sqd_async_notify: notify, ..Attributes::default() }
}

fn init() -> Attributes {
    Attributes { qp_state: Some(INIT), pkey_index: Some(0), port_num: Some(1), ..Attributes::default() }
}

fn rtr() -> Attributes {
    Attributes { qp_state: Some(RTR), ..Attributes::default() }
}

fn rts(psn: u32) -> Attributes {
    Attributes { qp_state: Some(RTS), sq_psn: Some(psn), ..Attributes::default() }
}

fn granting(setup: &Setup, init: Attributes) -> Attributes {
    Attributes { qp_access_flags: Some(setup.demands.rights), ..init }
}

fn to_peer(setup: &Setup, gid_index: u8, other: &Endpoint, rtr: Attributes) -> Attributes {
    Attributes {
        ah_attr: Some(Path::new(other.gid, gid_index)),
        path_mtu: Some(mtu_code(setup.route.mtu)),
        dest_qp_num: Some(other.qp_num),
        rq_psn: Some(other.psn),
        ..rtr
    }
}

fn reliable_rtr(rtr: Attributes) -> Attributes {
    Attributes {
        max_dest_rd_atomic: Some(Setup::READS_IN_FLIGHT),
        min_rnr_timer: Some(Setup::RNR_TIMER),
        ..rtr
    }
}

fn reliable_rts(setup: &Setup, rts: Attributes) -> Attributes {
    let patience = setup.demands.patience;
    Attributes {
        timeout: Some(patience.timeout),
        retry_cnt: Some(patience.retries),
        rnr_retry: Some(patience.rnr_retries),
        max_rd_atomic: Some(Setup::READS_IN_FLIGHT),
        ..rts
    }
}

/// `ibv_mtu` of a path MTU in bytes: 256 is 1, and each doubling one more.
fn mtu_code(bytes: u32) -> u8 {
    bytes.trailing_zeros().saturating_sub(7) as u8
}

#[cfg(test)]
mod tests {
    use super::mtu_code;

    #[test]
    fn mtu_codes_are_those_of_verbs() {
        assert_eq!([256, 512, 1024, 2048, 4096].map(mtu_code), [1, 2, 3, 4, 5]);
    }
}
