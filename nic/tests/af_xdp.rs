//! AF_XDP on both ends of a veth pair.
#![cfg(feature = "af-xdp")]

mod common;

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use common::{Arrived, frame, headers, in_vlan, send, wait};
use uroce_nic::testing::{Namespace, VethPair, skip};
use uroce_nic::{AfXdp, Mode, Nic, OpenError, XdpAttach, XdpConfig, XdpProgram, af_xdp};

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

fn open(namespace: &Namespace, attach: XdpAttach) -> Result<AfXdp, OpenError> {
    let config = XdpConfig { attach: Some(attach), ..XdpConfig::default() };
    namespace.inside(|| AfXdp::open(VethPair::INTERFACE, 0, &config))
}

/// Whether an XDP program is attached to the interface.
fn has_program(namespace: &Namespace) -> bool {
    namespace.ip_output("link show eth0").unwrap().contains("prog/xdp")
}

/// Whether ARP or neighbour discovery and TCP of the kernels on both sides work.
fn kernels_connect(pair: &VethPair, to: std::net::IpAddr) -> bool {
    let listener = pair.right.inside(|| std::net::TcpListener::bind((to, 0)).unwrap());
    let to = listener.local_addr().unwrap();
    pair.left.inside(|| std::net::TcpStream::connect_timeout(&to, Duration::from_secs(5))).is_ok()
}

fn carries(mtu: u32, attach: XdpAttach) {
    let pair = pair!(mtu);
    let mut left = open(&pair.left, attach).unwrap();
    let mut right = open(&pair.right, attach).unwrap();
    assert!(matches!(right.mode(), Mode::AfXdp { attach: at, multi_buffer: true, .. } if at == attach));
    let largest = (mtu as usize + 14).min(4206);
    assert!(left.max_frame() >= largest);
    let sizes = [64, 74, 1082, 1514, 3413, 3414, 3839, 3840, 3841, 3842, 4095, 4096, 4097, 4170, 4200, 4206];
    let sizes: Vec<_> = sizes.into_iter().filter(|&size| size <= largest).cycle().take(2000).collect();
    let frames: Vec<_> = sizes.iter().enumerate().map(|(number, &size)| frame(size, number as u32)).collect();
    let mut arrived = Arrived::default();
    send(&mut left, &frames, || arrived.take(&mut right));
    arrived.take_until(&mut right, frames.len());
    assert_eq!(arrived.frames.len(), frames.len(), "{:?} {:?}", left.stats(), right.stats());
    assert!(arrived.frames == frames, "frames arrive in order and unchanged");
    let long = sizes.iter().filter(|&&size| size > 3840).count();
    assert_eq!(arrived.pieces.get(&2).copied().unwrap_or(0), long);
    assert_eq!((left.stats().dropped(), right.stats().dropped()), (0, 0));
    assert_eq!((left.stats().tx_frames, right.stats().rx_frames), (2000, 2000));
    assert!(kernels_connect(&pair, VethPair::RIGHT_V4), "the kernel's own path works beside ours");
}

#[test]
fn carries_frames_native_mtu_1500() {
    carries(1500, XdpAttach::Native);
}

#[test]
fn carries_frames_native_mtu_3400() {
    carries(3400, XdpAttach::Native);
}

#[test]
fn carries_frames_native_mtu_9000() {
    carries(9000, XdpAttach::Native);
}

#[test]
fn carries_frames_generic_mtu_1500() {
    carries(1500, XdpAttach::Generic);
}

#[test]
fn carries_frames_generic_mtu_3400() {
    carries(3400, XdpAttach::Generic);
}

#[test]
fn carries_frames_generic_mtu_9000() {
    carries(9000, XdpAttach::Generic);
}

