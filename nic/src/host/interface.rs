//! Network interfaces and their addresses.

use std::net::IpAddr;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoVlan, LinkAttribute, LinkFlags, LinkInfo, LinkLayerType, LinkMessage,
};

use super::netlink::Netlink;
use super::{HostError, ethtool};

/// An Ethernet interface as it was when asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its index, unique within the network namespace.
    pub index: u32,
    /// Its Ethernet address.
    pub mac: [u8; 6],
    /// Largest IP packet in bytes.
    pub mtu: u32,
    /// Whether it is administratively up.
    pub up: bool,
    /// Whether it has a carrier: a frame sent now would go somewhere.
    pub carrier: bool,
    /// For a VLAN interface, which VLAN of which interface.
    pub vlan: Option<Vlan>,
    /// The name of its driver, if the kernel tells.
    pub driver: Option<String>,
    /// How many receive queues it uses.
    pub rx_queues: u32,
    /// Its addresses in the kernel's order, without those that proved to be taken by another host.
    pub addresses: Vec<Address>,
}

/// An address with the length of its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The address.
    pub address: IpAddr,
    /// Length of the network prefix in bits.
    pub prefix: u8,
}

/// What makes an interface a VLAN interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vlan {
    /// VLAN identifier, 1 to 4094.
    pub id: u16,
    /// Index of the interface that carries the tagged frames.
    pub parent: u32,
    /// Its name: the one to open a queue on.
    pub parent_name: String,
}

impl Interface {
    /// The interface of this name.
    ///
    /// # Errors
    /// There is none, it is not Ethernet, or the kernel does not answer.
    pub fn find(name: &str) -> Result<Self, HostError> {
        Self::matching(|link| name_of(link) == Some(name))?
            .ok_or_else(|| HostError::NoSuchInterface(name.to_owned()))
    }

    /// The interface that has this address.
    ///
    /// # Errors
    /// There is none, it is not Ethernet, or the kernel does not answer.
    pub fn with_address(address: IpAddr) -> Result<Self, HostError> {
        let netlink = Netlink::open().map_err(HostError::kernel("a netlink socket"))?;
        let index = list_addresses(&netlink)?
            .iter()
            .find(|message| address_of(message) == Some(address))
            .map(|message| message.header.index)
            .ok_or(HostError::NoSuchAddress(address))?;
        Self::matching(|link| link.header.index == index)?.ok_or(HostError::NoSuchAddress(address))
    }

    /// Whether `address` is one of its own.
    pub fn owns(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|own| own.address == address)
    }

    fn matching(wanted: impl Fn(&LinkMessage) -> bool) -> Result<Option<Self>, HostError> {
        let netlink = Netlink::open().map_err(HostError::kernel("a netlink socket"))?;
        let links = list_links(&netlink)?;
        let Some(link) = links.iter().find(|link| wanted(link)) else { return Ok(None) };
        let mut interface = from_link(link, &links)?;
        interface.addresses = list_addresses(&netlink)?
            .iter()
            .filter(|message| message.header.index == interface.index)
            .filter_map(|message| {
                Some(Address { address: address_of(message)?, prefix: message.header.prefix_len })
            })
            .collect();
        Ok(Some(interface))
    }
}

fn list_links(netlink: &Netlink) -> Result<Vec<LinkMessage>, HostError> {
    let all = netlink.list(RouteNetlinkMessage::GetLink(LinkMessage::default()));
    let all = all.map_err(HostError::kernel("its interfaces"))?;
    Ok(all
        .into_iter()
        .filter_map(|message| match message {
            RouteNetlinkMessage::NewLink(link) => Some(link),
            _ => None,
        })
        .collect())
}

fn list_addresses(netlink: &Netlink) -> Result<Vec<AddressMessage>, HostError> {
    let all = netlink.list(RouteNetlinkMessage::GetAddress(AddressMessage::default()));
    let all = all.map_err(HostError::kernel("its addresses"))?;
    Ok(all
        .into_iter()
        .filter_map(|message| match message {
            RouteNetlinkMessage::NewAddress(address) => Some(address),
            _ => None,
        })
        .collect())
}

