//! REJ and MRA: what the application says, and what it hears.

use crate::host::*;
use crate::peer::*;
use crate::states::{STATES, Scene};
use uroce_stack::cm::*;
use uroce_stack::wire::cm::*;

fn every_reason() -> impl Iterator<Item = RejectReason> {
    RejectReason::ALL.iter().copied().chain([RejectReason::Undefined(34), RejectReason::Undefined(999)])
}

fn reject(scene: &mut Scene, reason: RejectReason) -> Result<(), CmError> {
    let info = RejectInfo::new(b"why").expect("it fits");
    scene.host.cm.reject(scene.host.now, scene.id, reason, info, b"no")
}

/// In every state that takes it, with every reason: which message is answered, and by whom.
#[test]
fn we_reject() {
    use CmState::*;
    let takes = [
        (RepRcvd, Answered::Rep),
        (MraRepSent, Answered::Rep),
        (ReqRcvd, Answered::Req),
        (MraReqSent, Answered::Req),
        (RepSent, Answered::Other),
        (MraRepRcvd, Answered::Other),
    ];
    for state in STATES {
        let Some((_, answered)) = takes.iter().find(|(takes, _)| *takes == state) else {
            let mut scene = Scene::of(state);
            let refused = reject(&mut scene, RejectReason::ConsumerDefined);
            assert_eq!(refused, Err(CmError::State { call: "reject", state }));
            assert!(scene.host.is_quiet());
            continue;
        };
        for reason in every_reason() {
            let mut scene = Scene::of(state);
            reject(&mut scene, reason).expect("it is possible");
            let sent = scene.host.sent_one();
            let rej = want!(sent, Rej);
            let own = if state == ReqRcvd { 0 } else { scene.id.comm_id() };
            assert_eq!((rej.local_comm_id, rej.remote_comm_id), (own, PEER_ID), "{state:?}");
            assert_eq!((rej.answered, rej.reason), (*answered, reason), "{state:?}");
            assert_eq!((rej.info.as_bytes(), rej.private_data), (&b"why"[..], data(b"no")));
            assert_eq!(sent.transaction_id, scene.peer.transaction_id);
            assert!(scene.host.events().is_empty(), "who rejects knows");
            assert_eq!(scene.host.cm.state(scene.id), None);
        }
    }
}

/// Case C80: the peer's words reach the application, whatever the state was, with every reason.
#[test]
fn c80_we_are_rejected() {
    use CmState::*;
    let hears = [
        (ReqSent, Answered::Req),
        (MraReqRcvd, Answered::Req),
        (RepRcvd, Answered::Other),
        (MraRepSent, Answered::Other),
        (RepSent, Answered::Rep),
        (MraRepRcvd, Answered::Rep),
        (Established, Answered::Other),
    ];
    for (state, answered) in hears {
        for reason in every_reason() {
            let mut scene = Scene::of(state);
            let mut said = want!(scene.peer.rej(answered, reason), Rej);
            said.info = RejectInfo::new(b"why").expect("it fits");
            said.private_data = data(b"no");
            scene.host.receive(&scene.peer.says(CmMessage::Rej(said)));
            let Rej { info, private_data, .. } = said;
            let expected = CmEvent::Rejected { id: scene.id, answered, reason, info, private_data };
            assert_eq!(scene.host.event(), expected, "{state:?}");
            assert_eq!(scene.host.cm.state(scene.id), None);
            assert!(scene.host.is_quiet(), "a REJ is not answered");
        }
    }
}

/// A peer that gave up before it heard of our identifier names its own.
#[test]
fn a_timeout_finds_the_connection_by_adapter_and_identifier() {
    for state in [CmState::ReqRcvd, CmState::MraReqSent, CmState::RepSent] {
        let mut scene = Scene::of(state);
        scene.host.receive_from("10.1.0.66", &scene.peer.rej_timeout());
        assert!(scene.host.is_quiet(), "of another host");
        scene.host.receive(&scene.peer.rej_timeout());
        let event = scene.host.event();
        assert!(matches!(event, CmEvent::Rejected { reason: RejectReason::Timeout, .. }), "{event:?}");
    }
    let mut scene = Scene::of(CmState::Established);
    scene.host.receive(&scene.peer.rej_timeout());
    assert!(scene.host.is_quiet(), "an established connection asks for both identifiers");
}

/// A REP that nobody waits for: its sender need not wait for an RTU.
#[test]
fn a_reply_to_nobody_is_rejected_and_the_peer_understands() {
    let mut passive = Host::listening();
    passive.receive(&req_mad(req()));
    let id = passive.request().id;
    passive.accept(id);
    let rep = passive.sent_one();

    let mut active = Host::new();
    active.receive(&rep);
    let sent = active.sent_one();
    let rej = want!(sent, Rej);
    assert_eq!((rej.reason, rej.answered), (RejectReason::InvalidCommId, Answered::Rep));
    passive.receive(&sent);
    assert!(matches!(passive.event(), CmEvent::Rejected { id: of, .. } if of == id));
    assert!(passive.is_quiet());
}

#[test]
fn another_reply_to_an_established_connection_is_rejected() {
    let mut host = Host::new();
    let (id, peer) = active(&mut host);
    host.receive(&Peer { theirs: 0xbeef, ..peer }.rep());
    let rej = want!(host.sent_one(), Rej);
    assert_eq!((rej.reason, rej.remote_comm_id), (RejectReason::InvalidCommInstance, 0xbeef));
    assert_eq!(host.cm.state(id), Some(CmState::Established));
}