#[test]
fn small_rings_go_round_many_times_on_two_processors() {
    const FRAMES: u32 = 30_000;
    let pair = pair!(9000);
    let config = XdpConfig { rx_chunks: 64, tx_frames: 32, ..XdpConfig::default() };
    let open = |end: &Namespace| end.inside(|| AfXdp::open(VethPair::INTERFACE, 0, &config)).unwrap();
    let (mut left, mut right) = (open(&pair.left), open(&pair.right));
    let received = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            while received.load(Ordering::Relaxed) < FRAMES {
                let got = right.rx(64, &mut |frame| assert!(frame.len() == 74 || frame.len() == 4170));
                received.fetch_add(got.unwrap() as u32, Ordering::Relaxed);
            }
        });
        let mut sent = 0;
        while sent < FRAMES {
            // Never more on the way than there are chunks for, in bursts of changing length.
            let room = 30 - (sent - received.load(Ordering::Relaxed)) as usize;
            let burst = (1 + sent as usize % 23).min(room).min((FRAMES - sent) as usize);
            left.tx(burst, &mut |to| {
                let size = if sent % 5 == 0 { 4170 } else { 74 };
                to[..size].copy_from_slice(&frame(size, sent));
                sent += 1;
                Some(size)
            })
            .unwrap();
            left.flush().unwrap();
            assert!(!receiver.is_finished() || sent == FRAMES, "the receiver gave up");
            std::thread::yield_now();
        }
    });
    assert_eq!((left.stats().dropped(), right.stats().dropped()), (0, 0));
}

#[test]
fn frames_beyond_two_buffers_are_dropped_and_counted() {
    let pair = pair!(9000);
    let mut right = open(&pair.right, XdpAttach::Native).unwrap();
    // The left end is the kernel's, which sends up to 9000 bytes.
    pair.left.inside(|| {
        let socket = std::net::UdpSocket::bind((VethPair::LEFT_V4, 0)).unwrap();
        socket.send_to(&[1; 8900], (VethPair::RIGHT_V4, 4791)).unwrap();
        socket.send_to(&[2; 100], (VethPair::RIGHT_V4, 4791)).unwrap();
    });
    let mut arrived = Arrived::default();
    arrived.take_until(&mut right, 1);
    assert_eq!(arrived.frames.len(), 1);
    assert!(arrived.frames[0].ends_with(&[2; 100]), "the frame after it arrives whole");
    assert_eq!(right.stats().rx_oversize, 1);
}

#[test]
fn everything_but_rocev2_stays_with_the_kernel() {
    let pair = pair!(1500);
    let mut right = open(&pair.right, XdpAttach::Native).unwrap();
    let mut left = open(&pair.left, XdpAttach::Native).unwrap();
    let other = pair.right.inside(|| std::net::UdpSocket::bind((VethPair::RIGHT_V4, 5000)).unwrap());
    let mut bytes = headers(100, 5000);
    bytes.resize(100, 9);
    send(&mut left, &[bytes], || ());
    let mut buffer = [0; 200];
    assert_eq!(other.recv(&mut buffer).unwrap(), 58);
    assert!(kernels_connect(&pair, VethPair::RIGHT_V4) && kernels_connect(&pair, VethPair::RIGHT_V6));
    let mut arrived = Arrived::default();
    arrived.take(&mut right);
    assert_eq!(arrived.frames.len(), 0);
}

#[test]
fn c74_frames_in_a_vlan_are_ours_with_their_tag() {
    let pair = pair!(1500);
    for attach in [XdpAttach::Native, XdpAttach::Generic] {
        let mut left = open(&pair.left, attach).unwrap();
        let mut right = open(&pair.right, attach).unwrap();
        let tagged = in_vlan(&frame(1500, 1));
        let mut arrived = Arrived::default();
        send(&mut left, std::slice::from_ref(&tagged), || ());
        arrived.take_until(&mut right, 1);
        assert!(arrived.frames == [tagged], "{attach}");
    }
}

#[test]
fn a_slow_receiver_loses_frames_and_counts_each() {
    let pair = pair!(1500);
    let mut left = open(&pair.left, XdpAttach::Native).unwrap();
    let config = XdpConfig { rx_chunks: 64, ..XdpConfig::default() };
    let mut right = pair.right.inside(|| AfXdp::open(VethPair::INTERFACE, 0, &config)).unwrap();
    let frames: Vec<_> = (0..200).map(|number| frame(100, number)).collect();
    send(&mut left, &frames, || ());
    let mut arrived = Arrived::default();
    while wait(&right, 300) {
        arrived.take(&mut right);
    }
    assert_eq!(arrived.frames.len(), 64);
    assert_eq!(right.stats().dropped(), 200 - 64, "{:?}", right.stats());
}

