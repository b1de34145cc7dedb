//! The connection manager, end to end: two devices on a cable, or two ids of one.

#[path = "common/mod.rs"]
mod common;

use std::net::SocketAddr;

use uroce::testing::{LinkModel, loopback_pair};
use uroce::{
    Access, CmEvent, CmEventType, CmId, CompletionExt, ConnParam, Connection, Context, Error, EventChannel,
    Incoming, Listener, PortSpace, QpState, QpType, RecvWr, RejectReason, SendWr,
};

use common::PATIENCE;

const PORT: u16 = 7471;

fn pair() -> (Context, Context) {
    loopback_pair(LinkModel::default()).expect("a pair")
}

fn at(number: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, number], port))
}

/// The next event, which must be this one.
fn expect(channel: &EventChannel, wanted: CmEventType) -> CmEvent {
    let event = channel.get_event(Some(PATIENCE)).expect("an event").expect("within the time given");
    assert_eq!(event.event, wanted, "{event:?}");
    event
}

fn listener(ctx: &Context) -> (EventChannel, CmId) {
    let channel = ctx.create_event_channel().expect("a channel");
    let id = CmId::new(&channel, PortSpace::Tcp);
    id.bind_addr(at(2, PORT)).expect("the address is free");
    id.listen(8).expect("nobody else listens");
    (channel, id)
}

/// An id that has found the way to the other device.
fn resolved(ctx: &Context, space: PortSpace, to: SocketAddr) -> (EventChannel, CmId) {
    let channel = ctx.create_event_channel().expect("a channel");
    let id = CmId::new(&channel, space);
    id.resolve_addr(None, to).expect("the address is good");
    assert_eq!(expect(&channel, CmEventType::AddrResolved).id, id);
    id.resolve_route().expect("resolved");
    expect(&channel, CmEventType::RouteResolved);
    (channel, id)
}

fn give_qp(id: &CmId, kind: QpType) {
    let (pd, cq) = parts(id.context());
    id.create_qp(pd.create_qp(kind, &cq, &cq).build().expect("a queue pair")).expect("it fits");
}

fn parts(ctx: &Context) -> (uroce::ProtectionDomain, uroce::CompletionQueue) {
    (ctx.alloc_pd().expect("a domain"), ctx.create_cq(64).build().expect("a queue"))
}

/// A listening device and a device connected to it.
fn connected() -> ((Context, Context), Listener, Connection, Connection) {
    let (left, right) = pair();
    let listener = Listener::bind(&right, at(2, PORT)).expect("the address is free");
    let (theirs, ours) = std::thread::scope(|scope| {
        let passive = scope.spawn(|| {
            let incoming = listener.accept_request().expect("a request");
            incoming.accept(&ConnParam::default().private_data(*b"welcome")).expect("confirmed")
        });
        let ours = left.connect(at(2, PORT), &ConnParam::default().private_data(*b"hello"));
        (passive.join().expect("no panic"), ours.expect("granted"))
    });
    ((left, right), listener, ours, theirs)
}

#[test]
fn a_connection_carries_messages_both_ways_and_ends_for_both() {
    let (_devices, _listener, ours, theirs) = connected();
    assert!(ours.peer().private_data.starts_with(b"welcome"));
    assert!(theirs.peer().private_data.starts_with(b"hello"));
    assert_eq!(ours.peer_addr(), Some(at(2, PORT)));
    assert_eq!(theirs.peer_addr().map(|peer| peer.ip()), Some(at(1, 0).ip()));
    for (from, to, text) in [(&ours, &theirs, b"ping!"), (&theirs, &ours, b"pong!")] {
        let room = to.pd().alloc_mr(64, Access::LOCAL_WRITE).expect("memory");
        to.qp().post_recv(&[RecvWr::new(1, room.sge(..))]).expect("room");
        let data = from.pd().alloc_mr_from(text, Access::empty()).expect("memory");
        from.qp().post_send(&[SendWr::send(2, data.sge(..)).signaled()]).expect("room");
        assert_eq!(to.cq().wait_one().expect("a completion").result().expect("success").byte_len, 5);
        from.cq().wait_one().expect("a completion").result().expect("success");
        assert_eq!(room.to_vec(..5).expect("inside"), text);
    }
    ours.disconnect().expect("connected");
    await_end(&theirs);
    theirs.disconnect().expect("answered");
}

