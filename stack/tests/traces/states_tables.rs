//! Every transition of every kind of queue pair, and every attribute with each (protocol section 4.15).

use crate::common::*;
use QpState::{Err as Error, Init, Reset, Rtr, Rts, Sqd, Sqe};
use uroce_stack::{AttrMask, ModifyError};

const KINDS: [QpType; 6] = [QpType::Rc, QpType::Uc, QpType::Ud, QpType::XrcIni, QpType::XrcTgt, QpType::Gsi];
const STATES: [QpState; 7] = [Reset, Init, Rtr, Rts, Sqd, Sqe, Error];

/// A queue pair in this state; `None` where its kind has no such state.
fn host_in(kind: QpType, state: QpState) -> Option<Host> {
    let unreliable = matches!(kind, QpType::Uc | QpType::Ud | QpType::Gsi);
    let reached = if matches!(state, Sqd | Sqe | Error) { Rts } else { state };
    if state == Sqe && !unreliable {
        return None;
    }
    let mut host = Host::with(Setup { state: reached, ..Setup::of(kind) });
    match state {
        Sqe => fail_a_send(&mut host),
        _ if state != reached => host.modify(&QpAttr::to(state)),
        _ => {}
    }
    assert_eq!(host.state(), state);
    Some(host)
}

fn fail_a_send(host: &mut Host) {
    let (wrong, ah) = (Sge { lkey: 0xBAD, ..host.sge(0, 4) }, host.handle(PEER));
    let to = if host.setup.qp_type == QpType::Uc {
        Recipient::Peer
    } else {
        Recipient::Datagram { ah: &ah, qpn: PEER_QPN, qkey: QKEY }
    };
    host.try_post_to(0, &[wrong], to).expect("the request is accepted");
    assert_eq!((host.sent(), host.done()), (vec![], vec![(0, WcStatus::LocProtErr)]));
}

/// These attributes, each with a value that is good anywhere, and a true claim about the state.
fn attributes(mask: AttrMask, state: QpState) -> QpAttr {
    use AttrMask as A;
    let has = |bit| mask.contains(bit);
    QpAttr {
        state: None,
        cur_state: has(A::CUR_STATE).then_some(state),
        en_sqd_async_notify: has(A::EN_SQD_ASYNC_NOTIFY).then_some(true),
        access: has(A::ACCESS_FLAGS).then_some(Access::REMOTE),
        pkey_index: has(A::PKEY_INDEX).then_some(0),
        port: has(A::PORT).then_some(1),
        qkey: has(A::QKEY).then_some(QKEY),
        path: has(A::AV).then_some(path(HOST, PEER)),
        path_mtu: has(A::PATH_MTU).then_some(Mtu::B1024),
        timeout: has(A::TIMEOUT).then_some(10),
        retry_cnt: has(A::RETRY_CNT).then_some(3),
        rnr_retry: has(A::RNR_RETRY).then_some(3),
        rq_psn: has(A::RQ_PSN).then_some(Psn::new(100)),
        sq_psn: has(A::SQ_PSN).then_some(Psn::new(500)),
        max_rd_atomic: has(A::MAX_QP_RD_ATOMIC).then_some(1),
        max_dest_rd_atomic: has(A::MAX_DEST_RD_ATOMIC).then_some(1),
        min_rnr_timer: has(A::MIN_RNR_TIMER).then_some(14),
        dest_qpn: has(A::DEST_QPN).then_some(PEER_QPN),
    }
}

fn every_attribute() -> impl Iterator<Item = AttrMask> {
    AttrMask::all().iter().filter(|bit| *bit != AttrMask::STATE)
}

