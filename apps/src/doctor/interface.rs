//! What concerns one interface.

use uroce::{Gid, Mtu};
use uroce_nic::host::Interface;
use uroce_nic::probe;

use super::finding::Finding;
use super::xdp;

/// What path MTU 4096 takes.
const BEST_LINK_MTU: u32 = 4096 + 80;

/// All of it.
pub(super) fn examine(interface: &Interface) -> Vec<Finding> {
    let mut findings = vec![link(interface), mtu(interface), queues(interface), addresses(interface)];
    findings.extend(xdp::examine(interface));
    findings.extend(bulk(interface, probe::segmentation_offload()));
    findings.into_iter().map(|finding| finding.about(&interface.name)).collect()
}

fn link(interface: &Interface) -> Finding {
    let Interface { name, up, carrier, .. } = interface;
    let driver = interface.driver.as_deref().unwrap_or("unknown");
    match (up, carrier) {
        (false, _) => Finding::fails("link", "down", format!("`ip link set {name} up`")),
        (true, false) => {
            Finding::fails("link", "up, but no carrier", "plug the cable in, and bring the other end up")
        }
        (true, true) => Finding::fine("link", format!("up, driver {driver}")),
    }
}

fn mtu(interface: &Interface) -> Finding {
    let Interface { name, mtu, .. } = interface;
    let remedy = format!("`ip link set {name} mtu {BEST_LINK_MTU}` at both ends");
    match Mtu::for_link(*mtu) {
        None => Finding::fails(
            "MTU",
            format!("link MTU {mtu} carries no path MTU, the smallest takes 336"),
            remedy,
        ),
        Some(Mtu::B4096) => {
            Finding::fine("MTU", format!("link MTU {mtu} carries path MTU 4096, the largest there is"))
        }
        Some(path) => Finding::limit(
            "MTU",
            format!("link MTU {mtu} carries path MTU {}", path.bytes()),
            remedy + " for 4096",
        ),
    }
}

fn queues(interface: &Interface) -> Finding {
    let Interface { name, rx_queues, .. } = interface;
    if *rx_queues == 1 {
        return Finding::fine("queues", "one receive queue, which all packets come to");
    }
    Finding::limit(
        "queues",
        format!(
            "{rx_queues} receive queues; only the packets that come to the one opened (0, or `--queue`) are seen"
        ),
        format!(
            "`ethtool -L {name} combined 1`, or `ethtool -N {name} flow-type udp4 dst-port 4791 action 0`"
        ),
    )
}

/// Which way carries most, where that is not the one that is taken unless told otherwise.
fn bulk(interface: &Interface, offload: bool) -> Option<Finding> {
    let found = "over veth, `--backend packet` at both ends carries bulk faster than AF_XDP, as frames cross up to \
                 64 KiB at once; AF_XDP answers sooner";
    (offload && interface.driver.as_deref() == Some("veth")).then(|| Finding::fine("bulk", found))
}

fn addresses(interface: &Interface) -> Finding {
    let name = &interface.name;
    let present = interface.gids().into_iter().filter(|entry| interface.owns(entry.address));
    let gids: Vec<String> =
        present.map(|entry| format!("GID {} {}", entry.index, Gid::from_bytes(entry.gid))).collect();
    if gids.is_empty() {
        let remedy = format!("`ip address add ADDRESS/PREFIX dev {name}`");
        return Finding::fails("addresses", "none, so no peer can reach it", remedy);
    }
    Finding::fine("addresses", gids.join(", "))
}

#[cfg(test)]
mod tests {
    use uroce_nic::host::Address;

    use super::super::finding::Verdict;
    use super::*;

    fn interface() -> Interface {
        Interface {
            name: "eth0".into(),
            index: 2,
            mac: [0x52, 0x54, 0, 0, 0, 1],
            mtu: 1500,
            up: true,
            carrier: true,
            vlan: None,
            driver: Some("veth".into()),
            rx_queues: 1,
            addresses: vec![Address { address: "10.1.0.1".parse().unwrap(), prefix: 24 }],
        }
    }

    #[test]
    fn a_common_interface_is_limited_by_its_mtu() {
        let eth0 = interface();
        assert_eq!(link(&eth0).verdict, Verdict::Fine);
        assert_eq!(queues(&eth0).verdict, Verdict::Fine);
        assert_eq!(addresses(&eth0).found, "GID 1 ::ffff:10.1.0.1");
        let finding = mtu(&eth0);
        assert_eq!(
            (finding.verdict, finding.found.as_str()),
            (Verdict::Limit, "link MTU 1500 carries path MTU 1024")
        );
        assert_eq!(mtu(&Interface { mtu: 4176, ..eth0 }).verdict, Verdict::Fine);
    }

    #[test]
    fn the_faster_way_for_bulk_is_told_where_there_is_one() {
        let veth = interface();
        assert!(bulk(&veth, true).unwrap().found.contains("--backend packet"));
        assert_eq!(bulk(&veth, false), None);
        assert_eq!(bulk(&Interface { driver: Some("mlx5_core".into()), ..veth }, true), None);
    }

    #[test]
    fn what_is_wrong_comes_with_a_remedy() {
        let eth0 = Interface { up: false, mtu: 300, rx_queues: 4, addresses: Vec::new(), ..interface() };
        assert!(link(&eth0).remedy.unwrap().contains("ip link set eth0 up"));
        assert_eq!(mtu(&eth0).verdict, Verdict::Fails);
        assert_eq!(queues(&eth0).verdict, Verdict::Limit);
        assert_eq!(addresses(&eth0).verdict, Verdict::Fails);
    }
}