#[test]
fn c77_depths_cross_over() {
    let (left, right) = pair();
    let (theirs, _listening) = listener(&right);
    let (ours, id) = resolved(&left, PortSpace::Tcp, at(2, PORT));
    give_qp(&id, QpType::Rc);
    let asked = ConnParam { responder_resources: 7, initiator_depth: 3, ..ConnParam::default() };
    id.connect(&asked).expect("accepted for sending");
    let request = expect(&theirs, CmEventType::ConnectRequest);
    let conn = request.conn.expect("a connection");
    assert_eq!((conn.responder_resources, conn.initiator_depth), (3, 7));
    give_qp(&request.id, QpType::Rc);
    request.id.accept(&ConnParam::default()).expect("the request is there");
    expect(&ours, CmEventType::Established);
    expect(&theirs, CmEventType::Established);
    let depths = |id: &CmId| {
        let (attr, _) = id.qp().expect("a queue pair").query().expect("it exists");
        (attr.state, attr.max_rd_atomic, attr.max_dest_rd_atomic)
    };
    assert_eq!(depths(&id), (Some(QpState::Rts), Some(3), Some(7)));
    assert_eq!(depths(&request.id), (Some(QpState::Rts), Some(7), Some(3)));
}

#[test]
fn nobody_listens() {
    let (left, right) = pair();
    let _running = right.create_event_channel().expect("a connection manager that answers");
    let refused = left.connect(at(2, 1), &ConnParam::default()).map(drop);
    assert!(
        matches!(refused, Err(Error::Rejected { reason: RejectReason::InvalidServiceId, .. })),
        "{refused:?}"
    );
}

#[test]
fn c80_a_refusal_carries_the_word_of_the_application() {
    let (left, right) = pair();
    let listener = Listener::bind(&right, at(2, PORT)).expect("free");
    let refused = std::thread::scope(|scope| {
        scope.spawn(|| {
            listener.accept_request().and_then(|incoming| incoming.reject(b"no room")).expect("refused");
        });
        left.connect(at(2, PORT), &ConnParam::default()).map(drop)
    });
    let Err(Error::Rejected { reason: RejectReason::ConsumerDefined, private_data }) = refused else {
        panic!("{refused:?}");
    };
    assert!(private_data.starts_with(b"no room"));
}

#[test]
fn an_id_without_a_queue_pair_is_established_by_its_application() {
    let (left, right) = pair();
    let (theirs, _listening) = listener(&right);
    let (ours, id) = resolved(&left, PortSpace::Tcp, at(2, PORT));
    let (pd, cq) = parts(&left);
    let qp = pd.create_qp(QpType::Rc, &cq, &cq).build().expect("a queue pair").into_queue_pair();
    id.connect(&ConnParam { qp_num: qp.qpn(), ..ConnParam::default() }).expect("sent");
    let request = expect(&theirs, CmEventType::ConnectRequest);
    give_qp(&request.id, QpType::Rc);
    request.id.accept(&ConnParam::default()).expect("granted");
    let response = expect(&ours, CmEventType::ConnectResponse);
    assert_eq!(response.conn.map(|conn| conn.qp_num), request.id.qp().map(|qp| qp.qpn()));
    for state in [QpState::Rtr, QpState::Rts] {
        let attr = id.qp_attr(state, &ConnParam::default()).expect("the peer has said everything");
        qp.modify(&attr).expect("the attributes fit");
    }
    id.establish().expect("granted");
    expect(&theirs, CmEventType::Established);
}

#[test]
fn events_follow_an_id_to_another_channel() {
    let (left, right) = pair();
    let (theirs, _listening) = listener(&right);
    let (_ours, id) = resolved(&left, PortSpace::Tcp, at(2, PORT));
    give_qp(&id, QpType::Rc);
    let other = left.create_event_channel().expect("a channel");
    id.migrate(&other);
    id.connect(&ConnParam::default()).expect("sent");
    let request = expect(&theirs, CmEventType::ConnectRequest);
    give_qp(&request.id, QpType::Rc);
    request.id.accept(&ConnParam::default()).expect("granted");
    assert_eq!(expect(&other, CmEventType::Established).id, id);
}

