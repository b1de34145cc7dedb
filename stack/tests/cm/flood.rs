//! Requests without end, and who gets through nevertheless (S08).

use std::time::Duration;

use crate::host::*;
use crate::peer::*;
use uroce_stack::QpType;
use uroce_stack::cm::*;
use uroce_stack::wire::Qpn;
use uroce_stack::wire::cm::*;

/// The `n`th request of a flood, from one of `hosts` addresses.
fn flood(n: u32, hosts: u32) -> (String, CmMad) {
    let [_, _, high, low] = (n % hosts).to_be_bytes();
    let source = format!("10.9.{high}.{low}");
    let header = IpCmHeader { source_port: 1, source: ip(&source), destination: ip(HERE) };
    let primary = CmPath { local_gid: ip(&source), ..path() };
    let private_data = header.emit(&[]).expect("it fits");
    let (local_comm_id, local_qpn) = (n + 1, Qpn::new(2 + n % 0xff_0000));
    (source, req_mad(Req { local_comm_id, local_qpn, primary, private_data, ..req() }))
}

/// Accepts whatever asks, and forgets what ends.
fn serve(host: &mut Host, next_qpn: &mut u32) {
    for event in host.events() {
        if let CmEvent::ConnectRequest(request) = event {
            *next_qpn += 1;
            let params = AcceptParams { qpn: Qpn::new(*next_qpn), ..accept_params(b"") };
            // A later request of the same batch may have taken its place.
            let _ = host.cm.accept(host.now, request.id, &params);
        }
    }
}

fn bounded() -> CmConfig {
    CmConfig { max_connections: 600, half_open: 256, half_open_per_peer: 64, backlog: 64, ..config(3) }
}

/// A hundred thousand requests a second: memory stays within its bounds, and an honest peer is connected at once.
#[test]
fn s08_an_honest_peer_gets_through_a_flood() {
    for hosts in [1, 40, 0xffff] {
        let mut host = Host::with(bounded());
        host.listen(SERVICE, QpType::Rc);
        let (mut n, mut next_qpn) = (0, 1000);
        let mut batch = |host: &mut Host| {
            for _ in 0..64 {
                let (source, mad) = flood(n, hosts);
                host.receive_from(&source, &mad);
                n += 1;
            }
            serve(host, &mut next_qpn);
            host.advance(Duration::from_micros(640));
            assert!(host.cm.connections() <= 256);
            host.datagrams().len()
        };
        for _ in 0..300 {
            assert!(batch(&mut host) <= 3 * 64, "what is answered is no more than what came");
        }
        let begin = host.now;
        host.receive(&req_mad(req()));
        let rep = loop {
            serve(&mut host, &mut 1);
            let to_peer = |out: &Datagram| out.destination == ip(THERE);
            if let Some(out) = host.datagrams().into_iter().find(to_peer) {
                break want!(CmMad::parse(&out.mad).expect("a message"), Rep);
            }
        };
        let peer = Peer { ours: rep.local_comm_id, theirs: PEER_ID, transaction_id: PEER_TID };
        // The way there and back takes time, and the flood goes on.
        batch(&mut host);
        host.receive(&peer.rtu());
        let established = host.events().iter().any(|event| matches!(event, CmEvent::Established { .. }));
        assert!(established, "{hosts} hosts");
        assert!(host.now.since(begin) < Duration::from_secs(1));
        assert!(host.count(CmCounter::HalfOpenEvicted) > 10_000);
    }
}

/// One host's flood is its own affair.
#[test]
fn s08_one_peers_flood_evicts_its_own() {
    let mut host = Host::with(bounded());
    host.listen(SERVICE, QpType::Rc);
    host.receive(&req_mad(req()));
    let honest = host.request().id;
    host.accept(honest);
    let mut next_qpn = 1000;
    for n in 0..5000 {
        let (source, mad) = flood(n, 1);
        host.receive_from(&source, &mad);
        serve(&mut host, &mut next_qpn);
        host.datagrams();
    }
    assert_eq!(host.cm.state(honest), Some(CmState::RepSent));
    assert_eq!(host.cm.connections(), 65);
}

