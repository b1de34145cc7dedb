//! The way to a peer: whose address is whose, as the kernel or the configuration knows it.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use uroce_nic::host::{self, Interface};
use uroce_stack::wire::{MacAddr, VlanTag};

use crate::config::Link;
use crate::device::{GidEntry, PortState};
use crate::driver::Watch;
use crate::error::{Error, RouteError};
use crate::gid::Gid;
use crate::os::Membership;

/// How long the kernel may take to find a neighbour: three of its requests, a second apart.
const PATIENCE: Duration = Duration::from_secs(3);

/// Who knows addresses.
#[derive(Debug)]
pub(crate) enum Way {
    /// The kernel: the interface as it was when the device was opened.
    Host(Interface),
    /// The configuration.
    Given(Link),
}

/// How a frame is addressed to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    pub(crate) mac: MacAddr,
    pub(crate) vlan: Option<VlanTag>,
}

/// What changes while a device is open.
#[derive(Clone, Debug)]
pub(crate) struct Now {
    pub(crate) state: PortState,
    pub(crate) mtu: u32,
    pub(crate) gids: Vec<GidEntry>,
}

impl Way {
    /// A name for messages.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Host(interface) => &interface.name,
            Self::Given(_) => "cable",
        }
    }

    pub(crate) fn mac(&self) -> MacAddr {
        match self {
            Self::Host(interface) => MacAddr(interface.mac),
            Self::Given(link) => link.mac,
        }
    }

    /// The state of the interface as it is now.
    pub(crate) fn now(&self) -> Now {
        match self {
            Self::Given(link) => {
                Now { state: PortState::Active, mtu: link.mtu, gids: table(self.mac(), &link.addresses) }
            }
            Self::Host(known) => match Interface::find(&known.name) {
                Ok(interface) if interface.index == known.index => now_of(&interface),
                _ => Now { state: PortState::Down, ..now_of(known) },
            },
        }
    }

    /// Tells what happens to the interface, if the kernel knows it.
    pub(crate) fn watch(&self) -> Result<Option<Watch>, Error> {
        match self {
            Self::Host(interface) => Ok(Some(Watch::new(interface)?)),
            Self::Given(_) => Ok(None),
        }
    }

    /// Finds the next hop from `source` to `destination`.
    pub(crate) fn find(&self, source: IpAddr, destination: IpAddr) -> Result<Hop, RouteError> {
        if source.is_ipv4() != destination.is_ipv4() {
            return Err(RouteError::Family { source_ip: source, destination });
        }
        match self {
            _ if destination.is_multicast() => Ok(Hop { mac: multicast_mac(destination), vlan: self.vlan() }),
            Self::Host(known) => ask(known, source, destination),
            Self::Given(link) => look_up(link, destination),
        }
    }

    /// The tag of frames that stay on the link.
    pub(crate) fn vlan(&self) -> Option<VlanTag> {
        match self {
            Self::Host(interface) => interface.vlan.as_ref().map(|vlan| tag(vlan.id)),
            Self::Given(_) => None,
        }
    }

    /// Has the kernel listen to a multicast group, if it knows the link.
    pub(crate) fn join(&self, group: IpAddr) -> io::Result<Option<Membership>> {
        match self {
            Self::Host(interface) => Membership::join(group, interface.index).map(Some),
            Self::Given(_) => Ok(None),
        }
    }
}

/// The MAC of a multicast group (RFC 1112 section 6.4, RFC 2464 section 7): it follows from the address.
fn multicast_mac(group: IpAddr) -> MacAddr {
    MacAddr(match group {
        IpAddr::V4(group) => {
            let [_, b, c, d] = group.octets();
            [0x01, 0, 0x5e, b & 0x7f, c, d]
        }
        IpAddr::V6(group) => {
            let [.., a, b, c, d] = group.octets();
            [0x33, 0x33, a, b, c, d]
        }
    })
}

fn tag(id: u16) -> VlanTag {
    VlanTag { id, ..VlanTag::default() }
}

fn now_of(interface: &Interface) -> Now {
    let state = if interface.up && interface.carrier { PortState::Active } else { PortState::Down };
    let entry = |entry: host::Gid| GidEntry { index: entry.index as u32, gid: Gid::from_bytes(entry.gid) };
    Now { state, mtu: interface.mtu, gids: interface.gids().into_iter().map(entry).collect() }
}

fn ask(known: &Interface, source: IpAddr, destination: IpAddr) -> Result<Hop, RouteError> {
    // The addresses may have changed since the device was opened.
    let current = Interface::find(&known.name).unwrap_or_else(|_| known.clone());
    let hop = host::resolve(&current, Some(source), destination, PATIENCE)?;
    Ok(Hop { mac: MacAddr(hop.mac), vlan: hop.vlan.map(tag) })
}

fn look_up(link: &Link, destination: IpAddr) -> Result<Hop, RouteError> {
    let own = link.addresses.contains(&destination).then_some(link.mac);
    let neighbour =
        || link.neighbours.iter().find(|(address, _)| *address == destination).map(|(_, mac)| *mac);
    let mac = own.or_else(neighbour).ok_or(RouteError::NoNeighbour { destination })?;
    Ok(Hop { mac, vlan: None })
}