#[test]
fn a_second_instance_is_told_who_is_there() {
    let pair = pair!(1500);
    let first = open(&pair.left, XdpAttach::Native).unwrap();
    for attach in [XdpAttach::Native, XdpAttach::Generic] {
        match open(&pair.left, attach) {
            Err(OpenError::ProgramPresent { interface, program }) => {
                assert!(interface == "eth0" && program > 0);
            }
            other => panic!("{:?}", other.map(|nic| nic.mode())),
        }
    }
    let again = pair.left.inside(|| AfXdp::bind(first.program(), 0, &XdpConfig::default()));
    assert!(matches!(again, Err(OpenError::QueueBusy { queue: 0, .. })));
    let beyond = pair.left.inside(|| AfXdp::bind(first.program(), 7, &XdpConfig::default()));
    assert!(matches!(beyond, Err(OpenError::NoSuchQueue { queue: 7, queues: 1, .. })));
}

#[test]
fn a_queue_can_be_opened_again_right_after_it_was_closed() {
    let pair = pair!(1500);
    for _ in 0..5 {
        drop(open(&pair.left, XdpAttach::Native).unwrap());
    }
    let program = pair.left.inside(|| XdpProgram::attach(VethPair::INTERFACE, None)).unwrap();
    for _ in 0..5 {
        pair.left.inside(|| AfXdp::bind(&program, 0, &XdpConfig::default())).unwrap();
    }
}

#[test]
fn queues_of_one_interface_share_the_program() {
    let pair = pair!(1500);
    pair.left.ip("link add eth1 numrxqueues 2 numtxqueues 2 type veth peer name eth2").unwrap();
    pair.left.ip("link set eth1 up").unwrap();
    pair.left.ip("link set eth2 up").unwrap();
    let config = XdpConfig::default();
    let program = pair.left.inside(|| XdpProgram::attach("eth1", None)).unwrap();
    assert_eq!(program.interface().rx_queues, 2);
    let mut queues = [0, 1].map(|queue| pair.left.inside(|| AfXdp::bind(&program, queue, &config)).unwrap());
    let mut sender = pair.left.inside(|| AfXdp::open("eth2", 0, &config)).unwrap();
    send(&mut sender, &[frame(100, 1)], || ());
    let mut arrived = Arrived::default();
    arrived.take_until(&mut queues[0], 1);
    arrived.take(&mut queues[1]);
    assert!(arrived.frames == [frame(100, 1)]);
}

#[test]
fn the_program_leaves_with_the_last_user() {
    let pair = pair!(1500);
    let nic = open(&pair.left, XdpAttach::Native).unwrap();
    let program = nic.program().clone();
    drop(nic);
    assert!(has_program(&pair.left));
    drop(program);
    assert!(!has_program(&pair.left));
}

#[test]
fn the_program_leaves_when_its_owner_panics() {
    let pair = pair!(1500);
    let caught = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let mut nic = open(&pair.left, XdpAttach::Generic).unwrap();
        assert!(has_program(&pair.left));
        let _ = nic.tx(1, &mut |frame| Some(frame.len() + 1));
    }));
    assert!(caught.is_err());
    assert!(!has_program(&pair.left));
}

#[test]
fn the_program_leaves_when_the_process_is_killed() {
    // The test program itself, as a child that opens a socket and waits to be killed.
    if let Ok(name) = std::env::var("UROCE_NIC_TEST_HOLD") {
        let home = std::fs::File::open(format!("/run/netns/{name}")).unwrap();
        // SAFETY: setns takes two integers and touches no memory of ours.
        assert_eq!(unsafe { libc::setns(std::os::fd::AsRawFd::as_raw_fd(&home), libc::CLONE_NEWNET) }, 0);
        let _nic = AfXdp::open(VethPair::INTERFACE, 0, &XdpConfig::default()).unwrap();
        loop {
            std::thread::park();
        }
    }
    let pair = pair!(1500);
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_program_leaves_when_the_process_is_killed"])
        .env("UROCE_NIC_TEST_HOLD", pair.left.name())
        .spawn()
        .unwrap();
    assert!(eventually(|| has_program(&pair.left)));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(eventually(|| !has_program(&pair.left)));
}

