//! Questions after queue pairs for datagrams.

use std::time::Duration;

use crate::host::*;
use crate::peer::*;
use crate::states::{QUESTION, Scene, sidr_params, sidr_rep, sidr_req};
use uroce_stack::QpType;
use uroce_stack::cm::*;
use uroce_stack::wire::Qpn;
use uroce_stack::wire::cm::*;

#[test]
fn we_ask() {
    let mut host = Host::new();
    let id = host.cm.sidr_request(host.now, &sidr_params(b"hello")).expect("it is possible");
    let sent = host.sent_one();
    let req = want!(sent, SidrReq);
    assert_eq!((req.request_id, req.pkey, req.service_id), (id.comm_id(), 0xffff, QUESTION));
    assert_eq!(IpCmHeader::parse(&req.private_data).map(|header| header.destination), Some(ip(THERE)));
    assert_eq!(req.private_data.as_bytes()[36..41], *b"hello");
    let peer = Peer { ours: id.comm_id(), theirs: 0, transaction_id: sent.transaction_id };
    host.receive(&sidr_rep(&peer));
    let CmEvent::SidrReply { id: of, status, qpn, qkey, .. } = host.event() else { panic!("no answer") };
    assert_eq!((of, status, qpn, qkey), (id, SidrStatus::Valid, PEER_QPN, 0x0123_4567));
    assert_eq!(host.cm.connections(), 0);
    host.receive(&sidr_rep(&peer));
    assert!(host.is_quiet(), "answered already");
}

#[test]
fn we_ask_in_vain() {
    let mut host = Host::new();
    let id = host.cm.sidr_request(host.now, &sidr_params(b"")).expect("it is possible");
    let first = host.datagrams()[0].mad;
    for _ in 0..15 {
        assert_eq!(host.next_timeout(), Duration::from_millis(4096));
        assert_eq!(host.datagrams()[0].mad, first);
    }
    host.next_timeout();
    assert_eq!(host.event(), CmEvent::Unreachable { id, reason: Unreachable::NoReply });
    assert!(host.is_quiet() && host.cm.connections() == 0);
}

#[test]
fn we_are_asked() {
    let mut host = Host::new();
    let listener = host.listen(QUESTION, QpType::Ud);
    host.receive(&sidr_req());
    let CmEvent::SidrRequest(request) = host.event() else { panic!("no question") };
    assert_eq!((request.listener, request.service_id, request.remote), (listener, QUESTION, ip(THERE)));
    assert_eq!((&request.private_data()[..5], request.private_data().len()), (&b"hello"[..], 180));
    host.receive(&sidr_req());
    assert!(host.is_quiet(), "the application decides");
    host.cm.sidr_accept(request.id, Qpn::new(0x2a), 0x0123_4567, b"here").expect("it is possible");
    let sent = host.sent_one();
    let rep = want!(sent, SidrRep);
    assert_eq!((rep.request_id, rep.status, rep.service_id), (PEER_ID, SidrStatus::Valid, QUESTION));
    assert_eq!((rep.qpn, rep.qkey, rep.private_data), (Qpn::new(0x2a), 0x0123_4567, data(b"here")));
    assert_eq!((sent.transaction_id, host.cm.connections()), (PEER_TID, 0));
    host.receive(&sidr_req());
    assert!(matches!(host.event(), CmEvent::SidrRequest(_)), "the answer was lost");
}

#[test]
fn we_say_no() {
    let mut scene = Scene::of(CmState::SidrReqRcvd);
    assert!(scene.host.cm.sidr_reject(scene.id, SidrStatus::Valid, b"").is_err());
    scene.host.cm.sidr_reject(scene.id, SidrStatus::NoQp, b"no").expect("it is possible");
    let rep = want!(scene.host.sent_one(), SidrRep);
    assert_eq!((rep.status, rep.qpn, rep.private_data), (SidrStatus::NoQp, Qpn::new(0), data(b"no")));
}

#[test]
fn questions_that_are_refused() {
    let said = want!(sidr_req(), SidrReq);
    let tcp = ServiceId::new(PortSpace::Tcp, 18515);
    let mut broken = *said.private_data.as_bytes();
    broken[0] = 1;
    let refused = [
        (SidrReq { service_id: tcp, ..said }, SidrStatus::UnsupportedServiceId),
        (SidrReq { service_id: ServiceId(1), ..said }, SidrStatus::UnsupportedServiceId),
        (SidrReq { pkey: 0x1234, ..said }, SidrStatus::Rejected),
        (SidrReq { private_data: broken.into(), ..said }, SidrStatus::Rejected),
    ];
    for (req, status) in refused {
        let mut host = Host::listening();
        host.listen(QUESTION, QpType::Ud);
        host.receive(&mad(PEER_TID, CmMessage::SidrReq(req)));
        let rep = want!(host.sent_one(), SidrRep);
        assert_eq!((rep.status, rep.request_id, rep.service_id), (status, PEER_ID, req.service_id));
        assert!(host.events().is_empty() && host.cm.connections() == 0);
    }
    let mut host = Host::new();
    host.listen(QUESTION, QpType::Ud);
    host.receive(&req_mad(Req { service_id: QUESTION, ..req() }));
    assert_eq!(want!(host.sent_one(), Rej).reason, RejectReason::InvalidServiceId, "no connections there");
}
