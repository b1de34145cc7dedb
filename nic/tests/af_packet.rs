//! AF_PACKET on a veth pair.

mod common;

use std::net::UdpSocket;
use std::time::Duration;

use common::{Arrived, frame, headers, in_vlan, send};
#[cfg(feature = "af-xdp")]
use uroce_nic::probe;
use uroce_nic::testing::{Namespace, VethPair, skip};
use uroce_nic::{AfPacket, Mode, Nic, OpenError};

const PART: &str = "nic";

/// The pair, or the test is over.
macro_rules! pair {
    ($mtu:expr) => {
        match VethPair::new(PART, $mtu) {
            Ok(pair) => pair,
            Err(reason) => return skip(&reason),
        }
    };
}

fn open(namespace: &Namespace, addresses: &[std::net::IpAddr]) -> Result<AfPacket, OpenError> {
    namespace.inside(|| AfPacket::open(VethPair::INTERFACE, addresses))
}

fn frames(count: u32) -> Vec<Vec<u8>> {
    let sizes = [64, 74, 1082, 3840, 3841, 4170, 4206];
    sizes.into_iter().cycle().zip(0..count).map(|(size, number)| frame(size, number)).collect()
}

fn carries(left: &mut dyn Nic, right: &mut dyn Nic) {
    let frames = frames(700);
    let mut arrived = Arrived::default();
    send(left, &frames, || arrived.take(right));
    arrived.take_until(right, frames.len());
    assert!(arrived.frames == frames, "{} of {} arrived", arrived.frames.len(), frames.len());
    assert_eq!((left.stats().tx_frames, right.stats().rx_frames), (700, 700));
    assert_eq!((left.stats().dropped(), right.stats().dropped()), (0, 0));
}

#[test]
fn frames_are_carried() {
    let pair = pair!(9000);
    let mut left = open(&pair.left, &[VethPair::LEFT_V4]).unwrap();
    let mut right = open(&pair.right, &[VethPair::RIGHT_V4]).unwrap();
    assert!(matches!(left.mode(), Mode::AfPacket { .. }));
    assert_eq!(left.max_frame(), 9018);
    carries(&mut left, &mut right);
}

#[test]
#[cfg(feature = "af-xdp")]
fn both_backends_understand_each_other() {
    let pair = pair!(9000);
    let xdp =
        |end: &Namespace| end.inside(|| uroce_nic::AfXdp::open(VethPair::INTERFACE, 0, &Default::default()));
    {
        let mut left = xdp(&pair.left).unwrap();
        carries(&mut left, &mut open(&pair.right, &[]).unwrap());
    }
    let mut right = xdp(&pair.right).unwrap();
    carries(&mut open(&pair.left, &[]).unwrap(), &mut right);
}

#[test]
fn c74_frames_in_a_vlan_are_ours_with_their_tag() {
    let pair = pair!(1500);
    let mut left = open(&pair.left, &[]).unwrap();
    let mut right = open(&pair.right, &[]).unwrap();
    let tagged = in_vlan(&frame(1514, 1));
    let mut arrived = Arrived::default();
    send(&mut left, std::slice::from_ref(&tagged), || ());
    arrived.take_until(&mut right, 1);
    assert!(arrived.frames == [tagged]);
}

#[test]
fn own_and_foreign_frames_are_not_received() {
    let pair = pair!(1500);
    let mut left = open(&pair.left, &[]).unwrap();
    let mut right = open(&pair.right, &[]).unwrap();
    let mut foreign = headers(100, 5000);
    foreign.resize(100, 0);
    send(&mut left, &[foreign, frame(100, 1)], || ());
    let (mut here, mut there) = (Arrived::default(), Arrived::default());
    there.take_until(&mut right, 1);
    here.take(&mut left);
    assert_eq!((here.frames.len(), there.frames.len()), (0, 1));
    assert_eq!(there.frames[0], frame(100, 1));
}

/// Whether the kernel of the right end answers a datagram to port 4791 with "port unreachable".
fn answers_unreachable(pair: &VethPair) -> bool {
    let (ours, other) = (datagram(pair, 4791), datagram(pair, 4790));
    // The answer to the second datagram, which always comes, says that the first is dealt with or about to be.
    other.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    assert!(is_refusal(&other.recv(&mut [0; 64])));
    ours.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    is_refusal(&ours.recv(&mut [0; 64]))
}