/// Asks for up to some seconds; each question starts a process, which takes a few milliseconds.
fn eventually(condition: impl Fn() -> bool) -> bool {
    (0..1000).any(|_| condition())
}

#[test]
fn a_signal_handler_can_detach_everything() {
    // In a process of its own: the other tests' programs must stay.
    if std::env::var("UROCE_NIC_TEST_DETACH").is_ok() {
        let pair = pair!(1500);
        let _nic = open(&pair.left, XdpAttach::Native).unwrap();
        assert!(has_program(&pair.left));
        std::thread::spawn(af_xdp::detach_all).join().unwrap();
        assert!(!has_program(&pair.left));
        return;
    }
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_signal_handler_can_detach_everything"])
        .env("UROCE_NIC_TEST_DETACH", "1")
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn an_interface_removed_while_in_use_is_an_error() {
    let pair = pair!(1500);
    let mut left = open(&pair.left, XdpAttach::Native).unwrap();
    let mut right = open(&pair.right, XdpAttach::Native).unwrap();
    send(&mut left, &[frame(100, 1)], || ());
    pair.left.ip("link delete eth0").unwrap();
    left.tx(1, &mut |to| {
        to[..100].copy_from_slice(&frame(100, 2));
        Some(100)
    })
    .unwrap();
    left.flush().unwrap_err();
    // An end that only listens notices after a bounded number of looks.
    assert!((0..2000).any(|_| right.rx(64, &mut |_| ()).is_err()));
    assert!((0..2000).any(|_| left.rx(64, &mut |_| ()).is_err()));
}

#[test]
fn an_interface_taken_down_carries_frames_again_once_it_is_up() {
    let pair = pair!(1500);
    let mut left = open(&pair.left, XdpAttach::Native).unwrap();
    let mut right = open(&pair.right, XdpAttach::Native).unwrap();
    pair.left.ip("link set eth0 down").unwrap();
    let mut full = 0;
    for number in 0..300 {
        full += usize::from(left.tx(1, &mut fill_with(&frame(100, number))).unwrap() == 0);
        left.flush().unwrap();
    }
    assert_eq!(full, 300 - 256, "a ring that does not empty lends nothing");
    pair.left.ip("link set eth0 up").unwrap();
    assert!(kernels_connect(&pair, VethPair::RIGHT_V4), "the link is up again");
    left.flush().unwrap();
    let mut arrived = Arrived::default();
    arrived.take_until(&mut right, 256);
    assert_eq!(arrived.frames.len(), 256);
}

fn fill_with(frame: &[u8]) -> impl FnMut(&mut [u8]) -> Option<usize> {
    move |to| {
        to[..frame.len()].copy_from_slice(frame);
        Some(frame.len())
    }
}

#[test]
fn what_cannot_be_opened_says_why() {
    let pair = pair!(1500);
    let open =
        |name: &str| pair.left.inside(|| AfXdp::open(name, 0, &XdpConfig::default()).map(|nic| nic.mode()));
    let message = |name| open(name).unwrap_err().to_string();
    assert!(message("nosuch0").contains("no network interface named nosuch0"));
    assert!(message("lo").contains("not an Ethernet interface"));
    pair.left.ip("link set eth0 down").unwrap();
    assert!(message("eth0").contains("ip link set eth0 up"));
}

#[test]
fn without_privileges_the_error_says_how_to_get_them() {
    let pair = pair!(1500);
    let error =
        pair.left.inside(|| std::thread::scope(|scope| scope.spawn(open_without_privileges).join().unwrap()));
    assert!(error.contains("run as root") && error.contains("setcap"), "{error}");
}

/// On a thread of its own, which has given its privileges up. The thread inherits the namespace.
fn open_without_privileges() -> String {
    // SAFETY: the raw system call changes the user of this thread only, and takes three integers.
    assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) }, 0);
    AfXdp::open(VethPair::INTERFACE, 0, &XdpConfig::default()).map(|nic| nic.mode()).unwrap_err().to_string()
}
