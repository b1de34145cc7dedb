//! The way to a destination: source address, next hop, limits.

use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteMessage, RouteMetric, RouteType, RouteVia,
};

use super::netlink::Netlink;
use super::{Interface, neighbour};

/// Hop limit where the route does not name one, as the kernel's default.
const DEFAULT_HOP_LIMIT: u8 = 64;

/// All that is needed to address a frame to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// Source address to use.
    pub source: IpAddr,
    /// MAC of the destination or of the gateway towards it; the interface's own when `local`. Never zero.
    pub mac: [u8; 6],
    /// Hop limit or TTL to use.
    pub hop_limit: u8,
    /// Largest IP packet in bytes towards the destination, as far as is known.
    pub mtu: u32,
    /// VLAN identifier to tag frames with, when the interface is a VLAN interface.
    pub vlan: Option<u16>,
    /// The destination is an address of the interface itself.
    pub local: bool,
}

/// Why there is no way to a destination.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// The routing table has no entry for it on this interface.
    #[error(
        "there is no route to {destination} over {interface}; `ip route get {destination} oif {interface}` shows what the kernel would do"
    )]
    NoRoute {
        /// Where to.
        destination: IpAddr,
        /// Over which interface.
        interface: String,
    },
    /// Nobody answered for the address of the next hop.
    #[error(
        "nobody answers for {neighbour} on {interface}, so {destination} cannot be reached; check that the peer is up and on the same network"
    )]
    Unreachable {
        /// Where to.
        destination: IpAddr,
        /// The destination or the gateway towards it.
        neighbour: IpAddr,
        /// Over which interface.
        interface: String,
    },
    /// The wanted source address is not one of the interface's.
    #[error("{source_address} is not an address of {interface}; `ip address show {interface}` lists those")]
    ForeignSource {
        /// The wanted source.
        source_address: IpAddr,
        /// The interface it should be of.
        interface: String,
    },
    /// The interface has no address of the destination's family.
    #[error("{interface} has no address to reach {destination} from; give it one with `ip address add`")]
    NoSource {
        /// Where to.
        destination: IpAddr,
        /// The interface without an address.
        interface: String,
    },
    /// The kernel did not answer as it should.
    #[error("the kernel did not tell the way to {destination}: {source}")]
    Kernel {
        /// Where to.
        destination: IpAddr,
        /// What it said instead.
        source: io::Error,
    },
}

/// Finds the way to `destination` over `interface`, from `source` or from the address that the kernel prefers.
///
/// When the MAC of the next hop is unknown, the kernel is made to ask for it, and this waits up to `timeout` for
/// the answer. A link-local destination is looked for on the link of the interface.
///
/// # Errors
/// There is no route, no usable source address or no answer from the next hop; see [`RouteError`].
pub fn resolve(
    interface: &Interface,
    source: Option<IpAddr>,
    destination: IpAddr,
    timeout: Duration,
) -> Result<NextHop, RouteError> {
    if let Some(source_address) = source
        && !interface.owns(source_address)
    {
        return Err(RouteError::ForeignSource { source_address, interface: interface.name.clone() });
    }
    if interface.owns(destination) {
        return Ok(to_itself(interface, source.unwrap_or(destination)));
    }
    if let Some(mac) = multicast_mac(destination) {
        let source = source.or_else(|| own_address(interface, destination));
        return next_hop(interface, destination, source, mac, &Route::default());
    }
    let route = look_up(interface, source, destination)?;
    let neighbour = route.gateway.unwrap_or(destination);
    let mac = neighbour::find(interface.index, &interface.name, neighbour, destination, timeout)
        .map_err(|source| RouteError::Kernel { destination, source })?
        .ok_or_else(|| RouteError::Unreachable {
            destination,
            neighbour,
            interface: interface.name.clone(),
        })?;
    let source = source.or(route.source).or_else(|| own_address(interface, destination));
    next_hop(interface, destination, source, mac, &route)
}

/// What of the kernel's answer matters.
#[derive(Default)]
struct Route {
    gateway: Option<IpAddr>,
    source: Option<IpAddr>,
    mtu: Option<u32>,
    hop_limit: Option<u8>,
}

fn to_itself(interface: &Interface, source: IpAddr) -> NextHop {
    NextHop {
        source,
        mac: interface.mac,
        hop_limit: DEFAULT_HOP_LIMIT,
        mtu: interface.mtu,
        vlan: interface.vlan.as_ref().map(|vlan| vlan.id),
        local: true,
    }
}

fn next_hop(
    interface: &Interface,
    destination: IpAddr,
    source: Option<IpAddr>,
    mac: [u8; 6],
    route: &Route,
) -> Result<NextHop, RouteError> {
    let source =
        source.ok_or_else(|| RouteError::NoSource { destination, interface: interface.name.clone() })?;
    Ok(NextHop {
        source,
        mac,
        hop_limit: route.hop_limit.unwrap_or(DEFAULT_HOP_LIMIT),
        mtu: route.mtu.map_or(interface.mtu, |mtu| mtu.min(interface.mtu)),
        vlan: interface.vlan.as_ref().map(|vlan| vlan.id),
        local: false,
    })
}

