//! AF_PACKET on a veth pair, with frames that leave as one, to whoever may be at the other end.

mod common;

use std::net::UdpSocket;
use std::time::Duration;

use common::{Arrived, send, wait};
use uroce_nic::testing::{Flow, Namespace, VethPair, skip};
use uroce_nic::{AfPacket, Mode, Nic};

const MTU: u32 = 4200;
const V4: Flow = Flow { v6: false, vlan: false, port: 0xc001 };
const V6: Flow = Flow { v6: true, ..V4 };

/// The pair, or the test is over.
macro_rules! pair {
    () => {
        match VethPair::new("nic", MTU) {
            Ok(pair) => pair,
            Err(reason) => return skip(&reason),
        }
    };
}

/// The backend, or the test is over: an older kernel takes frames one by one, as the other tests do.
macro_rules! open {
    ($namespace:expr) => {
        match open(&$namespace) {
            Some(nic) => nic,
            None => return skip(&"the kernel does not take frames that hold several (Linux 6.2)"),
        }
    };
}

fn open(namespace: &Namespace) -> Option<AfPacket> {
    let addresses = [VethPair::LEFT_V4, VethPair::LEFT_V6, VethPair::RIGHT_V4, VethPair::RIGHT_V6];
    let nic = namespace.inside(|| {
        let own = addresses.into_iter().filter(|&address| UdpSocket::bind((address, 0)).is_ok());
        AfPacket::open(VethPair::INTERFACE, &own.collect::<Vec<_>>()).unwrap()
    });
    (nic.mode() == Mode::AfPacket { offload: true }).then_some(nic)
}

/// Messages of several frames, and single ones, of several flows; identifications go round.
fn mixture() -> Vec<Vec<u8>> {
    let flows = [V4, V6, Flow { vlan: true, ..V4 }, Flow { port: 0xc002, ..V4 }, Flow { vlan: true, ..V6 }];
    let sizes = [4128, 4112, 4112, 4112, 4112, 4112, 4112, 4112, 1000, 20, 20, 20, 20, 4112, 37, 1];
    let mut frames = Vec::new();
    for (round, flow) in (0..).zip(flows.iter().cycle().take(40)) {
        let first = 0xff80 + round * sizes.len() as u32;
        frames.extend((first..).zip(sizes).map(|(number, size)| flow.frame(number, size)));
    }
    frames
}

/// Lets both ends know of each other.
fn greet(left: &mut AfPacket, right: &mut AfPacket) {
    let hello: Vec<_> = [V4, V6].map(|flow| flow.frame(0, 20)).into();
    let back = hello.iter().map(|frame| returned(frame)).collect::<Vec<_>>();
    let (mut here, mut there) = (Arrived::default(), Arrived::default());
    send(left, &hello, || ());
    there.take_until(right, hello.len());
    send(right, &back, || ());
    here.take_until(left, back.len());
    assert!(there.frames == hello && here.frames == back);
}

/// The frame from its receiver to its sender.
fn returned(frame: &[u8]) -> Vec<u8> {
    let mut back = frame.to_vec();
    back[..12].rotate_left(6);
    match frame[14] >> 4 {
        4 => back[26..34].rotate_left(4),
        _ => back[22..54].rotate_left(16),
    }
    back
}

/// Sends the frames, which arrive as they were.
fn carries(left: &mut dyn Nic, right: &mut dyn Nic, frames: &[Vec<u8>]) {
    let mut arrived = Arrived::default();
    send(left, frames, || arrived.take(right));
    arrived.take_until(right, frames.len());
    assert_eq!(arrived.frames.len(), frames.len(), "{:?} {:?}", left.stats(), right.stats());
    let wrong = arrived.frames.iter().zip(frames).position(|(arrived, sent)| arrived != sent);
    assert_eq!(wrong, None, "the first frame that arrives changed");
    assert_eq!((left.stats().dropped(), right.stats().dropped()), (0, 0));
    assert_eq!(left.stats().tx_frames, right.stats().rx_frames);
}