#[test]
fn a_datagram_service_tells_its_queue_pair() {
    let (left, right) = pair();
    let theirs = right.create_event_channel().expect("a channel");
    let service = CmId::new(&theirs, PortSpace::Udp);
    service.bind_addr(at(2, PORT)).expect("free");
    service.listen(4).expect("free");
    let (ours, id) = resolved(&left, PortSpace::Udp, at(2, PORT));
    give_qp(&id, QpType::Ud);
    id.connect(&ConnParam::default().private_data(*b"who?")).expect("sent");
    let request = expect(&theirs, CmEventType::ConnectRequest);
    assert!(request.private_data().starts_with(b"who?"));
    give_qp(&request.id, QpType::Ud);
    request.id.accept(&ConnParam::default().private_data(*b"me")).expect("answered");
    let answer = expect(&ours, CmEventType::Established).ud.expect("a datagram service");
    let qp = request.id.qp().expect("a queue pair");
    assert_eq!((answer.qp_num, answer.qkey), (qp.qpn(), uroce::UDP_QKEY));
    assert!(answer.private_data.starts_with(b"me"));

    let room = qp.pd().alloc_mr(128, Access::LOCAL_WRITE).expect("memory");
    qp.post_recv(&[RecvWr::new(1, room.sge(..))]).expect("room");
    let sender = id.qp().expect("a queue pair");
    let ah = sender.pd().create_ah(&answer.av).expect("the way is known");
    let data = sender.pd().alloc_mr_from(b"datagram", Access::empty()).expect("memory");
    let wr = SendWr::send(2, data.sge(..)).to(&ah, answer.qp_num, answer.qkey).signaled();
    sender.post_send(&[wr]).expect("room");
    let received = qp.recv_cq().wait_one().expect("a completion").result().expect("success");
    assert_eq!(received.byte_len, 40 + 8);
    assert_eq!(room.to_vec(40..48).expect("inside"), b"datagram");
}

/// Waits until the peer has ended a connection.
fn await_end(connection: &Connection) {
    let ended = (0..1 << 24).any(|_| {
        std::thread::yield_now();
        connection.is_disconnected()
    });
    assert!(ended, "the peer was told");
}

#[test]
fn dropping_an_id_tells_the_peer() {
    let (_devices, _listener, ours, theirs) = connected();
    drop(ours);
    await_end(&theirs);
}

#[test]
fn ports_are_taken_once_and_given_back() {
    let (left, _right) = pair();
    let channel = left.create_event_channel().expect("a channel");
    let one = CmId::new(&channel, PortSpace::Tcp);
    one.bind_addr(at(1, PORT)).expect("free");
    let other = CmId::new(&channel, PortSpace::Tcp);
    assert!(matches!(other.bind_addr(at(1, PORT)), Err(Error::PortInUse(PORT))));
    CmId::new(&channel, PortSpace::Udp).bind_addr(at(1, PORT)).expect("another space of ports");
    drop(one);
    other.bind_addr(at(1, PORT)).expect("given back");
    let any = CmId::new(&channel, PortSpace::Tcp);
    any.bind_addr(at(1, 0)).expect("one is free");
    assert!(any.local_addr().is_some_and(|local| local.port() >= 49152));
    let stranger = CmId::new(&channel, PortSpace::Tcp).bind_addr(at(9, 0));
    assert!(matches!(stranger, Err(Error::NoSuchAddress { .. })), "{stranger:?}");
}

#[test]
fn an_address_without_a_way_is_an_event() {
    let (left, _right) = pair();
    let channel = left.create_event_channel().expect("a channel");
    let id = CmId::new(&channel, PortSpace::Tcp);
    id.resolve_addr(None, at(77, PORT)).expect("started");
    let event = expect(&channel, CmEventType::AddrError);
    assert_eq!(event.status, -libc::EHOSTUNREACH);
}

#[test]
fn two_thousand_connections_leave_nothing_behind() {
    let (left, right) = pair();
    let listener = Listener::bind(&right, at(2, PORT)).expect("free");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..2000 {
                let incoming: Incoming = listener.accept_request().expect("a request");
                drop(incoming.accept(&ConnParam::default()).expect("confirmed"));
            }
        });
        for _ in 0..2000 {
            drop(left.connect(at(2, PORT), &ConnParam::default()).expect("granted"));
        }
    });
    // Every object of a connection is gone with it, or these would run out long before.
    let qps = left.query_device().limits.max_qp;
    assert!(qps >= 2000, "fewer would prove more, but {qps} is what there is");
}