fn look_up(interface: &Interface, source: Option<IpAddr>, destination: IpAddr) -> Result<Route, RouteError> {
    let no_route = || RouteError::NoRoute { destination, interface: interface.name.clone() };
    let failed = |error: io::Error| match error.raw_os_error() {
        Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::EACCES | libc::EINVAL | libc::ESRCH) => {
            no_route()
        }
        _ => RouteError::Kernel { destination, source: error },
    };
    let netlink = Netlink::open().map_err(failed)?;
    let answer = ask(&netlink, interface, source, destination, RouteFlags::empty()).map_err(failed)?;
    if answer.header.kind != RouteType::Unicast {
        return Err(no_route());
    }
    let route = read(&answer, destination);
    if route.gateway.is_none() && destination.is_ipv4() {
        // With the interface given, the kernel takes an IPv4 destination that no route covers for a neighbour.
        // Only the routing table itself tells; kernels before 4.13 do not, and then the neighbour decides.
        let matched = ask(&netlink, interface, source, destination, RouteFlags::FibMatch);
        if matched.is_err_and(|error| error.raw_os_error() == Some(libc::EHOSTUNREACH)) {
            return Err(no_route());
        }
    }
    Ok(route)
}

fn ask(
    netlink: &Netlink,
    interface: &Interface,
    source: Option<IpAddr>,
    destination: IpAddr,
    flags: RouteFlags,
) -> io::Result<RouteMessage> {
    let mut question = RouteMessage::default();
    let bits = if destination.is_ipv4() { 32 } else { 128 };
    question.header.address_family = neighbour::family(destination);
    question.header.destination_prefix_length = bits;
    question.header.flags = flags;
    question.attributes.push(RouteAttribute::Destination(destination.into()));
    question.attributes.push(RouteAttribute::Oif(interface.index));
    if let Some(source) = source.filter(|source| source.is_ipv4() == destination.is_ipv4()) {
        question.header.source_prefix_length = bits;
        question.attributes.push(RouteAttribute::Source(source.into()));
    }
    match netlink.get(RouteNetlinkMessage::GetRoute(question))? {
        RouteNetlinkMessage::NewRoute(route) => Ok(route),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn read(answer: &RouteMessage, destination: IpAddr) -> Route {
    let mut route = Route::default();
    for attribute in &answer.attributes {
        match attribute {
            RouteAttribute::Gateway(gateway) => route.gateway = ip(gateway),
            RouteAttribute::Via(RouteVia::Inet(v4)) => route.gateway = Some(IpAddr::V4(*v4)),
            RouteAttribute::Via(RouteVia::Inet6(v6)) => route.gateway = Some(IpAddr::V6(*v6)),
            RouteAttribute::PrefSource(source) => route.source = ip(source),
            RouteAttribute::Metrics(metrics) => read_metrics(metrics, &mut route),
            _ => {}
        }
    }
    // The kernel names the destination itself as gateway of some on-link IPv6 routes.
    route.gateway = route.gateway.filter(|&gateway| gateway != destination);
    route
}

fn read_metrics(metrics: &[RouteMetric], route: &mut Route) {
    for metric in metrics {
        match *metric {
            RouteMetric::Mtu(mtu) if mtu > 0 => route.mtu = Some(mtu),
            RouteMetric::Hoplimit(limit @ 1..=255) => route.hop_limit = Some(limit as u8),
            _ => {}
        }
    }
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(v4) => Some(IpAddr::V4(*v4)),
        RouteAddress::Inet6(v6) => Some(IpAddr::V6(*v6)),
        _ => None,
    }
}

/// An address of the interface that fits the destination: link-local for link-local, else the first other one.
fn own_address(interface: &Interface, destination: IpAddr) -> Option<IpAddr> {
    interface.addresses.iter().map(|own| own.address).find(|own| match (own, destination) {
        (IpAddr::V4(_), IpAddr::V4(_)) => true,
        (IpAddr::V6(own), IpAddr::V6(to)) => own.is_unicast_link_local() == is_link_scope(to),
        _ => false,
    })
}

fn is_link_scope(address: Ipv6Addr) -> bool {
    address.is_unicast_link_local() || (address.is_multicast() && address.octets()[1] & 0x0f == 2)
}

/// The MAC of a multicast group (RFC 1112 and RFC 2464); `None` for a unicast address.
fn multicast_mac(address: IpAddr) -> Option<[u8; 6]> {
    if !address.is_multicast() {
        return None;
    }
    Some(match address {
        IpAddr::V4(v4) => {
            let [_, b, c, d] = v4.octets();
            [0x01, 0x00, 0x5e, b & 0x7f, c, d]
        }
        IpAddr::V6(v6) => {
            let [.., a, b, c, d] = v6.octets();
            [0x33, 0x33, a, b, c, d]
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multicast_groups_map_to_their_macs() {
        let mac = |text: &str| multicast_mac(text.parse().unwrap());
        assert_eq!(mac("239.129.2.3"), Some([0x01, 0x00, 0x5e, 0x01, 2, 3]));
        assert_eq!(mac("ff02::1:ff00:1"), Some([0x33, 0x33, 0xff, 0, 0, 1]));
        assert_eq!(mac("10.0.0.1"), None);
        assert_eq!(mac("fe80::1"), None);
    }

    #[test]
    fn errors_say_what_to_do_next() {
        let error =
            RouteError::NoRoute { destination: "10.0.0.1".parse().unwrap(), interface: "eth0".into() };
        assert!(error.to_string().contains("ip route get 10.0.0.1 oif eth0"));
    }
}
