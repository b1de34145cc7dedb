//! The kernel's neighbour table: which MAC answers for an address on a link.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::netlink::Netlink;
use crate::sys;

/// Where datagrams go that exist only to make the kernel resolve a neighbour: RFC 863's discard service.
const DISCARD_PORT: u16 = 9;

/// The multicast group of neighbour changes, `RTNLGRP_NEIGH`.
const NEIGHBOUR_GROUP: u32 = 3;

/// How long to trust the notifications before looking into the table again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What the table says of an address.
enum Entry {
    Known([u8; 6]),
    /// The kernel is asking.
    Pending,
    /// The kernel asked in vain.
    Failed,
    Absent,
}

/// Finds the MAC of `neighbour` on the link `index`, making the kernel ask for it when it does not know.
///
/// `destination` is the address whose route leads over that neighbour: a datagram to it sets the kernel asking.
/// `None` when nobody answered within `timeout`.
pub(super) fn find(
    index: u32,
    interface: &str,
    neighbour: IpAddr,
    destination: IpAddr,
    timeout: Duration,
) -> io::Result<Option<[u8; 6]>> {
    let table = Netlink::open()?;
    if let Entry::Known(mac) = look_up(&table, index, neighbour)? {
        return Ok(Some(mac));
    }
    let events = Netlink::listen(&[NEIGHBOUR_GROUP])?;
    let timer = sys::timer(timeout)?;
    let mut asked = false;
    loop {
        match look_up(&table, index, neighbour)? {
            Entry::Known(mac) => return Ok(Some(mac)),
            Entry::Failed if asked => return Ok(None),
            Entry::Failed | Entry::Absent => {
                provoke(index, interface, destination)?;
                asked = true;
            }
            // Somebody's datagram already set the kernel asking: its verdict is as good as ours.
            Entry::Pending => asked = true,
        }
        if sys::wait_readable(&[timer.as_fd()], Duration::ZERO)? {
            return Ok(None);
        }
        sys::wait_readable(&[events.fd(), timer.as_fd()], LOOK_AGAIN)?;
        drain(&events);
    }
}

fn look_up(netlink: &Netlink, index: u32, neighbour: IpAddr) -> io::Result<Entry> {
    let mut question = NeighbourMessage::default();
    question.header.ifindex = index;
    question.header.family = family(neighbour);
    question.attributes.push(NeighbourAttribute::Destination(address(neighbour)));
    match netlink.get(RouteNetlinkMessage::GetNeighbour(question)) {
        Ok(RouteNetlinkMessage::NewNeighbour(answer)) => Ok(entry(&answer)),
        Ok(_) => Ok(Entry::Absent),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(Entry::Absent),
        Err(error) => Err(error),
    }
}

fn entry(message: &NeighbourMessage) -> Entry {
    use NeighbourState::{Delay, Failed, Incomplete, Noarp, Permanent, Probe, Reachable, Stale};
    match message.header.state {
        Permanent | Noarp | Reachable | Stale | Delay | Probe => {
            mac(message).map_or(Entry::Failed, Entry::Known)
        }
        Incomplete => Entry::Pending,
        Failed => Entry::Failed,
        _ => Entry::Absent,
    }
}

fn mac(message: &NeighbourMessage) -> Option<[u8; 6]> {
    message.attributes.iter().find_map(|attribute| match attribute {
        // A frame to the address of all zeroes reaches nobody.
        NeighbourAttribute::LinkLayerAddress(bytes) if bytes.iter().any(|&byte| byte != 0) => {
            bytes.as_slice().try_into().ok()
        }
        _ => None,
    })
}

/// Sends an ordinary datagram towards `destination` over the interface.
fn provoke(index: u32, interface: &str, destination: IpAddr) -> io::Result<()> {
    let (any, to) = match destination {
        IpAddr::V4(_) => (IpAddr::V4(Ipv4Addr::UNSPECIFIED), SocketAddr::new(destination, DISCARD_PORT)),
        IpAddr::V6(v6) => {
            let to = SocketAddrV6::new(v6, DISCARD_PORT, 0, index);
            (IpAddr::V6(Ipv6Addr::UNSPECIFIED), SocketAddr::V6(to))
        }
    };
    let socket = UdpSocket::bind((any, 0))?;
    bind_to_device(&socket, interface)?;
    match socket.send_to(&[], to) {
        // The verdict about the last attempt; the datagram was not sent, but the kernel asks again.
        Err(error) if error.kind() == io::ErrorKind::HostUnreachable => Ok(()),
        other => other.map(|_| ()),
    }
}

fn bind_to_device(socket: &UdpSocket, interface: &str) -> io::Result<()> {
    let mut name = [0_u8; libc::IFNAMSIZ];
    let Some(to) = name.get_mut(..interface.len()) else { return Err(io::ErrorKind::InvalidInput.into()) };
    to.copy_from_slice(interface.as_bytes());
    sys::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_BINDTODEVICE, &name)
}

/// Only the arrival of the notifications matters. An overrun loses some, and one is enough.
fn drain(events: &Netlink) {
    let mut seen = Vec::new();
    while events.read(&mut seen).is_ok() {
        seen.clear();
    }
}

pub(super) fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

fn address(address: IpAddr) -> NeighbourAddress {
    match address {
        IpAddr::V4(v4) => NeighbourAddress::Inet(v4),
        IpAddr::V6(v6) => NeighbourAddress::Inet6(v6),
    }
}