fn datagram(pair: &VethPair, port: u16) -> UdpSocket {
    pair.left.inside(|| {
        let socket = UdpSocket::bind((VethPair::LEFT_V4, 0)).unwrap();
        socket.connect((VethPair::RIGHT_V4, port)).unwrap();
        socket.send(&[0; 64]).unwrap();
        socket
    })
}

fn is_refusal(result: &std::io::Result<usize>) -> bool {
    result.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
}

#[test]
fn the_kernel_does_not_answer_in_our_place() {
    let pair = pair!(1500);
    pair.right.inside(|| std::fs::write("/proc/sys/net/ipv4/icmp_ratelimit", "0")).unwrap();
    assert!(answers_unreachable(&pair), "without us the kernel answers");
    let nic = open(&pair.right, &[VethPair::RIGHT_V4, VethPair::RIGHT_V6]).unwrap();
    assert!(!answers_unreachable(&pair));
    drop(nic);
    assert!(answers_unreachable(&pair));
}

#[test]
#[cfg(feature = "af-xdp")]
fn packets_end_behind_us_as_long_as_we_are_open() {
    let pair = pair!(1500);
    if probe::kernel_version().is_ok_and(|(major, minor, _)| (major, minor) < (6, 6)) {
        return skip(&"the kernel has no such programs (Linux 6.6)");
    }
    let other = pair.right.inside(|| UdpSocket::bind((VethPair::RIGHT_V4, 4791)).unwrap());
    other.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut nic = open(&pair.right, &[]).unwrap();
    drop(datagram(&pair, 4791));
    let mut arrived = Arrived::default();
    arrived.take_until(&mut nic, 1);
    assert_eq!(arrived.frames.len(), 1);
    assert!(other.recv(&mut [0; 100]).is_err(), "it went on to the network stack");
    drop(nic);
    drop(datagram(&pair, 4791));
    assert_eq!(other.recv(&mut [0; 100]).unwrap(), 64);
    pair.right.inside(|| std::fs::write("/proc/sys/net/ipv4/conf/eth0/forwarding", "1")).unwrap();
    let _nic = open(&pair.right, &[]).unwrap();
    drop(datagram(&pair, 4791));
    assert_eq!(other.recv(&mut [0; 100]).unwrap(), 64, "what may be for other hosts goes on");
}

#[test]
fn what_cannot_be_opened_says_why() {
    let pair = pair!(1500);
    let _holder = pair.left.inside(|| UdpSocket::bind((VethPair::LEFT_V4, 4791)).unwrap());
    assert!(matches!(open(&pair.left, &[VethPair::LEFT_V4]), Err(OpenError::PortTaken { .. })));
    assert!(pair.left.inside(|| AfPacket::open("nosuch0", &[])).unwrap_err().to_string().contains("nosuch0"));
    pair.left.ip("link set eth0 down").unwrap();
    assert!(matches!(open(&pair.left, &[]), Err(OpenError::InterfaceDown { .. })));
}

#[test]
fn an_interface_removed_while_in_use_is_an_error() {
    let pair = pair!(1500);
    let mut left = open(&pair.left, &[]).unwrap();
    let mut right = open(&pair.right, &[]).unwrap();
    pair.left.ip("link delete eth0").unwrap();
    left.tx(1, &mut |_| Some(60)).unwrap();
    left.flush().unwrap_err();
    right.rx(1, &mut |_| ()).unwrap_err();
}

#[test]
fn an_interface_taken_down_comes_back() {
    let pair = pair!(1500);
    let mut left = open(&pair.left, &[]).unwrap();
    let mut right = open(&pair.right, &[]).unwrap();
    pair.left.ip("link set eth0 down").unwrap();
    send(&mut left, &[frame(100, 1)], || ());
    left.rx(1, &mut |_| ()).unwrap();
    assert_eq!(left.stats().tx_dropped, 1);
    pair.left.ip("link set eth0 up").unwrap();
    let mut arrived = Arrived::default();
    for number in 2..200 {
        send(&mut left, &[frame(100, number)], || arrived.take(&mut right));
        arrived.take_until(&mut right, 1);
        if !arrived.frames.is_empty() {
            return;
        }
    }
    panic!("nothing arrives after the interface came back");
}