/// An application that does not answer holds the backlog and no more, and hears of nobody who has gone.
#[test]
fn s08_an_application_that_does_not_look_is_not_buried() {
    let mut host = Host::with(bounded());
    host.listen(SERVICE, QpType::Rc);
    for n in 0..10_000 {
        let (source, mad) = flood(n, 0xffff);
        host.receive_from(&source, &mad);
    }
    let events = host.events();
    assert_eq!(events.len(), 64);
    assert!(events.iter().all(|event| matches!(event, CmEvent::ConnectRequest(_))));
    assert!(host.datagrams().is_empty(), "who waits is not told to go away: he asks again");
}

/// Questions are bounded like connections.
#[test]
fn s08_a_flood_of_questions_is_bounded() {
    let service_id = ServiceId(0x42);
    let mut host = Host::with(bounded());
    host.listen(service_id, QpType::Ud);
    for request_id in 0..10_000 {
        let question = SidrReq { request_id, pkey: 0xffff, service_id, private_data: PrivateData::default() };
        host.receive(&mad(1, CmMessage::SidrReq(question)));
        assert!(host.cm.connections() <= 64);
    }
    assert_eq!(host.events().len(), 64);
}

/// Strangers cannot make us hold answers without bound.
#[test]
fn answers_to_strangers_are_bounded_and_do_not_crowd_out_connections() {
    let mut host = Host::new();
    for n in 0..5000 {
        host.receive(&Peer { ours: n, theirs: n, transaction_id: 1 }.dreq());
    }
    host.connect();
    let sent = host.sent();
    assert_eq!(sent.len(), 257);
    assert_eq!(sent[0].message.kind(), CmKind::Req, "first");
    assert_eq!(host.count(CmCounter::OutboxFull), 5000 - 256);
}

#[test]
fn when_connections_fill_the_table_requests_are_told_so() {
    let config = CmConfig { max_connections: 3, half_open: 2, half_open_per_peer: 2, ..config(1) };
    let mut host = Host::with(config);
    host.listen(SERVICE, QpType::Rc);
    for n in 0..3 {
        host.receive(&req_mad(Req { local_comm_id: 100 + n, local_qpn: Qpn::new(100 + n), ..req() }));
        let id = host.request().id;
        let params = AcceptParams { qpn: Qpn::new(200 + n), ..accept_params(b"") };
        host.cm.accept(host.now, id, &params).expect("it is possible");
        host.receive(&Peer { ours: id.comm_id(), theirs: 100 + n, transaction_id: 1 }.rtu());
        host.event();
        host.sent();
    }
    host.receive(&req_mad(req()));
    assert_eq!(want!(host.sent_one(), Rej).reason, RejectReason::NoResources);
    assert_eq!(host.count(CmCounter::NoRoom), 1);
    assert!(host.events().is_empty(), "connections that are in use do not give way");
}

/// An application that asks again and again, and neither fetches events nor lets datagrams leave.
#[test]
fn queues_that_nobody_empties_are_bounded() {
    let config = CmConfig { max_connections: 1, half_open: 1, half_open_per_peer: 1, ..config(1) };
    let mut host = Host::with(config);
    for _ in 0..20 {
        let id = host.connect();
        let peer = Peer { ours: id.comm_id(), theirs: PEER_ID, transaction_id: 1 };
        host.receive(&peer.rej(Answered::Req, RejectReason::ConsumerDefined));
    }
    assert_eq!((host.events().len(), host.count(CmCounter::EventsLost)), (5, 15));
    assert_eq!((host.datagrams().len(), host.count(CmCounter::OutboxFull)), (2, 18));
    assert_eq!(host.count(CmCounter::TxReq), 2, "what does not leave is not counted as sent");
}

#[test]
fn listeners_are_bounded() {
    let mut host = Host::new();
    for service in 0..4096 {
        host.listen(ServiceId(service), QpType::Rc);
    }
    let refused = host.cm.listen(&ListenParams::new(ServiceId(4096), QpType::Rc));
    assert_eq!(refused, Err(CmError::Exhausted { what: "listener", limit: 4096 }));
}
