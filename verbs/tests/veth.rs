//! Over real interfaces: a veth pair between two network namespaces. Needs root; says so loudly otherwise.

mod common;

use std::net::IpAddr;

use common::{ALL, PATIENCE, drive, pattern, region, succeed};
use uroce::testing::Connected;
use uroce::{
    AddressVector, AsyncEvent, Backend, Context, DeviceConfig, Drive, Error, PortState, QpState, QpType, Qpn,
    RecvWr, SendWr, WcStatus,
};
use uroce_nic::testing::{Namespace, VethPair, skip};

const LEFT: IpAddr = VethPair::LEFT_V4;
const RIGHT: IpAddr = VethPair::RIGHT_V4;

fn config(source: IpAddr) -> DeviceConfig {
    DeviceConfig::new(VethPair::INTERFACE).source(source)
}

/// A queue pair in each namespace, connected to each other.
fn connected(veth: &VethPair, left: DeviceConfig, right: DeviceConfig) -> (Connected, Connected) {
    let open = |namespace: &Namespace, config| namespace.inside(|| Context::open(config)).expect("open");
    connect(veth, &open(&veth.left, left), &open(&veth.right, right))
}

fn connect(veth: &VethPair, left: &Context, right: &Context) -> (Connected, Connected) {
    let parts = |ctx: &Context| {
        let (pd, cq) = (ctx.alloc_pd().expect("a domain"), ctx.create_cq(256).build().expect("a queue"));
        let qp = pd.create_qp(QpType::Rc, &cq, &cq).access(ALL).build().expect("a queue pair");
        (ctx.clone(), pd, cq, qp)
    };
    let (l, r) = (parts(left), parts(right));
    let (ours, theirs) = (l.3.endpoint(), r.3.endpoint());
    let end = |namespace: &Namespace, (ctx, pd, cq, qp): (_, _, _, uroce::PreparedQueuePair), peer| {
        let qp = namespace.inside(|| qp.connect(peer)).expect("connected");
        Connected { ctx, pd, cq, qp }
    };
    (end(&veth.left, l, theirs), end(&veth.right, r, ours))
}

/// A SEND, a WRITE, a READ and an atomic operation.
fn exercise(pair: &(Connected, Connected), length: usize) {
    let (a, b) = pair;
    let (source, back) = (region(a, &pattern(length)), region(a, &vec![0; length]));
    let (target, inbox) = (region(b, &vec![0; length]), region(b, &vec![0; length]));
    b.qp.post_recv(&[RecvWr::new(1, inbox.sge(..))]).expect("a receive");
    let requests = [
        SendWr::send(1, source.sge(..)).signaled(),
        SendWr::rdma_write(2, source.sge(..), target.remote()).signaled(),
        SendWr::rdma_read(3, back.sge(..), target.remote()).signaled(),
    ];
    a.qp.post_send(&requests).expect("three requests");
    for id in 1..=3 {
        assert_eq!(succeed(pair, &a.cq).wr_id, id);
    }
    assert_eq!(succeed(pair, &b.cq).byte_len as usize, length);
    assert_eq!(back.to_vec(..).expect("all of it"), pattern(length));
    assert_eq!(inbox.to_vec(..).expect("all of it"), pattern(length));
    target.store_u64(0, 7).expect("a word");
    a.qp.post_send(&[SendWr::fetch_and_add(4, back.sge(..8), target.remote(), 3).signaled()])
        .expect("an atomic");
    succeed(pair, &a.cq);
    assert_eq!((back.load_u64(0).expect("a word"), target.load_u64(0).expect("a word")), (7, 10));
}

#[test]
#[cfg(feature = "af-xdp")]
fn every_operation_works_over_af_xdp() {
    for mtu in [1500, 4200] {
        let veth = match VethPair::new("verbs", mtu) {
            Ok(veth) => veth,
            Err(reason) => return skip(&reason),
        };
        for drive in [Drive::default(), Drive::Inline] {
            let with = |source| config(source).backend(Backend::Xdp).drive(drive);
            for (left, right) in [(LEFT, RIGHT), (VethPair::LEFT_V6, VethPair::RIGHT_V6)] {
                let pair = connected(&veth, with(left), with(right));
                exercise(&pair, 300_000);
                assert_eq!(pair.0.ctx.gid(), left.into());
            }
        }
    }
}

