//! Who may speak to whom: no two queue pairs with one peer (S07), paths, and queue pairs of one engine that speak to each
//! other (C76).

use crate::common::*;
use QpState::{Err as Error, Init, Reset, Rtr, Rts};
use uroce_stack::ModifyError;

const CONNECTED: [QpType; 4] = [QpType::Rc, QpType::Uc, QpType::XrcIni, QpType::XrcTgt];

/// Another queue pair of this kind in INIT.
fn in_init(host: &mut Host, kind: QpType) -> NewQp {
    let setup = Setup::of(kind);
    let domain = (kind == QpType::XrcTgt).then(|| host.engine.open_xrcd().expect("room for a domain"));
    let init = QpInit { xrcd: domain, ..qp_init(&setup, host.send_cq, host.recv_cq) };
    let qp = host.engine.create_qp(host.pd, &init).expect("room for a queue pair");
    host.engine.modify_qp(host.now, qp.qpn, &attr_to(Init, &setup)).expect("allowed");
    qp
}

fn to_rtr(
    host: &mut Host,
    qp: &NewQp,
    kind: QpType,
    change: impl FnOnce(&mut QpAttr),
) -> Result<(), ModifyError> {
    let mut attr = attr_to(Rtr, &Setup::of(kind));
    change(&mut attr);
    host.engine.modify_qp(host.now, qp.qpn, &attr)
}

#[test]
fn s07_two_queue_pairs_do_not_claim_one_peer() {
    for (kind, other) in CONNECTED.into_iter().flat_map(|kind| CONNECTED.map(|other| (kind, other))) {
        let mut host = Host::with(Setup::of(kind));
        let qp = in_init(&mut host, other);
        let refused = to_rtr(&mut host, &qp, other, |_| {});
        let taken = ModifyError::PeerTaken { peer: PEER_QPN, other: host.qpn };
        assert_eq!((refused, host.state_of(qp.qpn)), (Err(taken), Init), "{kind:?} and {other:?}");
        let elsewhere = |attr: &mut QpAttr| attr.path = Some(path(HOST, STRANGER));
        assert_eq!(to_rtr(&mut host, &qp, other, elsewhere), Ok(()), "the same number at another address");
        let third = in_init(&mut host, other);
        let next = |attr: &mut QpAttr| attr.dest_qpn = Some(Qpn::new(PEER_QPN.get() + 1));
        assert_eq!(to_rtr(&mut host, &third, other, next), Ok(()), "another number at the same address");
    }
}

#[test]
fn s07_a_peer_is_free_again_when_its_queue_pair_is_gone_or_in_error() {
    for kind in CONNECTED {
        let ends: [fn(&mut Host); 3] = [
            |host| host.engine.destroy_qp(host.qpn).expect("it exists"),
            |host| host.modify(&QpAttr::to(Error)),
            |host| host.modify(&QpAttr::to(Reset)),
        ];
        for end in ends {
            let mut host = Host::with(Setup::of(kind));
            let qp = in_init(&mut host, kind);
            assert!(to_rtr(&mut host, &qp, kind, |_| {}).is_err());
            end(&mut host);
            assert_eq!(to_rtr(&mut host, &qp, kind, |_| {}), Ok(()), "{kind:?}");
        }
    }
}

#[test]
fn s07_who_comes_back_finds_its_peer_taken() {
    let mut host = Host::new();
    let qp = in_init(&mut host, QpType::Rc);
    host.modify(&QpAttr::to(Reset));
    to_rtr(&mut host, &qp, QpType::Rc, |_| {}).expect("the peer is free");
    host.modify(&attr_to(Init, &host.setup.clone()));
    let attr = attr_to(Rtr, &host.setup);
    let taken = ModifyError::PeerTaken { peer: PEER_QPN, other: qp.qpn };
    assert_eq!(host.engine.modify_qp(host.now, host.qpn, &attr), Err(taken));
}

#[test]
fn s07_a_path_that_changes_later_does_not_lead_to_a_taken_peer() {
    let mut host = Host::new();
    let qp = in_init(&mut host, QpType::Rc);
    to_rtr(&mut host, &qp, QpType::Rc, |attr| attr.path = Some(path(HOST, STRANGER))).expect("free");
    for attr in [attr_to(Rts, &host.setup), QpAttr::to(QpState::Sqd)] {
        host.engine.modify_qp(host.now, qp.qpn, &attr).expect("allowed");
    }
    let there = QpAttr { path: Some(path(HOST, PEER)), ..QpAttr::default() };
    let taken = ModifyError::PeerTaken { peer: PEER_QPN, other: host.qpn };
    assert_eq!(host.engine.modify_qp(host.now, qp.qpn, &there), Err(taken));
    let again = QpAttr { path: Some(path(HOST, STRANGER)), ..QpAttr::default() };
    assert_eq!(host.engine.modify_qp(host.now, qp.qpn, &again), Ok(()), "its own peer");
}

#[test]
fn datagrams_have_no_peer_to_claim() {
    let mut host = Host::with(Setup::of(QpType::Ud));
    let others = host.neighbours(3);
    assert!(others.iter().all(|qp| host.state_of(qp.qpn) == Rts));
}