/// Packets that the interface has received, as the kernel counts them.
fn packets(namespace: &Namespace) -> u64 {
    let table = namespace.inside(|| std::fs::read_to_string("/proc/thread-self/net/dev")).unwrap();
    let line = table.lines().find_map(|line| line.trim().strip_prefix("eth0:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_mixture_arrives_as_it_was() {
    let pair = pair!();
    let (mut left, mut right) = (open!(pair.left), open!(pair.right));
    greet(&mut left, &mut right);
    let frames = mixture();
    let before = packets(&pair.right);
    carries(&mut left, &mut right, &frames);
    let packets = packets(&pair.right) - before;
    assert!(packets < frames.len() as u64 * 2 / 3, "{packets} packets for {} frames", frames.len());
    let back: Vec<_> =
        frames.iter().map(|frame| if frame[12] == 0x81 { frame.clone() } else { returned(frame) }).collect();
    carries(&mut right, &mut left, &back);
}

#[test]
fn frames_of_a_flow_cross_as_one_packet() {
    let pair = pair!();
    let (mut left, mut right) = (open!(pair.left), open!(pair.right));
    greet(&mut left, &mut right);
    for flow in [V4, V6, Flow { vlan: true, ..V4 }, Flow { vlan: true, ..V6 }] {
        let frames: Vec<_> = (0xfff8..0x1_0007).map(|number| flow.frame(number, 4112)).collect();
        let before = packets(&pair.right);
        carries(&mut left, &mut right, &frames);
        // Whatever else the kernel sends on a new link.
        let packets = packets(&pair.right) - before;
        assert!((1..8).contains(&packets), "{flow:?}: {packets} packets for {} frames", frames.len());
    }
}

#[test]
fn a_link_that_takes_no_long_packets_gets_single_frames() {
    let pair = pair!();
    pair.left.ip("link set eth0 gso_max_size 3000").unwrap();
    let (mut left, mut right) = (open!(pair.left), open!(pair.right));
    greet(&mut left, &mut right);
    let frames: Vec<_> = mixture().into_iter().filter(|frame| frame.len() > 4000).collect();
    let before = packets(&pair.right);
    carries(&mut left, &mut right, &frames);
    let packets = packets(&pair.right) - before;
    assert!(packets >= frames.len() as u64, "{packets} packets for {} frames", frames.len());
    let frames = mixture();
    carries(&mut left, &mut right, &frames);
}

#[test]
#[cfg(feature = "af-xdp")]
fn af_xdp_gets_single_frames() {
    use uroce_nic::{AfXdp, XdpAttach, XdpConfig};
    let pair = pair!();
    for attach in [XdpAttach::Native, XdpAttach::Generic] {
        let config = XdpConfig { attach: Some(attach), ..XdpConfig::default() };
        let mut right =
            pair.right.inside(|| AfXdp::open(VethPair::INTERFACE, 0, &config)).expect("AF_XDP opens");
        let mut left = open!(pair.left);
        carries(&mut left, &mut right, &mixture());
        carries(&mut right, &mut left, &mixture());
    }
}

#[test]
fn a_plain_udp_socket_gets_single_datagrams() {
    let pair = pair!();
    let right = pair.right.inside(|| UdpSocket::bind((VethPair::RIGHT_V4, 4791)).unwrap());
    right.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut left = open!(pair.left);
    let frames: Vec<_> = (1..=15).map(|number| V4.frame(number, 4112)).collect();
    send(&mut left, &frames, || ());
    let mut buffer = [0; 9000];
    for frame in &frames {
        let length = right.recv(&mut buffer).unwrap();
        assert!(buffer[..length] == frame[42..]);
    }
}

#[test]
fn a_flood_that_nobody_reads_is_counted() {
    const TOGETHER: u64 = 15;
    let pair = pair!();
    let (mut left, mut right) = (open!(pair.left), open!(pair.right));
    greet(&mut left, &mut right);
    // As many as leave as one each time, so that each packet lost is as many frames.
    let frames: Vec<_> = (0..TOGETHER as u32).map(|number| V4.frame(number, 4112)).collect();
    for _ in 0..1000 {
        send(&mut left, &frames, || ());
    }
    let mut arrived = 0;
    while wait(&right, 300) {
        while right.rx(64, &mut |_| arrived += 1).unwrap() > 0 {}
    }
    let stats = right.stats();
    assert!(arrived > 0 && stats.rx_no_buffer > 0, "{arrived} arrived, {stats:?}");
    assert_eq!(arrived + TOGETHER * stats.rx_no_buffer, TOGETHER * 1000, "{stats:?}");
}