/// The table of section 4.15: what a transition requires and what it takes beside.
fn table(kind: QpType, from: QpState, to: QpState) -> Option<(AttrMask, AttrMask)> {
    use AttrMask as A;
    let none = A::empty();
    let lets_in = match kind {
        QpType::Ud | QpType::Gsi => A::QKEY,
        _ => A::ACCESS_FLAGS,
    };
    let at_init = match kind {
        QpType::Gsi => A::PKEY_INDEX | A::QKEY,
        _ => A::PKEY_INDEX | A::PORT | lets_in,
    };
    let rnr = if matches!(kind, QpType::Rc | QpType::XrcTgt) { A::MIN_RNR_TIMER } else { none };
    let running = A::CUR_STATE | lets_in | rnr;
    Some(match (from, to) {
        (_, Reset | Error) => (none, none),
        (Reset, Init) => (at_init, none),
        (Init, Init) => (none, at_init),
        (Init, Rtr) => (at_rtr(kind), A::PKEY_INDEX | lets_in),
        (Rtr, Rts) => (at_rts(kind), running),
        (Rts | Sqd, Rts) => (none, running),
        (Sqe, Rts) => (none, A::CUR_STATE | lets_in),
        (Rts, Sqd) => (none, A::EN_SQD_ASYNC_NOTIFY),
        (Sqd, Sqd) => (none, A::PKEY_INDEX | lets_in | drained(kind)),
        _ => return None,
    })
}

fn at_rtr(kind: QpType) -> AttrMask {
    use AttrMask as A;
    let connection = A::AV | A::PATH_MTU | A::DEST_QPN | A::RQ_PSN;
    match kind {
        QpType::Ud | QpType::Gsi => A::empty(),
        QpType::Uc | QpType::XrcIni => connection,
        _ => connection | A::MAX_DEST_RD_ATOMIC | A::MIN_RNR_TIMER,
    }
}

fn at_rts(kind: QpType) -> AttrMask {
    use AttrMask as A;
    match kind {
        QpType::Ud | QpType::Gsi | QpType::Uc => A::SQ_PSN,
        QpType::XrcTgt => A::SQ_PSN | A::TIMEOUT,
        _ => A::SQ_PSN | A::TIMEOUT | A::RETRY_CNT | A::RNR_RETRY | A::MAX_QP_RD_ATOMIC,
    }
}

fn drained(kind: QpType) -> AttrMask {
    use AttrMask as A;
    let requester = A::RETRY_CNT | A::RNR_RETRY | A::MAX_QP_RD_ATOMIC;
    let responder = A::MAX_DEST_RD_ATOMIC | A::MIN_RNR_TIMER;
    let path = A::PORT | A::AV | A::TIMEOUT;
    match kind {
        QpType::Ud | QpType::Gsi => A::empty(),
        QpType::Uc => A::AV,
        QpType::XrcIni => path | requester,
        QpType::XrcTgt => path | responder,
        _ => path | requester | responder,
    }
}

fn modify(host: &mut Host, attr: &QpAttr) -> Result<(), ModifyError> {
    host.engine.modify_qp(host.now, host.qpn, attr)
}

/// A step from `from` to `to` with these attributes, on a new queue pair, which stays where it was when refused.
fn attempt(kind: QpType, from: QpState, to: QpState, mask: AttrMask) -> Option<Result<(), ModifyError>> {
    let mut host = host_in(kind, from)?;
    let result = modify(&mut host, &QpAttr { state: Some(to), ..attributes(mask, from) });
    assert_eq!(
        host.state(),
        if result.is_ok() { to } else { from },
        "{kind:?} {from:?} to {to:?} with {mask}"
    );
    Some(result)
}

fn each_transition(check: impl Fn(QpType, QpState, QpState, Option<(AttrMask, AttrMask)>)) {
    for kind in KINDS {
        for from in STATES.into_iter().filter(|state| host_in(kind, *state).is_some()) {
            for to in STATES {
                check(kind, from, to, table(kind, from, to));
            }
        }
    }
}

#[test]
fn p4_15_the_transitions_of_the_table_exist_and_no_others() {
    each_transition(|kind, from, to, rule| {
        let (required, _) = rule.unwrap_or_default();
        let expected = if rule.is_some() { Ok(()) } else { Err(ModifyError::Transition { from, to }) };
        assert_eq!(attempt(kind, from, to, required), Some(expected), "{kind:?} {from:?} to {to:?}");
    });
}

