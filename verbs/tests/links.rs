//! Bad links, links to ourselves, links that break.

mod common;

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use common::{ALL, PATIENCE, both_kinds, inline, pattern, region, succeed};
use uroce::testing::{LinkModel, connect, connected_pair};
use uroce::{
    AsyncEvent, Context, DeviceConfig, Drive, Link, MacAddr, Mode, ModifyError, Nic, NicStats, PortState,
    QpAttr, QpState, QpType, RecvWr, RxFrame, SendWr, WcStatus,
};
use uroce_nic::{Cable, Fate, Fault, cable};

#[test]
fn every_byte_arrives_over_a_bad_cable() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20);
    println!("SEED={seed}");
    let pair = connected_pair(LinkModel::faulty(seed, 0.02)).expect("a pair");
    let (a, b) = &pair;
    let length = 1 << 20;
    let (source, back) = (region(a, &pattern(length)), region(a, &vec![0; length]));
    let (target, inbox) = (region(b, &vec![0; length]), region(b, &vec![0; length]));
    b.qp.post_recv(&[RecvWr::new(1, inbox.sge(..))]).expect("a receive");
    let write = SendWr::rdma_write(1, source.sge(..), target.remote()).signaled();
    let read = SendWr::rdma_read(2, back.sge(..), target.remote()).signaled();
    let send = SendWr::send(3, source.sge(..)).signaled();
    a.qp.post_send(&[write, read, send]).expect("three requests");
    for id in 1..=3 {
        assert_eq!(succeed(&pair, &a.cq).wr_id, id);
    }
    assert_eq!(succeed(&pair, &b.cq).byte_len as usize, length);
    assert_eq!(back.to_vec(..).expect("all of it"), pattern(length));
    assert_eq!(inbox.to_vec(..).expect("all of it"), pattern(length));
    let lost = a.ctx.counters();
    assert!(lost.iter().any(|(name, count)| name == "retransmitted_pkts" && count > 0), "the cable was bad");
}

#[test]
fn atomics_are_executed_once_over_a_bad_cable() {
    let pair = connected_pair(LinkModel::faulty(7, 0.05)).expect("a pair");
    let (a, b) = &pair;
    let (result, counter) = (region(a, &[0; 8]), region(b, &[0; 8]));
    for expected in 0..150 {
        let add = SendWr::fetch_and_add(expected, result.sge(..), counter.remote(), 1).signaled();
        a.qp.post_send(&[add]).expect("an atomic");
        succeed(&pair, &a.cq);
        assert_eq!(result.load_u64(0).expect("a word"), expected);
    }
}

#[test]
fn queue_pairs_of_one_device_reach_each_other() {
    for (a, _b) in both_kinds() {
        let pair = connect(&a.ctx, &a.ctx).expect("connected to ourselves");
        let (left, right) = &pair;
        let (source, target) = (region(left, &pattern(10_000)), region(right, &vec![0; 10_000]));
        right.qp.post_recv(&[RecvWr::new(1, target.sge(..))]).expect("a receive");
        left.qp.post_send(&[SendWr::send(2, source.sge(..)).signaled()]).expect("a send");
        assert_eq!(succeed(&pair, &right.cq).byte_len, 10_000);
        succeed(&pair, &left.cq);
        assert_eq!(target.to_vec(..).expect("all of it"), pattern(10_000));
    }
}

#[test]
fn a_queue_pair_reaches_itself() {
    let (a, _b) = inline();
    let qp = a.pd.create_qp(QpType::Rc, &a.cq, &a.cq).access(ALL).build().expect("a queue pair");
    let own = qp.endpoint();
    let qp = qp.connect(own).expect("connected to itself");
    qp.post_recv(&[RecvWr::new(1, [])]).expect("a receive");
    qp.post_send(&[SendWr::send(2, []).imm(9).signaled()]).expect("a send");
    let mut ids = [1, 2].map(|_| a.cq.wait_one_for(PATIENCE).expect("a completion").wr_id);
    ids.sort_unstable();
    assert_eq!(ids, [1, 2]);
}

const HEALTHY: u8 = 0;
const GONE: u8 = 1;
const PANICS: u8 = 2;

/// A cable that breaks when told to.
struct Fragile {
    nic: Cable,
    state: Arc<AtomicU8>,
}

