//! Transitions and the attributes that each needs and takes (protocol section 4.15).

use crate::common::*;
use QpState::{Err as Error, Init, Reset, Rtr, Rts, Sqd, Sqe};
use uroce_stack::{AttrMask, ModifyError};

fn modify(host: &mut Host, attr: &QpAttr) -> Result<(), ModifyError> {
    host.engine.modify_qp(host.now, host.qpn, attr)
}

fn host_in(state: QpState) -> Host {
    let reached = if matches!(state, Sqd | Error) { Rts } else { state };
    let mut host = Host::with(Setup { state: reached, ..Setup::default() });
    if state != reached {
        host.modify(&QpAttr::to(state));
    }
    host
}

/// Every attribute there is, each alone.
fn single_attributes() -> Vec<QpAttr> {
    let none = QpAttr::default;
    vec![
        QpAttr { en_sqd_async_notify: Some(true), ..none() },
        QpAttr { access: Some(Access::empty()), ..none() },
        QpAttr { pkey_index: Some(0), ..none() },
        QpAttr { port: Some(1), ..none() },
        QpAttr { qkey: Some(1), ..none() },
        QpAttr { path: Some(path(HOST, PEER)), ..none() },
        QpAttr { path_mtu: Some(Mtu::B256), ..none() },
        QpAttr { timeout: Some(1), ..none() },
        QpAttr { retry_cnt: Some(1), ..none() },
        QpAttr { rnr_retry: Some(1), ..none() },
        QpAttr { rq_psn: Some(Psn::new(1)), ..none() },
        QpAttr { sq_psn: Some(Psn::new(1)), ..none() },
        QpAttr { max_rd_atomic: Some(1), ..none() },
        QpAttr { max_dest_rd_atomic: Some(1), ..none() },
        QpAttr { min_rnr_timer: Some(1), ..none() },
        QpAttr { dest_qpn: Some(PEER_QPN), ..none() },
    ]
}

/// What may be set without a change of state.
fn settable(state: QpState) -> AttrMask {
    use AttrMask as A;
    match state {
        Init => A::PKEY_INDEX | A::PORT | A::ACCESS_FLAGS,
        Rts => A::ACCESS_FLAGS | A::MIN_RNR_TIMER,
        Sqd => {
            A::PORT
                | A::AV
                | A::TIMEOUT
                | A::RETRY_CNT
                | A::RNR_RETRY
                | A::MAX_QP_RD_ATOMIC
                | A::MAX_DEST_RD_ATOMIC
                | A::ACCESS_FLAGS
                | A::PKEY_INDEX
                | A::MIN_RNR_TIMER
        }
        _ => A::empty(),
    }
}

#[test]
fn c40_without_a_transition_only_few_attributes_change() {
    for state in [Reset, Init, Rtr, Rts, Sqd, Error] {
        for attr in single_attributes() {
            let mut host = host_in(state);
            let allowed = settable(state).contains(attr.mask());
            assert_eq!(modify(&mut host, &attr).is_ok(), allowed, "{state:?} {:?}", attr.mask());
            assert_eq!(host.state(), state);
        }
    }
}

#[test]
fn each_required_attribute_is_missed() {
    let cases = [
        (Reset, Init, AttrMask::PKEY_INDEX | AttrMask::PORT | AttrMask::ACCESS_FLAGS),
        (
            Init,
            Rtr,
            AttrMask::AV
                | AttrMask::PATH_MTU
                | AttrMask::DEST_QPN
                | AttrMask::RQ_PSN
                | AttrMask::MAX_DEST_RD_ATOMIC
                | AttrMask::MIN_RNR_TIMER,
        ),
        (
            Rtr,
            Rts,
            AttrMask::TIMEOUT
                | AttrMask::RETRY_CNT
                | AttrMask::RNR_RETRY
                | AttrMask::SQ_PSN
                | AttrMask::MAX_QP_RD_ATOMIC,
        ),
    ];
    for (from, to, missing) in cases {
        let mut host = host_in(from);
        assert_eq!(modify(&mut host, &QpAttr::to(to)), Err(ModifyError::Missing { from, to, missing }));
        assert_eq!(host.state(), from);
    }
}