#[test]
fn every_operation_works_over_af_packet() {
    let veth = match VethPair::new("verbs", 1500) {
        Ok(veth) => veth,
        Err(reason) => return skip(&reason),
    };
    for drive in [Drive::default(), Drive::Inline] {
        let with = |source| config(source).backend(Backend::Packet).drive(drive);
        let pair = connected(&veth, with(LEFT), with(RIGHT));
        exercise(&pair, 100_000);
        assert!(matches!(pair.0.ctx.query_port().mode, uroce::Mode::AfPacket { .. }));
    }
}

/// Datagrams to one and to many, over IPv4 and IPv6: the interface listens to the group.
#[test]
fn datagrams_and_groups_work_over_real_interfaces() {
    let veth = match VethPair::new("verbs", 1500) {
        Ok(veth) => veth,
        Err(reason) => return skip(&reason),
    };
    let backends = [Backend::Packet, Backend::Auto];
    let groups = ["239.1.2.3", "ff05::1234"].map(|group| group.parse::<IpAddr>().expect("a group"));
    let ends = [(LEFT, RIGHT), (VethPair::LEFT_V6, VethPair::RIGHT_V6)];
    for (backend, ((left, right), group)) in
        backends.into_iter().flat_map(|backend| ends.into_iter().zip(groups).map(move |ends| (backend, ends)))
    {
        let pair = connected(&veth, config(left).backend(backend), config(right).backend(backend));
        let (a, b) = &pair;
        let ready = |end: &Connected| {
            end.pd
                .create_qp(QpType::Ud, &end.cq, &end.cq)
                .build()
                .expect("a queue pair")
                .activate(5)
                .expect("ready")
        };
        let (sender, receiver) = (ready(a), ready(b));
        let inbox = region(b, &[0; 128]);
        veth.right.inside(|| receiver.attach_multicast(group)).expect("the kernel listens");
        assert!(veth.right.ip_output("maddress show").expect("ip runs").contains(&group.to_string()));
        for (to, qpn) in [(right, receiver.qpn()), (group, Qpn::MULTICAST)] {
            receiver.post_recv(&[RecvWr::new(1, inbox.sge(..))]).expect("a receive");
            let way = veth.left.inside(|| a.pd.create_ah(&AddressVector::new(to.into()))).expect("a way");
            sender.post_send(&[SendWr::send_inline(2, b"text").to(&way, qpn, 5)]).expect("room");
            let received = succeed(&pair, &b.cq);
            assert_eq!((received.src_qp, received.byte_len), (sender.qpn(), 44));
            assert_eq!(inbox.to_vec(40..44).expect("received"), b"text");
        }
        receiver.detach_multicast(group).expect("it was a member");
        assert!(!veth.right.ip_output("maddress show").expect("ip runs").contains(&group.to_string()));
    }
}

/// Datagrams reach an address that the interface got after the device was opened.
#[test]
fn an_address_that_was_added_takes_datagrams() {
    let veth = match VethPair::new("verbs", 1500) {
        Ok(veth) => veth,
        Err(reason) => return skip(&reason),
    };
    let pair =
        connected(&veth, config(LEFT).backend(Backend::Packet), config(RIGHT).backend(Backend::Packet));
    let (a, b) = &pair;
    let added: IpAddr = "192.0.2.99".parse().expect("an address");
    veth.right.ip(&format!("address add {added}/24 dev {}", VethPair::INTERFACE)).expect("added");
    veth.left.ip(&format!("route replace {added}/32 dev {}", VethPair::INTERFACE)).expect("a route");
    let ready = |end: &Connected| {
        end.pd
            .create_qp(QpType::Ud, &end.cq, &end.cq)
            .build()
            .expect("a queue pair")
            .activate(5)
            .expect("ready")
    };
    let (sender, receiver) = (ready(a), ready(b));
    let inbox = region(b, &[0; 128]);
    receiver.post_recv(&[RecvWr::new(1, inbox.sge(..))]).expect("a receive");
    let way = veth.left.inside(|| a.pd.create_ah(&AddressVector::new(added.into()))).expect("a way");
    sender.post_send(&[SendWr::send_inline(2, b"text").to(&way, receiver.qpn(), 5)]).expect("room");
    assert_eq!(succeed(&pair, &b.cq).src_qp, sender.qpn());
}

