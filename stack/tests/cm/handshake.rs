//! Connections come to be.

use crate::host::*;
use crate::peer::*;
use uroce_stack::QpType;
use uroce_stack::cm::*;
use uroce_stack::wire::cm::*;
use uroce_stack::wire::{Mtu, Psn, Qpn};

#[test]
fn active_req_rep_rtu() {
    let mut host = Host::new();
    let id = host.connect();
    let sent = host.sent_one();
    let req = want!(sent, Req);
    assert_eq!(sent.transaction_id as u32, id.comm_id(), "the lower half is our identifier");
    assert_eq!((req.local_comm_id, req.local_ca_guid, req.local_qpn), (id.comm_id(), OUR_GUID, OUR_QPN));
    assert_eq!((req.service_id, req.starting_psn, req.path_mtu), (SERVICE, Psn::new(0x10_0000), 3));
    assert_eq!((req.responder_resources, req.initiator_depth), (4, 5));
    assert_eq!((req.retry_count, req.rnr_retry_count, req.max_cm_retries), (6, 7, 15));
    assert_eq!((req.primary.local_gid, req.primary.remote_gid), (ip(HERE), ip(THERE)));
    assert_eq!(req.primary.flow_label, (40_000 * 31 + 18515) & 0xf_ffff, "made of the ports");
    let header = IpCmHeader { source_port: 40_000, source: ip(HERE), destination: ip(THERE) };
    assert_eq!(IpCmHeader::parse(&req.private_data), Some(header));
    assert_eq!(req.private_data.as_bytes()[36..41], *b"hello");

    let peer = Peer { ours: id.comm_id(), theirs: PEER_ID, transaction_id: sent.transaction_id };
    host.receive(&peer.says(CmMessage::Rep(Rep { private_data: data(b"welcome"), ..peer.rep_fields() })));
    let reply = host.reply();
    assert_eq!((reply.id, reply.terms.qpn, reply.private_data), (id, PEER_QPN, data(b"welcome")));
    assert_eq!(host.cm.state(id), Some(CmState::RepRcvd));

    host.cm.establish(id, b"ready").expect("the reply is there");
    let sent = host.sent_one();
    let rtu = want!(sent, Rtu);
    assert_eq!(sent.transaction_id, peer.transaction_id, "REQ, REP and RTU are one exchange");
    assert_eq!((rtu.local_comm_id, rtu.remote_comm_id), (id.comm_id(), PEER_ID));
    assert_eq!(rtu.private_data, data(b"ready"));
    assert_eq!(host.cm.state(id), Some(CmState::Established));
    assert_eq!(host.cm.next_deadline().map(|at| at > host.now), Some(true), "early, and then nothing");
    host.next_timeout();
    assert!(host.is_quiet() && host.cm.next_deadline().is_none());
}

#[test]
fn passive_req_rep_rtu() {
    let mut host = Host::listening();
    host.receive(&req_mad(req()));
    let request = host.request();
    assert_eq!((request.service_id, request.local, request.remote), (SERVICE, ip(HERE), ip(THERE)));
    assert_eq!(request.ip.map(|ip| ip.source_port), Some(0xb9b4));
    assert_eq!((&request.private_data()[..5], request.private_data().len()), (&b"hello"[..], 56));
    assert_eq!((request.remote_ca_guid, request.terms.qpn), (PEER_GUID, PEER_QPN));
    assert_eq!((request.terms.qp_type, request.terms.path_mtu), (QpType::Rc, Mtu::B1024));

    host.accept(request.id);
    let sent = host.sent_one();
    let rep = want!(sent, Rep);
    assert_eq!(sent.transaction_id, PEER_TID, "the answer repeats it");
    assert_eq!((rep.local_comm_id, rep.remote_comm_id), (request.id.comm_id(), PEER_ID));
    assert_eq!((rep.local_qpn, rep.starting_psn), (OUR_QPN, Psn::new(0x20_0000)));
    assert_eq!((rep.target_ack_delay, rep.rnr_retry_count, rep.local_ca_guid), (15, 1, OUR_GUID));
    assert_eq!(rep.private_data, data(b"welcome"));

    let peer = Peer::asking(request.id);
    let rtu = Rtu { local_comm_id: PEER_ID, remote_comm_id: peer.ours, private_data: data(b"ready") };
    host.receive(&peer.says(CmMessage::Rtu(rtu)));
    assert_eq!(host.event(), CmEvent::Established { id: request.id, private_data: Some(data(b"ready")) });
}

/// Case C77: who asks crosses over with who serves, and neither gets more than the other offers.
#[test]
fn c77_depths_cross_over_and_are_granted_within_what_was_asked() {
    let mut host = Host::listening();
    host.receive(&req_mad(Req { responder_resources: 1, initiator_depth: 9, ..req() }));
    let id = host.request().id;
    let wants = AcceptParams { responder_resources: 200, initiator_depth: 200, ..accept_params(b"") };
    host.cm.accept(host.now, id, &wants).expect("it is possible");
    let rep = want!(host.sent_one(), Rep);
    assert_eq!((rep.responder_resources, rep.initiator_depth), (9, 1));
}