impl Nic for Fragile {
    fn rx(&mut self, budget: usize, deliver: &mut dyn FnMut(RxFrame<'_>)) -> io::Result<usize> {
        match self.state.load(Ordering::SeqCst) {
            HEALTHY => self.nic.rx(budget, deliver),
            GONE => Err(io::Error::from_raw_os_error(libc::ENODEV)),
            _ => panic!("a driver with a bug"),
        }
    }

    fn tx(&mut self, budget: usize, fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>) -> io::Result<usize> {
        self.nic.tx(budget, fill)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.nic.flush()
    }

    fn max_frame(&self) -> usize {
        self.nic.max_frame()
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn stats(&self) -> NicStats {
        self.nic.stats()
    }

    fn mode(&self) -> Mode {
        self.nic.mode()
    }
}

fn open(nic: impl Nic + 'static, number: u8, drive: Drive) -> Context {
    Context::open(config(nic, number, drive)).expect("open")
}

fn config(nic: impl Nic + 'static, number: u8, drive: Drive) -> DeviceConfig {
    let address = |number| std::net::IpAddr::from([192, 0, 2, number]);
    let mac = |number| MacAddr([2, 0, 0, 0, 0, number]);
    let other = 3 - number;
    let neighbours = vec![(address(other), mac(other))];
    let link = Link { mac: mac(number), addresses: vec![address(number)], mtu: 1500, neighbours };
    DeviceConfig::with_nic(Box::new(nic), link).drive(drive)
}

#[test]
fn an_interface_that_breaks_fails_its_queue_pairs_and_nothing_else() {
    for (how, drive) in
        [(GONE, Drive::default()), (GONE, Drive::Inline), (PANICS, Drive::default()), (PANICS, Drive::Inline)]
    {
        let state = Arc::new(AtomicU8::new(HEALTHY));
        let (left, right) = cable::pair(32, 1800);
        let a = open(Fragile { nic: left, state: Arc::clone(&state) }, 1, drive);
        let b = open(right, 2, drive);
        let pair = connect(&a, &b).expect("connected");
        let qp = &pair.0.qp;
        qp.post_recv(&[RecvWr::new(1, [])]).expect("a receive");
        state.store(how, Ordering::SeqCst);
        let flushed = pair.0.cq.wait_one_for(PATIENCE).expect("a completion");
        assert_eq!((flushed.wr_id, flushed.status), (1, WcStatus::WrFlushErr));
        let mut events = Vec::new();
        while !events.contains(&AsyncEvent::DeviceFatal) {
            events.extend(a.wait_async_event(Some(PATIENCE)).expect("no error"));
        }
        // What is posted afterwards is flushed; nothing can be connected any more.
        qp.post_send(&[SendWr::send(2, [])]).expect("accepted");
        assert_eq!(pair.0.cq.wait_one_for(PATIENCE).expect("a completion").status, WcStatus::WrFlushErr);
        qp.modify(&QpAttr::to(QpState::Reset)).expect("a reset is always possible");
        let error = qp.modify(&QpAttr::to(QpState::Init)).expect_err("the device is gone");
        assert!(matches!(error, ModifyError::DeviceGone));
        assert_eq!(a.query_port().state, PortState::Down);
        assert_eq!(b.query_port().state, PortState::Active);
    }
}

#[test]
fn a_wrapper_sees_every_frame() {
    let frames = Arc::new(AtomicU8::new(0));
    let seen = Arc::clone(&frames);
    let count = move |nic| -> Box<dyn Nic> {
        let plan = move |_, _: &[u8]| {
            seen.fetch_add(1, Ordering::SeqCst);
            Fate::Pass
        };
        Box::new(Fault::new(nic, Some(Box::new(plan)), None))
    };
    let (left, right) = cable::pair(32, 1800);
    let a = Context::open(config(left, 1, Drive::Inline).wrap_nic(count)).expect("open");
    let pair = connect(&a, &open(right, 2, Drive::Inline)).expect("connected");
    pair.0.qp.post_send(&[SendWr::rdma_write(1, [], Default::default()).signaled()]).expect("a write");
    succeed(&pair, &pair.0.cq);
    assert_eq!(frames.load(Ordering::SeqCst), 1);
}

#[test]
fn what_a_device_tells_is_what_it_was_given() {
    let ctx = open(cable::pair(4, 1800).0, 1, Drive::Inline);
    let (device, port) = (ctx.query_device(), ctx.query_port());
    assert_eq!((device.mac, device.node_guid), (MacAddr([2, 0, 0, 0, 0, 1]), 0x0000_00ff_fe00_0001));
    assert_eq!((port.active_mtu.bytes(), port.link_mtu, port.gid_index), (1024, 1500, 1));
    assert_eq!(port.gids[1].gid, ctx.gid());
    assert_eq!(port.gids[0].gid.to_string(), "fe80::ff:fe00:1");
    assert_eq!(port.mode, Mode::Cable);
}

#[test]
fn frames_of_the_backend_bound_the_path_mtu() {
    let small = open(cable::pair(4, 700).0, 1, Drive::Inline);
    assert_eq!(small.active_mtu().bytes(), 512);
    let link =
        Link { mac: MacAddr([2; 6]), addresses: vec![[192, 0, 2, 1].into()], mtu: 300, neighbours: vec![] };
    let error =
        Context::open(DeviceConfig::with_nic(Box::new(cable::pair(4, 2000).0), link)).expect_err("too small");
    assert!(error.to_string().contains("MTU 300"), "{error}");
}