#[test]
fn the_port_tells_what_the_kernel_knows() {
    let veth = match VethPair::new("verbs", 1500) {
        Ok(veth) => veth,
        Err(reason) => return skip(&reason),
    };
    veth.left.inside(|| {
        let error = Context::open(DeviceConfig::new("nothing0")).expect_err("no such interface");
        assert_eq!(error.errno(), libc::ENODEV);
        let error = Context::open(config(RIGHT)).expect_err("the address of the other side");
        assert!(matches!(error, Error::NoSuchAddress { .. }), "{error}");
        let ctx =
            Context::open(DeviceConfig::new(VethPair::INTERFACE).backend(Backend::Packet)).expect("open");
        let port = ctx.query_port();
        assert_eq!((port.state, port.link_mtu, port.active_mtu.bytes()), (PortState::Active, 1500, 1024));
        assert_eq!((ctx.gid(), port.gid_index), (LEFT.into(), 1));
        assert_eq!(port.gids[1].gid, LEFT.into());
        assert_eq!(ctx.query_device().mac.0, VethPair::LEFT_MAC);
    });
}

#[test]
#[cfg(feature = "af-xdp")]
fn a_queue_is_given_back_and_not_given_twice() {
    let veth = match VethPair::new("verbs", 1500) {
        Ok(veth) => veth,
        Err(reason) => return skip(&reason),
    };
    veth.left.inside(|| {
        for _ in 0..5 {
            let _open = Context::open(config(LEFT).backend(Backend::Xdp)).expect("open");
            let error = Context::open(config(LEFT)).expect_err("it is open already");
            assert_eq!(error.errno(), libc::EBUSY, "{error}");
        }
    });
}

#[test]
fn what_happens_to_the_interface_happens_to_its_queue_pairs() {
    let veth = match VethPair::new("verbs", 1500) {
        Ok(veth) => veth,
        Err(reason) => return skip(&reason),
    };
    let pair = connected(&veth, config(LEFT), config(RIGHT));
    pair.1.qp.post_recv(&[RecvWr::new(1, [])]).expect("a receive");
    veth.right.ip(&format!("address delete {RIGHT}/24 dev eth0")).expect("ip");
    await_event(&pair, &pair.1, AsyncEvent::GidChange);
    let flushed = pair.1.cq.wait_one_for(PATIENCE).expect("a completion");
    assert_eq!((flushed.status, pair.1.qp.state()), (WcStatus::WrFlushErr, QpState::Err));
    assert_eq!(pair.0.qp.state(), QpState::Rts, "the other side does not know");

    veth.left.ip("link set eth0 down").expect("ip");
    await_event(&pair, &pair.0, AsyncEvent::PortErr);
    await_event(&pair, &pair.0, AsyncEvent::QpFatal(pair.0.qp.qpn()));
    veth.left.ip("link set eth0 up").expect("ip");
    await_event(&pair, &pair.0, AsyncEvent::PortActive);

    veth.left.ip("link delete eth0").expect("ip");
    await_event(&pair, &pair.0, AsyncEvent::DeviceFatal);
    await_event(&pair, &pair.1, AsyncEvent::DeviceFatal);
}

fn await_event(pair: &(Connected, Connected), end: &Connected, expected: AsyncEvent) {
    let mut seen = Vec::new();
    while let Some(event) = end.ctx.wait_async_event(Some(PATIENCE)).expect("no error") {
        if event == expected {
            return;
        }
        seen.push(event);
        drive(pair);
    }
    panic!("{expected:?} did not come, but {seen:?}");
}
