//! The GID table of an interface, as the kernel's RDMA core would fill it.

use std::net::{IpAddr, Ipv6Addr};

use super::Interface;

/// One entry of the GID table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gid {
    /// Place in the table, counted from 0.
    pub index: usize,
    /// The address as it stands in the IP header.
    pub address: IpAddr,
    /// The GID: an IPv6 address, or an IPv4 address as `::ffff:a.b.c.d`.
    pub gid: [u8; 16],
}

impl Interface {
    /// The GID table: first the default GID, a link-local address made from the MAC, then one for each address.
    ///
    /// The default GID is there even when the interface does not have that address; then no peer can reach it.
    pub fn gids(&self) -> Vec<Gid> {
        let default = IpAddr::V6(link_local(self.mac));
        let addresses = self.addresses.iter().map(|own| own.address).filter(|&address| address != default);
        std::iter::once(default)
            .chain(addresses)
            .enumerate()
            .map(|(index, address)| Gid { index, address, gid: gid_of(address) })
            .collect()
    }
}

/// The GID that stands for an address.
pub fn gid_of(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

/// `fe80::/64` with the modified EUI-64 of a MAC.
fn link_local(mac: [u8; 6]) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac;
    Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
}

#[cfg(test)]
mod tests {
    use super::super::Address;
    use super::*;

    fn interface(addresses: &[&str]) -> Interface {
        let address = |text: &&str| Address { address: text.parse().unwrap(), prefix: 24 };
        Interface {
            name: "eth0".into(),
            index: 2,
            mac: [0x52, 0x54, 0, 0, 0, 1],
            mtu: 1500,
            up: true,
            carrier: true,
            vlan: None,
            driver: None,
            rx_queues: 1,
            addresses: addresses.iter().map(address).collect(),
        }
    }

    fn texts(addresses: &[&str]) -> Vec<String> {
        interface(addresses).gids().iter().map(|gid| Ipv6Addr::from(gid.gid).to_string()).collect()
    }

    #[test]
    fn the_default_gid_comes_first_even_without_addresses() {
        assert_eq!(texts(&[]), ["fe80::5054:ff:fe00:1"]);
    }

    #[test]
    fn addresses_follow_in_order_and_the_default_is_not_repeated() {
        let table = texts(&["10.1.0.1", "2001:db8::1", "fe80::5054:ff:fe00:1", "fe80::2"]);
        assert_eq!(table, ["fe80::5054:ff:fe00:1", "::ffff:10.1.0.1", "2001:db8::1", "fe80::2"]);
    }

    #[test]
    fn an_entry_keeps_the_address_of_the_wire() {
        let table = interface(&["10.1.0.1"]).gids();
        assert_eq!(table[1].index, 1);
        assert_eq!(table[1].address, "10.1.0.1".parse::<IpAddr>().unwrap());
    }
}