#[test]
fn each_attribute_that_a_transition_does_not_take_is_refused() {
    for (from, to) in
        [(Reset, Init), (Init, Rtr), (Rtr, Rts), (Rts, Sqd), (Sqd, Rts), (Rts, Reset), (Rts, Error)]
    {
        let full = if from == Sqd { QpAttr::to(to) } else { attr_to(to, &Setup::default()) };
        let mut refused = 0;
        for extra in single_attributes() {
            let merged = merge(&full, &extra);
            let mut host = host_in(from);
            if let Err(error) = modify(&mut host, &merged) {
                assert_eq!(error, ModifyError::Disallowed { from, to, disallowed: extra.mask() });
                assert_eq!(host.state(), from, "nothing is changed");
                refused += 1;
            }
        }
        let expected = match (from, to) {
            (Reset, Init) => 13,
            (Init, Rtr) => 8,
            (Rtr, Rts) => 9,
            (Rts, Sqd) => 15,
            (Sqd, Rts) => 14,
            _ => 16,
        };
        assert_eq!(refused, expected, "{from:?} to {to:?}");
    }
}

/// `full` with what `extra` sets.
fn merge(full: &QpAttr, extra: &QpAttr) -> QpAttr {
    let (f, e) = (full.clone(), extra.clone());
    QpAttr {
        state: f.state,
        cur_state: f.cur_state,
        en_sqd_async_notify: e.en_sqd_async_notify.or(f.en_sqd_async_notify),
        access: e.access.or(f.access),
        pkey_index: e.pkey_index.or(f.pkey_index),
        port: e.port.or(f.port),
        qkey: e.qkey.or(f.qkey),
        path: e.path.or(f.path),
        path_mtu: e.path_mtu.or(f.path_mtu),
        timeout: e.timeout.or(f.timeout),
        retry_cnt: e.retry_cnt.or(f.retry_cnt),
        rnr_retry: e.rnr_retry.or(f.rnr_retry),
        rq_psn: e.rq_psn.or(f.rq_psn),
        sq_psn: e.sq_psn.or(f.sq_psn),
        max_rd_atomic: e.max_rd_atomic.or(f.max_rd_atomic),
        max_dest_rd_atomic: e.max_dest_rd_atomic.or(f.max_dest_rd_atomic),
        min_rnr_timer: e.min_rnr_timer.or(f.min_rnr_timer),
        dest_qpn: e.dest_qpn.or(f.dest_qpn),
    }
}

#[test]
fn no_other_transition_exists() {
    for from in [Reset, Init, Rtr, Rts, Sqd, Error] {
        for to in [Init, Rtr, Rts, Sqd, Sqe] {
            let exists = matches!(
                (from, to),
                (Reset | Init, Init) | (Init, Rtr) | (Rtr | Rts | Sqd, Rts) | (Rts | Sqd, Sqd)
            );
            let mut host = host_in(from);
            let result = modify(&mut host, &QpAttr::to(to));
            let refused = result == Err(ModifyError::Transition { from, to });
            assert_eq!(refused, !exists, "{from:?} to {to:?}: {result:?}");
        }
        for to in [Reset, Error] {
            assert_eq!(modify(&mut host_in(from), &QpAttr::to(to)), Ok(()), "{from:?} to {to:?}");
        }
    }
}

#[test]
fn c37_c40_values_out_of_range_change_nothing() {
    let rts = || attr_to(Rts, &Setup::default());
    let rtr = || attr_to(Rtr, &Setup::default());
    let cases = [
        (Rtr, QpAttr { rnr_retry: Some(8), ..rts() }),
        (Rtr, QpAttr { retry_cnt: Some(8), ..rts() }),
        (Rtr, QpAttr { timeout: Some(32), ..rts() }),
        (Rtr, QpAttr { max_rd_atomic: Some(129), ..rts() }),
        (Init, QpAttr { max_dest_rd_atomic: Some(129), ..rtr() }),
        (Init, QpAttr { min_rnr_timer: Some(32), ..rtr() }),
    ];
    for (from, attr) in cases {
        let mut host = host_in(from);
        assert!(matches!(modify(&mut host, &attr), Err(ModifyError::OutOfRange { .. })), "{attr:?}");
        assert_eq!(host.state(), from);
        assert_eq!(modify(&mut host, &attr_to(attr.state.expect("set"), &Setup::default())), Ok(()));
    }
}

#[test]
fn a_path_of_two_families_is_refused() {
    let v6 = std::net::IpAddr::V6(std::net::Ipv6Addr::LOCALHOST);
    let attr = QpAttr { path: Some(path(HOST, v6)), ..attr_to(Rtr, &Setup::default()) };
    assert_eq!(modify(&mut host_in(Init), &attr), Err(ModifyError::Path));
}

#[test]
fn an_unknown_queue_pair_is_not_found() {
    let mut host = Host::new();
    let unknown = Qpn::new(host.qpn.get() ^ 1);
    assert_eq!(host.engine.modify_qp(host.now, unknown, &QpAttr::to(Reset)), Err(ModifyError::NotFound));
}
