//! Captured messages of unreliable services and of shared receive queues arrive at our engine, in the receiving role, as
//! their payloads say.

use std::collections::BTreeMap;
use std::net::IpAddr;

use uroce_pcap_tests::{Frame, Set, frames};
use uroce_stack::wire::{MacAddr, Mtu, Operation, Packet, Path, Psn, Qpn};
use uroce_stack::{
    Access, Completion, CompletionReader, Config, Counter, Engine, Instant, MrKeys, Pd, QpAttr, QpInit,
    QpState, QpType, RecvQueue, Region, Sge, SharedRecvQueue, SrqInit, WcOpcode, WcStatus,
};

/// Bytes of each receive.
const ROOM: usize = 8192;
/// Bytes before the payload of a datagram.
const HEADER_AREA: usize = 40;

#[test]
fn uc_messages_of_rxe_arrive() {
    check("uc_send", Set::Rxe, QpType::Uc, 4);
}

#[test]
fn uc_messages_of_hardware_arrive() {
    check("uc-sg_sportfix", Set::Hardware, QpType::Uc, 6);
}

#[test]
fn datagrams_of_rxe_arrive() {
    check("ud_send", Set::Rxe, QpType::Ud, 4);
    check("ud_send_bw", Set::Rxe, QpType::Ud, 5);
}

/// The key and the address are ours, as nobody can choose a key; all other bytes are as captured.
#[test]
fn uc_writes_of_rxe_arrive() {
    let traffic = Traffic::of(Set::Rxe, "uc_write_bw");
    let mut host = Host::new(QpType::Uc, &traffic);
    let mut expected = Vec::new();
    for frame in &traffic.frames {
        let mut packet = parse(frame);
        expected.extend(packet.payload.bytes());
        if let Operation::Write { reth: Some(reth), .. } = &mut packet.operation {
            (reth.va, reth.rkey) = (host.region.addr(), host.keys.rkey);
        }
        let mut ours = vec![0; frame.bytes.len()];
        let len = packet.emit(&mut ours);
        host.engine.receive(Instant::ZERO, &ours[..len], &[]);
    }
    let counters = host.engine.counters();
    assert_eq!((counters.get(Counter::RxWriteRequests), counters.get(Counter::UcRefused)), (5, 0));
    assert_eq!(counters.get(Counter::LostMessage), 0);
    assert_eq!(
        host.bytes(0, 9000),
        expected[expected.len() - 9000..],
        "the last of five writes to one place"
    );
}

#[test]
fn messages_of_rxe_to_four_queue_pairs_take_from_one_queue() {
    let traffic = Traffic::of(Set::Rxe, "srq_send");
    let mut host = Host::new(QpType::Rc, &traffic);
    let expected = host.take(&traffic, 0);
    assert_eq!((expected.len(), host.order.clone()), (8, (0..8).collect::<Vec<_>>()), "in order of arrival");
    let numbers: Vec<u32> = expected.iter().map(|(qpn, _)| qpn.get()).collect();
    assert_eq!(numbers, [0x16, 0x17, 0x18, 0x19, 0x17, 0x18, 0x19, 0x16]);
    assert_eq!(host.acknowledgements(), traffic.acknowledgements());
}

fn check(name: &str, set: Set, qp_type: QpType, messages: usize) {
    let traffic = Traffic::of(set, name);
    let mut host = Host::new(qp_type, &traffic);
    let before = if qp_type == QpType::Ud { HEADER_AREA } else { 0 };
    assert_eq!(host.take(&traffic, before).len(), messages, "{name}");
    assert!(host.acknowledgements().is_empty(), "nothing is answered");
}

/// What one side of a capture receives.
struct Traffic {
    frames: Vec<Frame>,
    answers: Vec<Frame>,
    /// The receiving queue pairs, with the PSN that each receives first.
    numbers: BTreeMap<u32, Psn>,
    /// The numbers of the other side, in the same order.
    peers: Vec<u32>,
    ours: IpAddr,
    theirs: IpAddr,
}