/// Case C84: data comes on the queue pair, the RTU never or later.
#[test]
fn c84_data_replaces_a_lost_rtu_and_a_late_one_is_ignored() {
    let mut host = Host::listening();
    host.receive(&req_mad(req()));
    let id = host.request().id;
    host.accept(id);
    host.sent();
    host.cm.communication_established(Qpn::new(0x77));
    assert!(host.events().is_empty(), "another queue pair");
    host.cm.communication_established(OUR_QPN);
    assert_eq!(host.event(), CmEvent::Established { id, private_data: None });
    host.receive(&Peer::asking(id).rtu());
    host.cm.communication_established(OUR_QPN);
    assert!(host.is_quiet());
    assert_eq!(host.cm.state(id), Some(CmState::Established));
}

#[test]
fn a_service_without_ip_header_has_all_the_private_data() {
    let service_id = ServiceId(0x1234_5678_9abc_def0);
    let mut host = Host::new();
    host.listen(service_id, QpType::Uc);
    let said = [0x5a; 92];
    host.receive(&req_mad(Req {
        service_id,
        transport: CmTransport::Uc,
        private_data: said.into(),
        ..req()
    }));
    let request = host.request();
    assert_eq!((request.ip, request.private_data()), (None, &said[..]));
    assert_eq!(request.terms.qp_type, QpType::Uc);

    let params = ConnectParams { service_id, qp_type: QpType::Uc, ..connect_params(&said) };
    host.cm.connect(host.now, &params).expect("it is possible");
    let req = want!(host.sent_one(), Req);
    assert_eq!((req.private_data.as_bytes(), req.transport), (&said, CmTransport::Uc));
    assert_eq!(req.primary.flow_label, 0, "no ports, no label");
}

#[test]
fn requests_find_the_listener_of_their_address_and_range() {
    let mut host = Host::new();
    let any = host.listen(SERVICE, QpType::Rc);
    let params = ListenParams::new(SERVICE, QpType::Rc);
    let here = host.cm.listen(&ListenParams { address: Some(ip(HERE)), ..params }).expect("more specific");
    let range = ListenParams { mask: !0xff, ..ListenParams::new(ServiceId(0x7700), QpType::Rc) };
    let range = host.cm.listen(&range).expect("nobody else");
    host.receive(&req_mad(req()));
    assert_eq!(host.request().listener, here);
    host.cm.unlisten(host.now, here).expect("it listens");
    host.datagrams();
    let again = Req { local_comm_id: 2, local_qpn: Qpn::new(0x99), ..req() };
    host.receive(&req_mad(again));
    assert_eq!(host.request().listener, any);
    host.receive(&req_mad(Req {
        local_comm_id: 3,
        service_id: ServiceId(0x77ab),
        local_qpn: Qpn::new(9),
        ..req()
    }));
    assert_eq!(host.request().listener, range);
}

/// Protocol section 6.8: over IPv6 the GIDs are the addresses as they are.
#[test]
fn over_ipv6_everything_is_the_same() {
    let (here, there) = ("2001:db8::1", "2001:db8::2");
    let mut active = Host::new();
    let route = Route { flow_label: Some(0xabcde), ..Route::new(ip(here), ip(there)) };
    active.cm.connect(active.now, &ConnectParams { route, ..connect_params(b"") }).expect("it is possible");
    let out = active.datagrams()[0];
    assert_eq!((out.source, out.destination, out.flow_label), (ip(here), ip(there), 0xabcde));
    let mut passive = Host::listening();
    let sender = Sender { source: out.source, destination: out.destination, source_qp: Qpn::GSI };
    passive.cm.receive(passive.now, &sender, &out.mad);
    let request = passive.request();
    assert_eq!((request.local, request.remote, request.terms.flow_label), (ip(there), ip(here), 0xabcde));
    assert_eq!(request.ip.map(|header| header.source), Some(ip(here)));
}

/// Both ends in one connection manager, as between two programs of one host.
#[test]
fn a_host_connects_to_itself() {
    let mut host = Host::listening();
    let itself = Route::new(ip(HERE), ip(HERE));
    let params = ConnectParams { route: itself, qpn: Qpn::new(0x111), ..connect_params(b"") };
    let active = host.cm.connect(host.now, &params).expect("it is possible");
    host.loop_back();
    let passive = host.request().id;
    host.accept(passive);
    host.loop_back();
    assert_eq!(host.reply().id, active);
    host.cm.establish(active, b"").expect("the reply is there");
    host.loop_back();
    assert!(matches!(host.event(), CmEvent::Established { id, .. } if id == passive));
    host.disconnect(passive);
    host.loop_back();
    assert!(matches!(host.event(), CmEvent::DisconnectRequest { id, .. } if id == active));
    host.disconnect(active);
    host.loop_back();
    assert!(matches!(host.event(), CmEvent::Disconnected { id, timed_out: false, .. } if id == passive));
    host.next_timeout();
    assert_eq!((host.events().len(), host.cm.connections()), (2, 0));
}