fn table(mac: MacAddr, addresses: &[IpAddr]) -> Vec<GidEntry> {
    let default = Gid::link_local(mac);
    let others = addresses.iter().map(|address| Gid::from(*address)).filter(|gid| *gid != default);
    (0..).zip(std::iter::once(default).chain(others)).map(|(index, gid)| GidEntry { index, gid }).collect()
}

/// The address to use of `gids`, and its index.
pub(crate) fn choose(
    source: crate::config::Source,
    way: &Way,
    gids: &[GidEntry],
) -> Result<(u32, IpAddr), Error> {
    use crate::config::Source;
    let found = match source {
        Source::Preferred => preferred(gids),
        Source::Address(address) => gids.iter().find(|entry| entry.gid == Gid::from(address)),
        Source::GidIndex(index) => gids.iter().find(|entry| entry.index == index),
    };
    found.map(|entry| (entry.index, entry.gid.ip())).ok_or_else(|| Error::NoSuchAddress {
        interface: way.name().to_owned(),
        wanted: match source {
            Source::Preferred => "of any kind".to_owned(),
            Source::Address(address) => address.to_string(),
            Source::GidIndex(index) => format!("at GID index {index}"),
        },
        present: gids.iter().map(|entry| entry.gid.ip().to_string()).collect::<Vec<_>>().join(", "),
    })
}

/// The first IPv4 address, else the first global IPv6 address, else the first of the interface's own; the
/// link-local one that every port has comes last.
fn preferred(gids: &[GidEntry]) -> Option<&GidEntry> {
    let by = |wanted: fn(IpAddr) -> bool| gids.iter().find(move |entry| wanted(entry.gid.ip()));
    by(|address| address.is_ipv4())
        .or_else(|| by(|address| matches!(address, IpAddr::V6(v6) if !v6.is_unicast_link_local())))
        .or_else(|| gids.get(1))
        .or_else(|| gids.first())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Source;

    fn way(addresses: &[&str]) -> Way {
        let addresses = addresses.iter().map(|text| text.parse().expect("an address")).collect();
        let neighbours = vec![("10.0.0.2".parse().expect("an address"), MacAddr([2, 0, 0, 0, 0, 2]))];
        Way::Given(Link { mac: MacAddr([2, 0, 0, 0, 0, 1]), addresses, mtu: 1500, neighbours })
    }

    fn chosen(source: Source, addresses: &[&str]) -> Option<String> {
        let way = way(addresses);
        choose(source, &way, &way.now().gids).ok().map(|(_, address)| address.to_string())
    }

    #[test]
    fn ipv4_is_preferred_and_link_local_comes_last() {
        assert_eq!(
            chosen(Source::Preferred, &["fe80::9", "2001:db8::1", "10.0.0.1"]).as_deref(),
            Some("10.0.0.1")
        );
        assert_eq!(chosen(Source::Preferred, &["fe80::9", "2001:db8::1"]).as_deref(), Some("2001:db8::1"));
        assert_eq!(chosen(Source::Preferred, &["fe80::9"]).as_deref(), Some("fe80::9"));
        assert_eq!(chosen(Source::Preferred, &[]).as_deref(), Some("fe80::ff:fe00:1"));
    }

    #[test]
    fn an_address_that_is_not_there_is_refused_with_those_that_are() {
        let way = way(&["10.0.0.1"]);
        let wanted = Source::Address("10.0.0.9".parse().expect("an address"));
        let error = choose(wanted, &way, &way.now().gids).expect_err("no such address").to_string();
        assert!(error.contains("10.0.0.9") && error.contains("fe80::ff:fe00:1, 10.0.0.1"), "{error}");
        assert_eq!(chosen(Source::GidIndex(1), &["10.0.0.1"]).as_deref(), Some("10.0.0.1"));
        assert_eq!(chosen(Source::GidIndex(2), &["10.0.0.1"]), None);
    }

    #[test]
    fn the_mac_of_a_group_follows_from_its_address() {
        let mac = |group: &str| multicast_mac(group.parse().expect("an address")).0;
        assert_eq!(mac("239.255.1.2"), [0x01, 0x00, 0x5e, 0x7f, 1, 2]);
        assert_eq!(mac("ff0e::1:2:3"), [0x33, 0x33, 0, 2, 0, 3]);
        let hop =
            way(&["10.0.0.1"]).find("10.0.0.1".parse().expect("ours"), "224.0.0.1".parse().expect("a group"));
        assert_eq!(hop.expect("no neighbour is asked").mac.0, [0x01, 0x00, 0x5e, 0, 0, 1]);
    }

    #[test]
    fn neighbours_ourselves_and_strangers() {
        let way = way(&["10.0.0.1"]);
        let find = |to: &str| way.find("10.0.0.1".parse().expect("ours"), to.parse().expect("theirs"));
        assert_eq!(find("10.0.0.2").expect("a neighbour").mac, MacAddr([2, 0, 0, 0, 0, 2]));
        assert_eq!(find("10.0.0.1").expect("ourselves").mac, MacAddr([2, 0, 0, 0, 0, 1]));
        assert!(matches!(find("10.0.0.3"), Err(RouteError::NoNeighbour { .. })));
        assert!(matches!(find("fe80::1"), Err(RouteError::Family { .. })));
    }
}