impl Traffic {
    /// The side that the first frame goes to.
    fn of(set: Set, name: &str) -> Self {
        let all = frames(&set.file(name)).unwrap_or_else(|error| panic!("{error}"));
        let first = parse(&all[0]).ip;
        let is_ours = |frame: &Frame| parse(frame).ip.destination == first.destination;
        let (to_us, to_them): (Vec<Frame>, Vec<Frame>) = all.into_iter().partition(is_ours);
        let requests: Vec<Frame> =
            to_us.into_iter().filter(|frame| parse(frame).opcode.is_request()).collect();
        let mut numbers = BTreeMap::new();
        for packet in requests.iter().map(parse) {
            numbers.entry(packet.bth.dest_qp.get()).or_insert(packet.bth.psn);
        }
        let mut peers: Vec<u32> = to_them.iter().map(|frame| parse(frame).bth.dest_qp.get()).collect();
        peers.sort_unstable();
        peers.dedup();
        peers.resize(numbers.len(), 1);
        Self {
            frames: requests,
            answers: to_them,
            numbers,
            peers,
            ours: first.destination,
            theirs: first.source,
        }
    }

    /// Whole messages: their queue pairs and payloads, in the order of their last packets.
    fn messages(&self) -> Vec<(Qpn, Vec<u8>)> {
        let mut open: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
        let mut whole = Vec::new();
        for packet in self.frames.iter().map(parse) {
            let Operation::Send { position, .. } = packet.operation else {
                panic!("only messages were captured")
            };
            let qpn = packet.bth.dest_qp;
            open.entry(qpn.get()).or_default().extend(packet.payload.bytes());
            if position.is_end() {
                whole.push((qpn, open.remove(&qpn.get()).unwrap_or_default()));
            }
        }
        whole
    }

    /// What the captured receiver acknowledged.
    fn acknowledgements(&self) -> Vec<(u32, u32, Operation)> {
        self.answers.iter().filter_map(|frame| acknowledgement(&parse(frame))).collect()
    }
}

fn parse(frame: &Frame) -> Packet<'_> {
    Packet::parse(&frame.bytes, &[]).unwrap_or_else(|reason| panic!("frame {}: {reason:?}", frame.number))
}

fn acknowledgement(packet: &Packet<'_>) -> Option<(u32, u32, Operation)> {
    let is_ack = matches!(packet.operation, Operation::Acknowledge(_));
    is_ack.then_some((packet.bth.dest_qp.get(), packet.bth.psn.get(), packet.operation))
}

/// Our engine, with the queue pairs of the captured receiver.
struct Host {
    engine: Engine,
    region: Region,
    keys: MrKeys,
    completions: CompletionReader,
    /// Receives in the order in which they completed.
    order: Vec<u64>,
    /// Kept, as their queue pairs take receives from them.
    _receives: (Vec<RecvQueue>, SharedRecvQueue),
    sent: Vec<(u32, u32, Operation)>,
}

impl Host {
    /// Receives of [`ROOM`] bytes are posted; those of RC to a shared receive queue.
    fn new(qp_type: QpType, traffic: &Traffic) -> Self {
        let (first, last) = (traffic.numbers.keys().min(), traffic.numbers.keys().max());
        let qpns = *first.expect("a queue pair")..*last.expect("a queue pair") + 1;
        let config = Config { qpns, ..Config::new([7; 32], Mtu::B4096) };
        let mut engine = Engine::new(config).expect("the configuration is valid");
        engine.set_addresses(&[traffic.ours]);
        let pd = engine.alloc_pd().expect("room for a protection domain");
        let region = Region::alloc(16 * ROOM);
        let access = Access::LOCAL_WRITE | Access::REMOTE;
        let keys = engine.register_mr(pd, region.clone(), region.addr(), access).expect("room for a region");
        let (cq, completions) = engine.create_cq(64).expect("room for a completion queue");
        let init = QpInit { max_recv_wr: 16, max_recv_sge: 1, ..QpInit::new(qp_type, cq, cq) };
        let (srq, mut shared) =
            engine.create_srq(pd, &SrqInit { max_wr: 16, max_sge: 1, xrc: None }).expect("room for a queue");
        let init = QpInit { srq: (qp_type == QpType::Rc).then_some(srq), ..init };
        let mut receives = bring_up(&mut engine, pd, &init, traffic);
        for index in 0..16 {
            let sges =
                [Sge { addr: region.addr() + index * ROOM as u64, length: ROOM as u32, lkey: keys.lkey }];
            match &mut receives[..] {
                [own] if init.srq.is_none() => own.push(index, &sges).expect("room for a receive"),
                _ => shared.push(index, &sges).expect("room for a receive"),
            }
        }
        receives.iter_mut().for_each(RecvQueue::ring_doorbell);
        shared.ring_doorbell();
        let (order, sent) = (Vec::new(), Vec::new());
        Self { engine, region, keys, completions, order, _receives: (receives, shared), sent }
    }

