//! `uroce devinfo`: the port of an interface as `ibv_devinfo -v` would show it. Nothing is opened for it.

use std::fmt::Display;

use clap::Args;
use serde::Serialize;
use uroce::{Gid, Limits, MacAddr, Mtu};
use uroce_nic::host::Interface;

use crate::error::Result;
use crate::out;

/// `uroce devinfo`
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  uroce devinfo eth0")]
pub(crate) struct DevinfoArgs {
    /// Interface
    iface: String,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Everything that is shown.
#[derive(Serialize)]
struct Info {
    hca_id: String,
    transport: &'static str,
    driver: String,
    node_guid: String,
    port: u8,
    state: &'static str,
    max_mtu: usize,
    /// `None`: the link is too small for any.
    active_mtu: Option<usize>,
    link_mtu: u32,
    link_layer: &'static str,
    mac: String,
    gids: Vec<GidLine>,
    limits: Vec<(&'static str, u64)>,
}

#[derive(Serialize)]
struct GidLine {
    index: usize,
    gid: String,
    kind: &'static str,
    /// No peer can reach the default GID while the interface does not have its address.
    address_present: bool,
}

/// Shows it.
pub(crate) fn main(args: &DevinfoArgs) -> Result<()> {
    let info = Info::of(&Interface::find(&args.iface)?);
    if args.json { out::json(&info) } else { out::line(info.text()) }
}

impl Info {
    fn of(interface: &Interface) -> Self {
        let active = Mtu::for_link(interface.mtu);
        let up = interface.up && interface.carrier && active.is_some();
        Self {
            hca_id: interface.name.clone(),
            transport: "InfiniBand (RoCEv2)",
            driver: interface.driver.clone().unwrap_or_else(|| "unknown".to_owned()),
            node_guid: guid(interface.mac),
            port: 1,
            state: if up { "PORT_ACTIVE (4)" } else { "PORT_DOWN (1)" },
            max_mtu: Mtu::B4096.bytes(),
            active_mtu: active.map(Mtu::bytes),
            link_mtu: interface.mtu,
            link_layer: "Ethernet",
            mac: MacAddr(interface.mac).to_string(),
            gids: gids(interface),
            limits: limits(&Limits::default()),
        }
    }

    fn text(&self) -> String {
        let mut lines = vec![format!("hca_id: {}", self.hca_id)];
        let field = |indent: usize, name: &str, value: &dyn Display| {
            let width = 28 - indent;
            format!("{:indent$}{:<width$}{value}", "", format!("{name}:"))
        };
        lines.push(field(4, "transport", &self.transport));
        lines.push(field(4, "driver", &self.driver));
        lines.push(field(4, "node_guid", &self.node_guid));
        lines.extend(self.limits.iter().map(|(name, value)| field(4, name, value)));
        lines.push(format!("    port: {}", self.port));
        lines.push(field(8, "state", &self.state));
        lines.push(field(8, "max_mtu", &mtu_text(Some(self.max_mtu))));
        lines.push(field(8, "active_mtu", &mtu_text(self.active_mtu)));
        lines.push(field(8, "link_mtu", &self.link_mtu));
        lines.push(field(8, "link_layer", &self.link_layer));
        lines.push(field(8, "mac", &self.mac));
        lines.extend(self.gids.iter().map(|gid| field(8, &format!("GID[{}]", gid.index), &gid.text())));
        lines.join("\n")
    }
}

impl GidLine {
    fn text(&self) -> String {
        let absent = if self.address_present { "" } else { " (the interface does not have this address)" };
        format!("{}, {}{absent}", self.gid, self.kind)
    }
}

fn gids(interface: &Interface) -> Vec<GidLine> {
    let line = |entry: uroce_nic::host::Gid| GidLine {
        index: entry.index,
        gid: Gid::from_bytes(entry.gid).to_string(),
        kind: "RoCE v2",
        address_present: interface.owns(entry.address),
    };
    interface.gids().into_iter().map(line).collect()
}

fn limits(limits: &Limits) -> Vec<(&'static str, u64)> {
    vec![
        ("max_qp", limits.max_qp.into()),
        ("max_qp_wr", limits.max_qp_wr.into()),
        ("max_sge", limits.max_sge.into()),
        ("max_inline_data", limits.max_inline_data.into()),
        ("max_cq", limits.max_cq.into()),
        ("max_cqe", limits.max_cqe.into()),
        ("max_mr", limits.max_mr.into()),
        ("max_pd", limits.max_pd.into()),
        ("max_msg_sz", limits.max_msg_sz.into()),
        ("max_qp_rd_atom", limits.max_qp_rd_atom.into()),
        ("max_qp_init_rd_atom", limits.max_qp_init_rd_atom.into()),
    ]
}

/// As `ibv_devinfo` prints it: the size and its code.
fn mtu_text(bytes: Option<usize>) -> String {
    match bytes.and_then(Mtu::from_bytes) {
        Some(mtu) => format!("{} ({})", mtu.bytes(), mtu.code()),
        None => "none: the link MTU is below 336".to_owned(),
    }
}

/// EUI-64 of the MAC, in the groups that `ibv_devinfo` prints.
fn guid(mac: [u8; 6]) -> String {
    let gid = Gid::link_local(MacAddr(mac)).bytes();
    let groups = gid[8..].chunks(2).map(|pair| format!("{:02x}{:02x}", pair[0], pair[1]));
    groups.collect::<Vec<_>>().join(":")
}

#[cfg(test)]
mod tests {
    use uroce_nic::host::Address;

    use super::*;

    fn interface(mtu: u32) -> Interface {
        let address = "10.1.0.1".parse().unwrap();
        Interface {
            name: "eth0".into(),
            index: 2,
            mac: [0x52, 0x54, 0, 0, 0, 1],
            mtu,
            up: true,
            carrier: true,
            vlan: None,
            driver: Some("veth".into()),
            rx_queues: 1,
            addresses: vec![Address { address, prefix: 24 }],
        }
    }

    #[test]
    fn a_port_reads_as_that_of_ibv_devinfo() {
        let text = Info::of(&interface(1500)).text();
        for line in [
            "hca_id: eth0",
            "    node_guid:              5054:00ff:fe00:0001",
            "        state:              PORT_ACTIVE (4)",
            "        active_mtu:         1024 (3)",
            "        GID[1]:             ::ffff:10.1.0.1, RoCE v2",
        ] {
            assert!(text.lines().any(|found| found == line), "{line:?} is not in\n{text}");
        }
    }

    #[test]
    fn a_link_that_is_too_small_is_down() {
        let info = Info::of(&interface(335));
        assert_eq!((info.state, info.active_mtu), ("PORT_DOWN (1)", None));
        assert!(info.text().contains("none: the link MTU is below 336"));
    }
}
