//! What the kernel tells of interfaces, routes and neighbours, on a veth pair.

use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::time::Duration;

use uroce_nic::host::{Change, Changes, HostError, Interface, NextHop, RouteError, resolve};
use uroce_nic::probe;
use uroce_nic::testing::{VethPair, skip};

const PART: &str = "nic";
const PATIENCE: Duration = Duration::from_secs(5);

/// The pair, or the test is over.
macro_rules! pair {
    ($mtu:expr) => {
        match VethPair::new(PART, $mtu) {
            Ok(pair) => pair,
            Err(reason) => return skip(&reason),
        }
    };
}

fn left(pair: &VethPair) -> Interface {
    pair.left.inside(|| Interface::find(VethPair::INTERFACE)).unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// The link-local address that the kernel makes of a MAC of the pair.
fn link_local(number: u8) -> IpAddr {
    ip(&format!("fe80::75:72ff:fe00:{number}"))
}

fn way(pair: &VethPair, source: Option<IpAddr>, destination: IpAddr) -> Result<NextHop, RouteError> {
    let interface = left(pair);
    pair.left.inside(|| resolve(&interface, source, destination, PATIENCE))
}

#[test]
fn an_interface_is_described() {
    let pair = pair!(4200);
    let interface = left(&pair);
    assert_eq!((interface.name.as_str(), interface.mac, interface.mtu), ("eth0", VethPair::LEFT_MAC, 4200));
    assert!(interface.up && interface.carrier && interface.vlan.is_none());
    assert_eq!((interface.driver.as_deref(), interface.rx_queues), (Some("veth"), 1));
    let addresses: Vec<_> = interface.addresses.iter().map(|own| (own.address, own.prefix)).collect();
    assert_eq!(addresses, [(VethPair::LEFT_V4, 24), (VethPair::LEFT_V6, 64), (link_local(1), 64)]);
    let gids: Vec<_> = interface.gids().iter().map(|gid| gid.address).collect();
    assert_eq!(gids, [link_local(1), VethPair::LEFT_V4, VethPair::LEFT_V6]);
}

#[test]
fn an_interface_is_found_by_its_address() {
    let pair = pair!(1500);
    let find = |address| pair.left.inside(|| Interface::with_address(address));
    assert_eq!(find(VethPair::LEFT_V4).unwrap(), left(&pair));
    assert_eq!(find(VethPair::LEFT_V6).unwrap(), left(&pair));
    assert!(matches!(find(VethPair::RIGHT_V4), Err(HostError::NoSuchAddress(_))));
    assert!(matches!(find(ip("127.0.0.1")), Err(HostError::NotEthernet(_))));
}

#[test]
fn a_neighbour_is_resolved_whatever_its_family() {
    let pair = pair!(1500);
    let pairs = [
        (VethPair::LEFT_V4, VethPair::RIGHT_V4),
        (VethPair::LEFT_V6, VethPair::RIGHT_V6),
        (link_local(1), link_local(2)),
    ];
    for (source, destination) in pairs {
        let expected =
            NextHop { source, mac: VethPair::RIGHT_MAC, hop_limit: 64, mtu: 1500, vlan: None, local: false };
        assert_eq!(way(&pair, None, destination).unwrap(), expected);
        assert_eq!(way(&pair, Some(source), destination).unwrap(), expected);
    }
}

#[test]
fn an_own_address_needs_no_neighbour() {
    let pair = pair!(1500);
    let hop = way(&pair, Some(VethPair::LEFT_V4), VethPair::LEFT_V4).unwrap();
    assert!(hop.local);
    assert_eq!((hop.mac, hop.source), (VethPair::LEFT_MAC, VethPair::LEFT_V4));
}

#[test]
fn a_route_leads_over_its_gateway_and_sets_limits() {
    let pair = pair!(1500);
    pair.left.ip("route add 192.0.2.0/24 via 10.77.0.2 mtu 1300 hoplimit 9").unwrap();
    pair.left.ip("route add 2001:db8::/32 via fd77::2").unwrap();
    pair.left.ip("route add 198.51.100.0/24 via inet6 fd77::2").unwrap();
    let hop = way(&pair, None, ip("192.0.2.7")).unwrap();
    assert_eq!((hop.mac, hop.source), (VethPair::RIGHT_MAC, VethPair::LEFT_V4));
    assert_eq!((hop.mtu, hop.hop_limit), (1300, 9));
    assert_eq!(way(&pair, None, ip("2001:db8::7")).unwrap().mac, VethPair::RIGHT_MAC);
    assert_eq!(way(&pair, None, ip("198.51.100.7")).unwrap().mac, VethPair::RIGHT_MAC);
}

#[test]
fn what_cannot_be_reached_says_why() {
    let pair = pair!(1500);
    for nowhere in ["203.0.113.1", "2001:db8::1"] {
        assert!(matches!(way(&pair, None, ip(nowhere)), Err(RouteError::NoRoute { .. })), "{nowhere}");
    }
    let foreign = way(&pair, Some(VethPair::RIGHT_V4), VethPair::RIGHT_V4);
    assert!(matches!(foreign, Err(RouteError::ForeignSource { .. })));
    let interface = left(&pair);
    for nobody in ["10.77.0.99", "fd77::99"] {
        let short = Duration::from_millis(200);
        let answer = pair.left.inside(|| resolve(&interface, None, ip(nobody), short));
        assert!(matches!(answer, Err(RouteError::Unreachable { .. })), "{nobody}: {answer:?}");
        // The kernel gives up by itself after about three seconds.
        assert!(matches!(way(&pair, None, ip(nobody)), Err(RouteError::Unreachable { .. })), "{nobody}");
    }
}

#[test]
fn c73_a_neighbour_that_appears_late_is_found() {
    let pair = pair!(1500);
    pair.right.ip("address del 10.77.0.2/24 dev eth0").unwrap();
    let interface = left(&pair);
    let hop = std::thread::scope(|scope| {
        let asking =
            scope.spawn(|| pair.left.inside(|| resolve(&interface, None, VethPair::RIGHT_V4, PATIENCE)));
        while pair.left.ip_output("neighbour show 10.77.0.2 nud incomplete").unwrap().is_empty() {}
        pair.right.ip("address add 10.77.0.2/24 dev eth0").unwrap();
        asking.join().unwrap()
    });
    assert_eq!(hop.unwrap().mac, VethPair::RIGHT_MAC);
}

/// Changes until the expected one, within some seconds.
fn until(changes: &mut Changes, expected: Change) -> Vec<Change> {
    let mut seen = Vec::new();
    while seen.last() != Some(&expected) {
        match changes.poll() {
            Some(change) => seen.push(change),
            None => assert!(readable(changes), "{expected:?} never comes: {seen:?}"),
        }
    }
    seen
}

fn readable(changes: &Changes) -> bool {
    let mut poll = libc::pollfd { fd: changes.fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: the pointer is to one pollfd on the stack, and the count says one.
    unsafe { libc::poll(&mut poll, 1, 5000) > 0 }
}

#[test]
fn changes_are_told_in_order() {
    let pair = pair!(1500);
    let mut changes =
        pair.left.inside(|| Changes::watch(&Interface::find(VethPair::INTERFACE).unwrap())).unwrap();
    assert_eq!(changes.poll(), None);
    pair.left.ip("link set eth0 mtu 1400").unwrap();
    assert_eq!(until(&mut changes, Change::MtuChanged(1400)), [Change::MtuChanged(1400)]);
    pair.left.ip("address del 10.77.0.1/24 dev eth0").unwrap();
    let gone = Change::AddressRemoved(VethPair::LEFT_V4);
    assert_eq!(until(&mut changes, gone), [gone]);
    pair.right.ip("link set eth0 down").unwrap();
    assert_eq!(until(&mut changes, Change::LinkDown), [Change::LinkDown]);
    pair.right.ip("link set eth0 up").unwrap();
    assert_eq!(until(&mut changes, Change::LinkUp), [Change::LinkUp]);
    // Being a port of a bridge and leaving it is told with the messages of a removal.
    pair.left.ip("link add br0 type bridge").unwrap();
    pair.left.ip("link set eth0 master br0").unwrap();
    pair.left.ip("link set eth0 nomaster").unwrap();
    pair.left.ip("link set eth0 mtu 1500").unwrap();
    let seen = until(&mut changes, Change::MtuChanged(1500));
    assert!(!seen.contains(&Change::Removed), "{seen:?}");
    pair.left.ip("link delete eth0").unwrap();
    until(&mut changes, Change::Removed);
}

#[test]
#[cfg(feature = "af-xdp")]
fn a_probe_tells_what_xdp_offers_and_leaves_nothing_behind() {
    let pair = pair!(9000);
    for _ in 0..2 {
        let support = pair.left.inside(|| probe::xdp(VethPair::INTERFACE)).unwrap();
        assert!(
            support.native && support.generic && support.multi_buffer && !support.zero_copy,
            "{support:?}"
        );
        assert!(support.reasons.iter().any(|reason| reason.contains("veth")), "{support:?}");
    }
    assert!(matches!(pair.left.inside(|| probe::xdp("nosuch0")), Err(uroce_nic::OpenError::Host(_))));
}

#[test]
fn a_probe_tells_who_holds_the_port() {
    let pair = pair!(1500);
    assert_eq!(pair.left.inside(probe::port_4791_in_use).unwrap(), Vec::<IpAddr>::new());
    let held = [VethPair::LEFT_V4, VethPair::LEFT_V6];
    let _sockets =
        held.map(|address| pair.left.inside(|| std::net::UdpSocket::bind((address, 4791)).unwrap()));
    assert_eq!(pair.left.inside(probe::port_4791_in_use).unwrap(), held);
}