    /// Takes everything; each message that completes must be the next of the capture, behind `before` other bytes.
    fn take(&mut self, traffic: &Traffic, before: usize) -> Vec<(Qpn, Vec<u8>)> {
        let mut arrived = Vec::new();
        for frame in &traffic.frames {
            self.engine.receive(Instant::ZERO, &frame.bytes, &[]);
            self.transmit();
            let mut completion = [Completion::default()];
            while self.completions.poll(&mut completion) == 1 {
                arrived.push(self.message(&completion[0], before));
            }
        }
        let expected = traffic.messages();
        assert!(arrived == expected, "{} messages arrived, {} were sent", arrived.len(), expected.len());
        arrived
    }

    fn message(&mut self, completion: &Completion, before: usize) -> (Qpn, Vec<u8>) {
        assert_eq!((completion.status, completion.opcode), (WcStatus::Success, WcOpcode::Recv));
        self.order.push(completion.wr_id);
        let at = completion.wr_id as usize * ROOM + before;
        (completion.qp_num, self.bytes(at, completion.byte_len as usize - before))
    }

    fn transmit(&mut self) {
        let mut frame = [0; 5000];
        while let Some(len) = self.engine.transmit(Instant::ZERO, &mut frame) {
            let packet = Packet::parse(&frame[..len], &[]).expect("the engine sends valid packets");
            self.sent.extend(acknowledgement(&packet));
        }
        self.engine.publish(&mut |_| {});
    }

    fn acknowledgements(&self) -> Vec<(u32, u32, Operation)> {
        self.sent.clone()
    }

    fn bytes(&self, offset: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        assert!(self.region.read_at(offset, &mut bytes));
        bytes
    }
}

/// As many queue pairs as the capture has, each with its number, in RTR.
fn bring_up(engine: &mut Engine, pd: Pd, init: &QpInit, traffic: &Traffic) -> Vec<RecvQueue> {
    let create = |_| engine.create_qp(pd, init).expect("room for a queue pair");
    let mut qps: Vec<_> = (0..traffic.numbers.len()).map(create).collect();
    qps.sort_unstable_by_key(|qp| qp.qpn.get());
    for ((qp, psn), peer) in qps.iter().zip(traffic.numbers.values()).zip(&traffic.peers) {
        assert_eq!(traffic.numbers.get(&qp.qpn.get()), Some(psn), "the numbers are those of the capture");
        for attr in steps(init.qp_type, *psn, Qpn::new(*peer), traffic) {
            engine.modify_qp(Instant::ZERO, qp.qpn, &attr).expect("allowed");
        }
    }
    qps.into_iter().map(|qp| qp.recv).collect()
}

fn steps(kind: QpType, psn: Psn, peer: Qpn, traffic: &Traffic) -> [QpAttr; 2] {
    let (datagrams, reliable) = (kind == QpType::Ud, kind == QpType::Rc);
    let init = QpAttr {
        port: Some(1),
        pkey_index: Some(0),
        access: (!datagrams).then_some(Access::REMOTE),
        qkey: datagrams.then_some(0x1111_1111),
        ..QpAttr::to(QpState::Init)
    };
    let rtr = QpAttr {
        path: (!datagrams).then(|| path(traffic)),
        path_mtu: (!datagrams).then(|| mtu(traffic)),
        dest_qpn: (!datagrams).then_some(peer),
        rq_psn: (!datagrams).then_some(psn),
        max_dest_rd_atomic: reliable.then_some(1),
        min_rnr_timer: reliable.then_some(12),
        ..QpAttr::to(QpState::Rtr)
    };
    [init, rtr]
}

/// That of the largest packet.
fn mtu(traffic: &Traffic) -> Mtu {
    let longest = traffic.frames.iter().map(|frame| parse(frame).payload.len()).max().unwrap_or(0);
    if longest > 1024 { Mtu::B4096 } else { Mtu::B1024 }
}

fn path(traffic: &Traffic) -> Path {
    Path {
        source_mac: MacAddr([2, 0, 0, 0, 0, 1]),
        destination_mac: MacAddr([2, 0, 0, 0, 0, 2]),
        vlan: None,
        source: traffic.ours,
        destination: traffic.theirs,
        source_port: 0xC000,
        traffic_class: 0,
        hop_limit: 64,
        flow_label: 0,
    }
}
