//! Connections end.

use std::time::Duration;

use crate::host::*;
use crate::peer::*;
use uroce_stack::cm::*;
use uroce_stack::wire::Qpn;
use uroce_stack::wire::cm::*;

#[test]
fn dreq_drep_timewait() {
    let mut host = Host::new();
    let (id, peer) = active(&mut host);
    host.disconnect(id);
    let sent = host.sent_one();
    let dreq = want!(sent, Dreq);
    assert_eq!(sent.transaction_id as u32, id.comm_id(), "an exchange of its own");
    assert_eq!((dreq.local_comm_id, dreq.remote_comm_id), (id.comm_id(), PEER_ID));
    assert_eq!((dreq.remote_qpn, dreq.private_data), (PEER_QPN, data(b"bye")));
    let drep = Drep { local_comm_id: PEER_ID, remote_comm_id: peer.ours, private_data: data(b"farewell") };
    host.receive(&peer.says(CmMessage::Drep(drep)));
    let said = Some(data(b"farewell"));
    assert_eq!(host.event(), CmEvent::Disconnected { id, private_data: said, timed_out: false });
    assert_eq!(host.cm.state(id), Some(CmState::Timewait));
    let same = connect_params(b"");
    assert_eq!(host.cm.connect(host.now, &same), Err(CmError::QpnBusy(OUR_QPN)), "packets may be under way");
    host.advance(Duration::from_millis(512));
    assert_eq!(host.event(), CmEvent::TimewaitExit { id });
    assert_eq!(host.cm.disconnect(host.now, id, b""), Err(CmError::NotFound));
    assert!(host.cm.connect(host.now, &same).is_ok());
}

#[test]
fn the_peer_ends_it_and_we_agree() {
    let mut host = Host::listening();
    let (id, peer) = passive(&mut host);
    let dreq = Dreq {
        local_comm_id: PEER_ID,
        remote_comm_id: peer.ours,
        remote_qpn: OUR_QPN,
        private_data: data(b"x"),
    };
    host.receive(&mad(0x4711, CmMessage::Dreq(dreq)));
    assert_eq!(host.event(), CmEvent::DisconnectRequest { id, private_data: data(b"x") });
    assert!(host.is_quiet(), "the application stops first");
    host.disconnect(id);
    let sent = host.sent_one();
    let drep = want!(sent, Drep);
    assert_eq!(sent.transaction_id, 0x4711, "the answer repeats it");
    assert_eq!((drep.local_comm_id, drep.remote_comm_id), (id.comm_id(), PEER_ID));
    assert_eq!(host.next_timeout(), Duration::from_millis(512));
    assert_eq!(host.events(), [CmEvent::TimewaitExit { id }]);
}

/// What the passive side begins is an exchange of its own, not the REQ's.
#[test]
fn the_passive_side_ends_it() {
    let mut host = Host::listening();
    let (id, _) = passive(&mut host);
    host.disconnect(id);
    let sent = host.sent_one();
    assert_eq!(want!(sent, Dreq).remote_qpn, PEER_QPN);
    assert_eq!(sent.transaction_id as u32, id.comm_id());
    assert_ne!(sent.transaction_id, PEER_TID);
    let peer = Peer { transaction_id: sent.transaction_id, ..Peer::asking(id) };
    host.receive(&peer.drep());
    assert!(matches!(host.event(), CmEvent::Disconnected { timed_out: false, .. }));
}

#[test]
fn both_end_it_at_once() {
    let mut host = Host::new();
    let (id, peer) = active(&mut host);
    host.disconnect(id);
    host.sent();
    host.receive(&peer.dreq());
    want!(host.sent_one(), Drep);
    assert_eq!(host.event(), CmEvent::Disconnected { id, private_data: None, timed_out: false });
    host.receive(&peer.drep());
    assert!(host.is_quiet());
    host.receive(&peer.dreq());
    want!(host.sent_one(), Drep);
    host.next_timeout();
    assert_eq!(host.events(), [CmEvent::TimewaitExit { id }]);
}

#[test]
fn who_ends_what_does_not_exist_is_told_that_it_ended() {
    let mut host = Host::new();
    let stranger = Peer { ours: 0x1234, theirs: 0x5678, transaction_id: 9 };
    for _ in 0..2 {
        host.receive(&stranger.dreq());
        let sent = host.sent_one();
        let drep = want!(sent, Drep);
        assert_eq!((drep.local_comm_id, drep.remote_comm_id, sent.transaction_id), (0x1234, 0x5678, 9));
    }
    assert_eq!(host.cm.connections(), 0);
}

#[test]
fn a_dreq_for_another_queue_pair_or_from_another_host_ends_nothing() {
    let mut host = Host::new();
    let (id, peer) = active(&mut host);
    let dreq = Dreq { remote_qpn: Qpn::new(0x999), ..want!(peer.dreq(), Dreq) };
    host.receive(&peer.says(CmMessage::Dreq(dreq)));
    assert!(host.is_quiet());
    host.receive_from("10.1.0.66", &peer.dreq());
    assert_eq!(
        kinds(&host.datagrams().iter().map(|out| CmMad::parse(&out.mad).unwrap()).collect::<Vec<_>>()),
        [CmKind::Drep]
    );
    assert!(host.events().is_empty());
    assert_eq!(host.cm.state(id), Some(CmState::Established));
    assert_eq!((host.count(CmCounter::WrongQpn), host.count(CmCounter::UnknownId)), (1, 1));
}