#[test]
fn p4_15_each_required_attribute_is_missed_alone() {
    each_transition(|kind, from, to, rule| {
        let (required, _) = rule.unwrap_or_default();
        for missing in required.iter() {
            let refused = attempt(kind, from, to, required - missing);
            assert_eq!(refused, Some(Err(ModifyError::Missing { from, to, missing })), "{kind:?}");
        }
    });
}

#[test]
fn p4_15_each_other_attribute_is_optional_or_refused() {
    each_transition(|kind, from, to, rule| {
        let Some((required, optional)) = rule else { return };
        for extra in every_attribute().filter(|bit| !required.contains(*bit)) {
            let expected = if optional.contains(extra) {
                Ok(())
            } else {
                Err(ModifyError::Disallowed { from, to, disallowed: extra })
            };
            assert_eq!(attempt(kind, from, to, required | extra), Some(expected), "{kind:?} {extra}");
        }
    });
}

#[test]
fn c40_without_a_transition_only_few_attributes_change() {
    for kind in KINDS {
        for state in STATES {
            for single in every_attribute() {
                let Some(mut host) = host_in(kind, state) else { continue };
                let (_, optional) = table(kind, state, state).unwrap_or_default();
                let result = modify(&mut host, &attributes(single, state));
                assert_eq!(
                    result.is_ok(),
                    optional.contains(single),
                    "{kind:?} {state:?} {single}: {result:?}"
                );
                assert_eq!(host.state(), state);
            }
        }
    }
}

#[test]
fn p4_15_a_claim_about_the_state_must_be_true() {
    for kind in KINDS {
        for (from, required) in [(Rtr, at_rts(kind)), (Rts, AttrMask::empty()), (Sqd, AttrMask::empty())] {
            for claimed in STATES.into_iter().filter(|claimed| *claimed != from) {
                let mut host = host_in(kind, from).expect("every kind has it");
                let attr =
                    QpAttr { cur_state: Some(claimed), state: Some(Rts), ..attributes(required, from) };
                let refused = modify(&mut host, &attr);
                assert_eq!(refused, Err(ModifyError::CurrentState { claimed, actual: from }), "{kind:?}");
                assert_eq!(host.state(), from);
            }
        }
    }
}

#[test]
fn c69_every_kind_tells_the_state_that_it_is_in() {
    for (kind, state) in KINDS.into_iter().flat_map(|kind| STATES.map(|state| (kind, state))) {
        let Some(host) = host_in(kind, state) else { continue };
        let attr = host.attr();
        assert_eq!((attr.state, attr.cur_state), (Some(state), Some(state)), "{kind:?}");
        assert_eq!((host.sends.state(), host.recvs.state()), (state, state), "{kind:?}");
    }
}

#[test]
fn c69_every_kind_tells_what_was_set() {
    for kind in KINDS {
        let host = host_in(kind, Rts).expect("every kind has it");
        let (told, init) = host.engine.query_qp(host.qpn).expect("the queue pair exists");
        assert_eq!((told.sq_psn, init.qp_type), (Some(Psn::new(500)), kind));
        let connected = !matches!(kind, QpType::Ud | QpType::Gsi);
        assert_eq!(told.dest_qpn, connected.then_some(PEER_QPN), "{kind:?}");
        assert_eq!(told.path, connected.then(|| path(HOST, PEER)));
        assert_eq!(told.access, connected.then_some(Access::REMOTE));
        assert_eq!(told.rq_psn, connected.then(|| Psn::new(100)));
        assert_eq!(told.qkey.is_some(), !connected);
        let acknowledged = matches!(kind, QpType::Rc | QpType::XrcIni);
        assert_eq!(told.retry_cnt.filter(|count| *count == 3).is_some(), acknowledged, "{kind:?}");
    }
}