#[test]
fn the_application_asks_for_time() {
    for (state, answered) in [(CmState::ReqRcvd, Answered::Req), (CmState::RepRcvd, Answered::Rep)] {
        let mut scene = Scene::of(state);
        scene.host.cm.mra(scene.id, 21, b"wait").expect("an answer is due");
        let mra = want!(scene.host.sent_one(), Mra);
        assert_eq!((mra.answered, mra.service_timeout, mra.private_data), (answered, 21, data(b"wait")));
        assert!(scene.host.cm.mra(scene.id, 25, b"").is_err());
        assert!(scene.host.cm.mra(scene.id, 1, &[0; 223]).is_err());
    }
    for state in [CmState::ReqSent, CmState::RepSent, CmState::Established, CmState::SidrReqRcvd] {
        let mut scene = Scene::of(state);
        assert_eq!(scene.host.cm.mra(scene.id, 1, b""), Err(CmError::State { call: "mra", state }));
    }
}

/// Each call in each state that does not take it.
#[test]
fn calls_fit_states() {
    for state in STATES {
        let mut scene = Scene::of(state);
        let Scene { host, id, .. } = &mut scene;
        let refused = |call| Err(CmError::State { call, state });
        if !matches!(state, CmState::RepRcvd | CmState::MraRepSent) {
            assert_eq!(host.cm.establish(*id, b""), refused("establish"));
        }
        if !matches!(state, CmState::ReqRcvd | CmState::MraReqSent) {
            assert_eq!(host.cm.accept(host.now, *id, &accept_params(b"")), refused("accept"));
        }
        if !matches!(state, CmState::Established | CmState::DreqRcvd) {
            assert_eq!(host.cm.disconnect(host.now, *id, b""), refused("disconnect"));
        }
        if state != CmState::SidrReqRcvd {
            assert_eq!(host.cm.sidr_accept(*id, PEER_QPN, 1, b""), refused("sidr_accept"));
            assert_eq!(host.cm.sidr_reject(*id, SidrStatus::NoQp, b""), refused("sidr_reject"));
        }
        assert!(host.is_quiet());
        assert_eq!(host.cm.state(*id), Some(state));
    }
}

#[test]
fn private_data_has_its_limit_in_each_message() {
    let too_long = |limit| Err(CmError::PrivateDataTooLong { found: limit + 1, limit });
    let mut scene = Scene::of(CmState::ReqRcvd);
    let params = AcceptParams { private_data: &[0; 197], ..accept_params(b"") };
    assert_eq!(scene.host.cm.accept(scene.host.now, scene.id, &params), too_long(196));
    let (reason, info) = (RejectReason::ConsumerDefined, RejectInfo::default());
    assert_eq!(scene.host.cm.reject(scene.host.now, scene.id, reason, info, &[0; 149]), too_long(148));
    let mut scene = Scene::of(CmState::RepRcvd);
    assert_eq!(scene.host.cm.establish(scene.id, &[0; 225]), too_long(224));
    let mut scene = Scene::of(CmState::Established);
    assert_eq!(scene.host.cm.disconnect(scene.host.now, scene.id, &[0; 221]), too_long(220));
    let mut scene = Scene::of(CmState::DreqRcvd);
    assert_eq!(scene.host.cm.disconnect(scene.host.now, scene.id, &[0; 225]), too_long(224));
    assert!(scene.host.cm.disconnect(scene.host.now, scene.id, &[7; 224]).is_ok());
    let drep = want!(scene.host.sent_one(), Drep);
    assert_eq!(drep.private_data, PrivateData::from([7; 224]));
    let mut scene = Scene::of(CmState::SidrReqRcvd);
    assert_eq!(scene.host.cm.sidr_accept(scene.id, PEER_QPN, 1, &[0; 137]), too_long(136));
}

/// No event names a handle that the application has given back.
#[test]
fn what_was_not_fetched_is_forgotten_with_the_handle() {
    let mut scene = Scene::of(CmState::RepSent);
    scene.host.receive(&scene.peer.mra(Answered::Rep, 20));
    reject(&mut scene, RejectReason::NoResources).expect("it is possible");
    assert!(scene.host.events().is_empty());
    let mut scene = Scene::of(CmState::Established);
    scene.host.receive(&scene.peer.dreq());
    scene.host.cm.destroy(scene.host.now, scene.id).expect("it exists");
    assert!(scene.host.events().is_empty());
}

#[test]
fn who_stops_listening_rejects_what_waits() {
    let mut host = Host::new();
    let listener = host.listen(SERVICE, uroce_stack::QpType::Rc);
    host.receive(&req_mad(req()));
    host.cm.unlisten(host.now, listener).expect("it listens");
    assert_eq!(want!(host.sent_one(), Rej).reason, RejectReason::ConsumerDefined);
    assert!(host.events().is_empty(), "nobody is asked any more");
    assert_eq!(host.cm.unlisten(host.now, listener), Err(CmError::NotFound));
    host.receive(&req_mad(req()));
    assert_eq!(want!(host.sent_one(), Rej).reason, RejectReason::InvalidServiceId);
}