/// Case C78: the peer restarted, and its queue pair numbers begin anew.
#[test]
fn c78_a_stale_connection_is_rejected_torn_down_and_a_later_request_succeeds() {
    let mut host = Host::listening();
    let (old, peer) = passive(&mut host);
    let reborn = Req { local_comm_id: 0xbeef, ..req() };
    host.receive(&req_mad(reborn));
    let sent = host.sent();
    assert_eq!(kinds(&sent), [CmKind::Dreq, CmKind::Rej]);
    let rej = want!(sent[1], Rej);
    assert_eq!(
        (rej.reason, rej.remote_comm_id, rej.local_comm_id),
        (RejectReason::StaleConnection, 0xbeef, 0)
    );
    assert_eq!(rej.answered, Answered::Req);
    assert!(host.events().is_empty(), "no request, and the old connection has not ended yet");
    host.receive(&peer.drep());
    assert!(matches!(host.event(), CmEvent::Disconnected { id, timed_out: false, .. } if id == old));
    host.receive(&req_mad(reborn));
    assert_eq!(want!(host.sent_one(), Rej).reason, RejectReason::StaleConnection, "time-wait");
    host.advance(Duration::from_millis(512));
    assert_eq!(host.events(), [CmEvent::TimewaitExit { id: old }]);
    host.receive(&req_mad(reborn));
    let id = host.request().id;
    host.accept(id);
    want!(host.sent_one(), Rep);
}

#[test]
fn c78_half_open_connections_give_way_at_once() {
    for granted in [false, true] {
        let mut host = Host::listening();
        host.receive(&req_mad(req()));
        let old = host.request().id;
        if granted {
            host.accept(old);
            host.sent();
        }
        let reborn = Req { local_comm_id: 0xbeef, ..req() };
        host.receive(&req_mad(reborn));
        assert_eq!(host.event(), CmEvent::Unreachable { id: old, reason: Unreachable::Superseded });
        assert!(kinds(&host.sent()).iter().all(|kind| *kind == CmKind::Rej));
        host.receive(&req_mad(reborn));
        assert_ne!(host.request().id, old);
    }
}

#[test]
fn c78_we_are_told_that_our_request_is_stale() {
    let mut host = Host::new();
    let id = host.connect();
    let peer = Peer::asked(&mut host);
    host.receive(&peer.rej(Answered::Req, RejectReason::StaleConnection));
    assert!(
        matches!(host.event(), CmEvent::Rejected { id: of, reason: RejectReason::StaleConnection, .. } if of == id)
    );
    assert_eq!(host.cm.connect(host.now, &connect_params(b"")), Err(CmError::QpnBusy(OUR_QPN)));
    host.advance(Duration::from_millis(512));
    assert!(host.events().is_empty() && host.cm.connect(host.now, &connect_params(b"")).is_ok());
}

#[test]
fn c78_a_reply_with_the_queue_pair_of_another_connection_is_stale() {
    let mut host = Host::new();
    let (old, _) = active(&mut host);
    let params = ConnectParams { qpn: Qpn::new(0x555), ..connect_params(b"") };
    let id = host.cm.connect(host.now, &params).expect("another queue pair");
    let peer = Peer { theirs: 0xbeef, ..Peer::asked(&mut host) };
    host.receive(&peer.rep());
    let sent = host.sent();
    assert_eq!(kinds(&sent), [CmKind::Rej, CmKind::Dreq]);
    let rej = want!(sent[0], Rej);
    assert_eq!((rej.reason, rej.answered), (RejectReason::StaleConnection, Answered::Rep));
    assert_eq!((rej.local_comm_id, rej.remote_comm_id), (id.comm_id(), 0xbeef));
    assert!(matches!(host.event(), CmEvent::Rejected { id: of, .. } if of == id));
    assert_eq!(host.cm.state(old), Some(CmState::DreqSent));
}

/// Destroying says to the peer what the state asks for, and nothing more to the application (case C80).
#[test]
fn c80_destroy_in_every_state() {
    use CmState::*;
    let expected: [(CmState, &[CmKind], usize); 14] = [
        (ReqSent, &[], 0),
        (MraReqRcvd, &[CmKind::Rej], 0),
        (RepRcvd, &[CmKind::Rej], 1),
        (MraRepSent, &[CmKind::Rej], 1),
        (ReqRcvd, &[CmKind::Rej], 0),
        (MraReqSent, &[CmKind::Rej], 0),
        (RepSent, &[CmKind::Rej], 1),
        (MraRepRcvd, &[CmKind::Rej], 1),
        (Established, &[CmKind::Dreq], 1),
        (DreqSent, &[], 1),
        (DreqRcvd, &[CmKind::Drep], 1),
        (Timewait, &[], 1),
        (SidrReqSent, &[], 0),
        (SidrReqRcvd, &[CmKind::SidrRep], 0),
    ];
    for (state, sends, left) in expected {
        let mut scene = crate::states::Scene::of(state);
        scene.host.cm.destroy(scene.host.now, scene.id).expect("it exists");
        let sent = scene.host.sent();
        assert_eq!(kinds(&sent), sends, "{state:?}");
        assert_eq!(scene.host.cm.connections(), left, "{state:?}: those in time-wait stay a while");
        assert_eq!(scene.host.cm.destroy(scene.host.now, scene.id), Err(CmError::NotFound));
        if state == MraReqRcvd {
            let rej = want!(sent[0], Rej);
            assert_eq!((rej.reason, rej.remote_comm_id), (RejectReason::Timeout, PEER_ID));
            assert_eq!(rej.info.as_bytes(), OUR_GUID.to_be_bytes());
        }
        while scene.host.cm.next_deadline().is_some() {
            scene.host.next_timeout();
        }
        assert!(scene.host.events().is_empty(), "{state:?}");
        assert_eq!(scene.host.cm.connections(), 0, "{state:?}");
    }
}