#[test]
fn identifiers_and_psns_follow_no_pattern() {
    let mut host = Host::with(CmConfig { ids: 1000..200_000, ..config(7) });
    let ids: Vec<u32> = (0..1000)
        .map(|qpn| {
            let params = ConnectParams { qpn: Qpn::new(100 + qpn), ..connect_params(b"") };
            host.cm.connect(host.now, &params).expect("room").comm_id()
        })
        .collect();
    assert!(ids.iter().all(|id| (1000..200_000).contains(id)), "as configured");
    let differences = |numbers: &[u32]| {
        let steps = numbers.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]));
        steps.collect::<std::collections::HashSet<_>>().len()
    };
    assert!(differences(&ids) > 990);
    // S02: starting PSNs are uniform over 24 bits.
    let psns: Vec<u32> = (0..4096).map(|_| host.cm.random_psn().get()).collect();
    assert!(differences(&psns) > 4090);
    for bit in 0..24 {
        let ones = psns.iter().filter(|psn| *psn >> bit & 1 == 1).count();
        assert!((1800..2300).contains(&ones), "bit {bit}: {ones} of 4096");
    }
}

#[test]
fn calls_that_make_no_sense_are_refused_and_change_nothing() {
    let mut host = Host::new();
    let good = connect_params(b"");
    let refused = [
        ConnectParams { route: Route::new(ip(HERE), ip("fe80::1")), ..good },
        ConnectParams { route: Route::new(ip(HERE), ip("224.0.0.1")), ..good },
        ConnectParams { route: Route::new(ip(HERE), ip("127.0.0.1")), ..good },
        ConnectParams { route: Route::new(ip(HERE), ip("0.0.0.0")), ..good },
        ConnectParams { route: Route { hop_limit: 0, ..good.route }, ..good },
        ConnectParams { route: Route { flow_label: Some(1 << 20), ..good.route }, ..good },
        ConnectParams { route: Route { sl: 8, ..good.route }, ..good },
        ConnectParams { qp_type: QpType::Ud, ..good },
        ConnectParams { qpn: Qpn::GSI, ..good },
        ConnectParams { qpn: Qpn::MULTICAST, ..good },
        ConnectParams { retry_count: 8, ..good },
        ConnectParams { rnr_retry_count: 8, ..good },
        ConnectParams { private_data: &[0; 57], ..good },
    ];
    for params in refused {
        assert!(host.cm.connect(host.now, &params).is_err(), "{params:?}");
    }
    assert!(host.is_quiet() && host.cm.connections() == 0);
    host.connect();
    assert_eq!(host.cm.connect(host.now, &good), Err(CmError::QpnBusy(OUR_QPN)));
    let narrow = CmConfig { max_connections: 1, half_open: 1, half_open_per_peer: 1, ..config(1) };
    let mut host = Host::with(narrow);
    host.connect();
    let other = ConnectParams { qpn: Qpn::new(99), ..good };
    assert_eq!(host.cm.connect(host.now, &other), Err(CmError::Exhausted { what: "connection", limit: 1 }));
}

#[test]
fn configurations_out_of_range_are_refused_by_name() {
    let good = config(1);
    let refused = [
        (CmConfig { ids: 0..5, ..good.clone() }, "the first identifier"),
        (CmConfig { ids: 5..5, ..good.clone() }, "the end of the identifiers"),
        (CmConfig { max_connections: 0, ..good.clone() }, "max_connections"),
        (CmConfig { half_open: 9000, ..good.clone() }, "half_open"),
        (CmConfig { half_open_per_peer: 2049, ..good.clone() }, "half_open_per_peer"),
        (CmConfig { backlog: 0, ..good.clone() }, "backlog"),
        (CmConfig { ack_delay: 32, ..good.clone() }, "ack_delay"),
        (CmConfig { packet_life: 25, ..good.clone() }, "packet_life"),
        (CmConfig { response_timeout: 25, ..good.clone() }, "response_timeout"),
        (CmConfig { service_timeout: 25, ..good.clone() }, "service_timeout"),
        (CmConfig { max_cm_retries: 16, ..good }, "max_cm_retries"),
    ];
    for (config, what) in refused {
        match Cm::new(config) {
            Err(CmError::OutOfRange { what: named, .. }) => assert_eq!(named, what),
            other => panic!("{what}: {other:?}"),
        }
    }
}