fn from_link(link: &LinkMessage, links: &[LinkMessage]) -> Result<Interface, HostError> {
    let name = name_of(link).unwrap_or_default().to_owned();
    if link.header.link_layer_type != LinkLayerType::Ether {
        return Err(HostError::NotEthernet(name));
    }
    let mac = mac_of(link).ok_or_else(|| HostError::NotEthernet(name.clone()))?;
    Ok(Interface {
        index: link.header.index,
        mac,
        mtu: mtu_of(link).unwrap_or_default(),
        up: link.header.flags.contains(LinkFlags::Up),
        carrier: link.header.flags.contains(LinkFlags::LowerUp),
        vlan: vlan_of(link, links),
        driver: ethtool::driver(&name),
        rx_queues: ethtool::rx_queues(&name).or_else(|| rx_queues_of(link)).unwrap_or(1),
        addresses: Vec::new(),
        name,
    })
}

pub(super) fn name_of(link: &LinkMessage) -> Option<&str> {
    link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(name.as_str()),
        _ => None,
    })
}

pub(super) fn mtu_of(link: &LinkMessage) -> Option<u32> {
    link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::Mtu(mtu) => Some(*mtu),
        _ => None,
    })
}

fn mac_of(link: &LinkMessage) -> Option<[u8; 6]> {
    link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::Address(bytes) => bytes.as_slice().try_into().ok(),
        _ => None,
    })
}

fn rx_queues_of(link: &LinkMessage) -> Option<u32> {
    link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::NumRxQueues(queues) => Some(*queues),
        _ => None,
    })
}

fn vlan_of(link: &LinkMessage, links: &[LinkMessage]) -> Option<Vlan> {
    let id = link.attributes.iter().find_map(vlan_id)?;
    let parent = link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::Link(parent) => Some(*parent),
        _ => None,
    })?;
    let parent_link = links.iter().find(|link| link.header.index == parent)?;
    Some(Vlan { id, parent, parent_name: name_of(parent_link)?.to_owned() })
}

fn vlan_id(attribute: &LinkAttribute) -> Option<u16> {
    let LinkAttribute::LinkInfo(infos) = attribute else { return None };
    let data = infos.iter().find_map(|info| match info {
        LinkInfo::Data(InfoData::Vlan(data)) => Some(data),
        _ => None,
    })?;
    data.iter().find_map(|info| match info {
        InfoVlan::Id(id) => Some(*id),
        _ => None,
    })
}

/// The address of a message; `None` when another host was found to have it.
pub(super) fn address_of(message: &AddressMessage) -> Option<IpAddr> {
    let (mut own, mut peer) = (None, None);
    for attribute in &message.attributes {
        match attribute {
            AddressAttribute::Flags(flags) if flags.contains(AddressFlags::Dadfailed) => return None,
            AddressAttribute::Local(address) => own = Some(*address),
            // On a point-to-point address this is the peer's, and `Local` is ours.
            AddressAttribute::Address(address) => peer = Some(*address),
            _ => {}
        }
    }
    own.or(peer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, name: &str, more: Vec<LinkAttribute>) -> LinkMessage {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.header.link_layer_type = LinkLayerType::Ether;
        link.attributes.push(LinkAttribute::IfName(name.into()));
        link.attributes.push(LinkAttribute::Address(vec![2, 0, 0, 0, 0, index as u8]));
        link.attributes.extend(more);
        link
    }

    #[test]
    fn a_vlan_interface_names_its_parent() {
        let data = LinkInfo::Data(InfoData::Vlan(vec![InfoVlan::Id(42)]));
        let parent = link(3, "nosuch1", vec![]);
        let vlan = link(7, "nosuch1.42", vec![LinkAttribute::Link(3), LinkAttribute::LinkInfo(vec![data])]);
        let found = from_link(&vlan, &[parent.clone(), vlan.clone()]).unwrap();
        assert_eq!(found.vlan, Some(Vlan { id: 42, parent: 3, parent_name: "nosuch1".into() }));
        assert_eq!(from_link(&parent, std::slice::from_ref(&parent)).unwrap().vlan, None);
    }

    #[test]
    fn an_address_that_another_host_has_is_left_out() {
        let mut message = AddressMessage::default();
        message.attributes.push(AddressAttribute::Address("fd00::1".parse().unwrap()));
        assert!(address_of(&message).is_some());
        message.attributes.push(AddressAttribute::Flags(AddressFlags::Dadfailed));
        assert_eq!(address_of(&message), None);
    }

    #[test]
    fn a_point_to_point_address_is_the_own_one() {
        let mut message = AddressMessage::default();
        message.attributes.push(AddressAttribute::Address("10.0.0.2".parse().unwrap()));
        message.attributes.push(AddressAttribute::Local("10.0.0.1".parse().unwrap()));
        assert_eq!(address_of(&message), Some("10.0.0.1".parse().unwrap()));
    }
}
