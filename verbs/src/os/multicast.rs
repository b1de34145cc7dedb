//! Having an interface listen to multicast groups.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::AsRawFd;

use super::checked;

/// An interface listens to a group as long as this lives.
#[derive(Debug)]
pub(crate) struct Membership {
    _socket: UdpSocket,
}

impl Membership {
    /// Joins `group` on the interface of this index.
    pub(crate) fn join(group: IpAddr, interface: u32) -> io::Result<Self> {
        let _socket = match group {
            IpAddr::V4(group) => join_v4(group, interface)?,
            IpAddr::V6(group) => join_v6(group, interface)?,
        };
        Ok(Self { _socket })
    }
}

/// The socket receives nothing: its port is one that nobody sends to.
fn join_v4(group: Ipv4Addr, interface: u32) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let request = libc::ip_mreqn {
        imr_multiaddr: libc::in_addr { s_addr: u32::from(group).to_be() },
        imr_address: libc::in_addr { s_addr: 0 },
        imr_ifindex: i32::try_from(interface).unwrap_or(i32::MAX),
    };
    set(&socket, libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP, &request)?;
    Ok(socket)
}

fn join_v6(group: Ipv6Addr, interface: u32) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?;
    socket.join_multicast_v6(&group, interface)?;
    Ok(socket)
}

fn set<T>(socket: &UdpSocket, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    let (pointer, length) = (std::ptr::from_ref(value).cast(), size_of::<T>() as libc::socklen_t);
    // SAFETY: the descriptor is open while `socket` is borrowed, and `pointer` leads to `length` readable bytes that live
    // across the call, which keeps nothing of them.
    checked(unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, pointer, length) })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The loopback interface, which every network namespace has.
    const LOOPBACK: u32 = 1;

    #[test]
    fn groups_are_joined_and_other_addresses_refused() {
        let join = |group: &str| Membership::join(group.parse().expect("an address"), LOOPBACK);
        assert!(join("239.1.2.3").is_ok());
        assert!(join("10.0.0.1").is_err());
    }
}