#[test]
fn a_path_of_two_families_is_refused() {
    for kind in CONNECTED {
        let mut host = Host::with(Setup { state: Reset, ..Setup::of(kind) });
        let qp = in_init(&mut host, kind);
        for mixed in [path(HOST, PEER_V6), path(HOST_V6, PEER)] {
            let refused = to_rtr(&mut host, &qp, kind, |attr| attr.path = Some(mixed));
            assert_eq!((refused, host.state_of(qp.qpn)), (Err(ModifyError::Path), Init), "{kind:?}");
        }
        let ipv6 = |attr: &mut QpAttr| attr.path = Some(path(HOST_V6, PEER_V6));
        assert_eq!(to_rtr(&mut host, &qp, kind, ipv6), Ok(()));
    }
}

/// Two queue pairs of one engine, connected to each other; or one, connected to itself.
fn looped(kind: QpType, count: usize) -> (Host, Vec<NewQp>) {
    let mut host = Host::with(Setup { state: Reset, ..Setup::of(kind) });
    let qps: Vec<NewQp> = (0..count).map(|_| in_init(&mut host, kind)).collect();
    for (index, qp) in qps.iter().enumerate() {
        for state in [Rtr, Rts] {
            let mut attr = attr_to(state, &Setup { rq_psn: 500, ..Setup::of(kind) });
            attr.path = attr.path.map(|_| path(HOST, HOST));
            attr.dest_qpn = attr.dest_qpn.map(|_| qps[count - 1 - index].qpn);
            host.engine.modify_qp(host.now, qp.qpn, &attr).expect("allowed");
        }
    }
    (host, qps)
}

/// Everything that leaves comes back, until nothing does; tells how many frames that were.
fn turn_around(host: &mut Host) -> usize {
    let mut frame = [0; 4096 + MAX_HEADER];
    let mut count = 0;
    while let Some(len) = host.engine.transmit(host.now, &mut frame) {
        host.engine.receive(host.now, &frame[..len], &[]);
        count += 1;
    }
    host.publish();
    count
}

fn receive(qp: &mut NewQp, wr_id: u64, sge: Sge) {
    qp.recv.push(wr_id, &[sge]).expect("the receive is accepted");
    qp.recv.ring_doorbell();
}

#[test]
fn c76_two_queue_pairs_of_one_engine_speak_to_each_other() {
    let run = || {
        let (mut host, mut qps) = looped(QpType::Rc, 2);
        host.fill(0, &pattern(3000));
        receive(&mut qps[1], 9, host.sge(8192, 4096));
        let there = host.at(16384);
        post_to(&mut qps[0], 1, SendOp::Send { immediate: None }, &[host.sge(0, 3000)]);
        post_to(&mut qps[0], 2, SendOp::Write { remote: there, immediate: None }, &[host.sge(0, 2000)]);
        post_to(&mut qps[1], 3, SendOp::Read { remote: there }, &[host.sge(20480, 2000)]);
        post_to(&mut qps[1], 4, SendOp::FetchAdd { remote: host.at(32768), add: 7 }, &[host.sge(32776, 8)]);
        let frames = turn_around(&mut host);
        (
            frames,
            host.done(),
            host.received(),
            host.bytes(8192, 3000),
            host.bytes(16384, 2000),
            host.word(32768),
        )
    };
    let (frames, mut done, received, sent, written, word) = run();
    done.sort_unstable_by_key(|(wr_id, _)| *wr_id);
    assert_eq!((done, received), (ok(1..=4), ok([9])));
    assert_eq!((sent, written, word), (pattern(3000), pattern(2000), 7));
    assert_eq!(run().0, frames, "the same again");
}

#[test]
fn c76_a_queue_pair_speaks_to_itself() {
    for kind in [QpType::Rc, QpType::Uc] {
        let (mut host, mut qps) = looped(kind, 1);
        host.fill(0, &pattern(3000));
        receive(&mut qps[0], 9, host.sge(8192, 4096));
        let there = host.at(16384);
        post_to(&mut qps[0], 1, SendOp::Send { immediate: None }, &[host.sge(0, 3000)]);
        post_to(&mut qps[0], 2, SendOp::Write { remote: there, immediate: None }, &[host.sge(0, 2000)]);
        turn_around(&mut host);
        assert_eq!((host.done(), host.received()), (ok([1, 2]), ok([9])), "{kind:?}");
        assert_eq!((host.bytes(8192, 3000), host.bytes(16384, 2000)), (pattern(3000), pattern(2000)));
    }
}

#[test]
fn c76_errors_are_those_of_any_peer() {
    let (mut host, mut qps) = looped(QpType::Rc, 2);
    post_to(&mut qps[0], 1, SendOp::Write { remote: FAR, immediate: None }, &[host.sge(0, 4)]);
    turn_around(&mut host);
    assert_eq!(host.done(), [(1, WcStatus::RemAccessErr)]);
    assert_eq!((host.state_of(qps[0].qpn), host.state_of(qps[1].qpn)), (Error, Error));
}
