//! `uroce devinfo`: the port of an interface as `ibv_devinfo` would show it. Nothing is opened for it, and so nothing is
//! disturbed; only `cable` is.

mod limits;

use std::fmt::Display;

use clap::Args;
use serde::Serialize;
use uroce::{Context, Drive, Gid, Limits, MacAddr, Mtu, PortState};
use uroce_nic::host::Interface;

use crate::device::{self, CABLE};
use crate::error::Result;
use crate::out;
use limits::Limit;

const AFTER_HELP: &str = "\
Examples:
  uroce devinfo eth0
  uroce devinfo eth0 -v                 with every limit";

/// `uroce devinfo`
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct DevinfoArgs {
    /// Interface, or `cable` for the in-memory cable
    iface: String,
    /// Print as JSON, with every limit
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
    phys_port_cnt: u8,
    port: u8,
    state: &'static str,
    max_mtu: usize,
    /// `None`: the link is too small for any.
    active_mtu: Option<usize>,
    link_mtu: u32,
    link_layer: &'static str,
    mac: String,
    gids: Vec<GidLine>,
    #[serde(serialize_with = "as_map")]
    limits: Vec<Limit>,
}

#[derive(Serialize)]
struct GidLine {
    index: usize,
    gid: String,
    kind: &'static str,
    /// No peer can reach the default GID while the interface does not have its address.
    address_present: bool,
}

/// Shows it; limits only to those who asked for more.
pub(crate) fn main(args: &DevinfoArgs, verbose: bool) -> Result<()> {
    let info = if args.iface == CABLE {
        Info::of_device(&device::cable_pair(Drive::Inline, Drive::Inline)?.0)
    } else {
        Info::of(&Interface::find(&args.iface)?)
    };
    if args.json { out::json(&info) } else { out::line(info.text(verbose)) }
}

impl Info {
    fn of(interface: &Interface) -> Self {
        let active = Mtu::for_link(interface.mtu);
        let up = interface.up && interface.carrier && active.is_some();
        Self {
            driver: interface.driver.clone().unwrap_or_else(|| "unknown".to_owned()),
            state: state(up),
            active_mtu: active.map(Mtu::bytes),
            link_mtu: interface.mtu,
            gids: gids(interface),
            // What commands open devices with.
            ..Self::new(interface.name.clone(), MacAddr(interface.mac), &Limits::default())
        }
    }

    fn of_device(ctx: &Context) -> Self {
        let (device, port) = (ctx.query_device(), ctx.query_port());
        let gids = port.gids.iter().map(|entry| GidLine {
            index: entry.index as usize,
            gid: entry.gid.to_string(),
            kind: "RoCE v2",
            address_present: true,
        });
        Self {
            driver: port.mode.to_string(),
            state: state(port.state == PortState::Active),
            active_mtu: Some(port.active_mtu.bytes()),
            link_mtu: port.link_mtu,
            gids: gids.collect(),
            ..Self::new(device.name, device.mac, &device.limits)
        }
    }

    fn new(name: String, mac: MacAddr, limits: &Limits) -> Self {
        Self {
            hca_id: name,
            transport: "InfiniBand (RoCEv2)",
            driver: String::new(),
            node_guid: guid(mac),
            phys_port_cnt: 1,
            port: 1,
            state: state(false),
            max_mtu: Mtu::B4096.bytes(),
            active_mtu: None,
            link_mtu: 0,
            link_layer: "Ethernet",
            mac: mac.to_string(),
            gids: Vec::new(),
            limits: limits::all(limits),
        }
    }

    fn text(&self, verbose: bool) -> String {
        let mut lines = vec![format!("hca_id: {}", self.hca_id)];
        lines.extend([
            field(4, "transport", &self.transport),
            field(4, "driver", &self.driver),
            field(4, "node_guid", &self.node_guid),
            field(4, "phys_port_cnt", &self.phys_port_cnt),
        ]);
        if verbose {
            lines.extend(self.limits.iter().map(|limit| field(4, limit.0, &limit_text(*limit))));
        }
        lines.push(format!("    port: {}", self.port));
        lines.extend([
            field(8, "state", &self.state),
            field(8, "max_mtu", &mtu_text(Some(self.max_mtu))),
            field(8, "active_mtu", &mtu_text(self.active_mtu)),
            field(8, "link_mtu", &self.link_mtu),
            field(8, "link_layer", &self.link_layer),
            field(8, "mac", &self.mac),
            field(8, "gid_tbl_len", &self.gids.len()),
        ]);
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

/// A name and its value, in columns.
fn field(indent: usize, name: &str, value: &dyn Display) -> String {
    let width = 32 - indent;
    format!("{:indent$}{:<width$}{value}", "", format!("{name}:"))
}

/// As `ibv_devinfo` prints it.
const fn state(up: bool) -> &'static str {
    if up { "PORT_ACTIVE (4)" } else { "PORT_DOWN (1)" }
}

/// Sizes in hexadecimal, as `ibv_devinfo` prints them.
fn limit_text((name, value): Limit) -> String {
    match name {
        "max_mr_size" | "max_msg_sz" => format!("{value:#x}"),
        _ => value.to_string(),
    }
}

fn as_map<S: serde::Serializer>(limits: &[Limit], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(limits.iter().copied())
}

/// As `ibv_devinfo` prints it: the size and its code.
fn mtu_text(bytes: Option<usize>) -> String {
    match bytes.and_then(Mtu::from_bytes) {
        Some(mtu) => format!("{} ({})", mtu.bytes(), mtu.code()),
        None => "none: the link MTU is below 336".to_owned(),
    }
}

/// EUI-64 of the MAC, in the groups that `ibv_devinfo` prints.
fn guid(mac: MacAddr) -> String {
    let gid = Gid::link_local(mac).bytes();
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
        let expected = "\
hca_id: eth0
    transport:                  InfiniBand (RoCEv2)
    driver:                     veth
    node_guid:                  5054:00ff:fe00:0001
    phys_port_cnt:              1
    port: 1
        state:                  PORT_ACTIVE (4)
        max_mtu:                4096 (5)
        active_mtu:             1024 (3)
        link_mtu:               1500
        link_layer:             Ethernet
        mac:                    52:54:00:00:00:01
        gid_tbl_len:            2
        GID[0]:                 fe80::5054:ff:fe00:1, RoCE v2 (the interface does not have this address)
        GID[1]:                 ::ffff:10.1.0.1, RoCE v2";
        assert_eq!(Info::of(&interface(1500)).text(false), expected);
    }

    #[test]
    fn limits_are_for_those_who_ask() {
        let info = Info::of(&interface(1500));
        for line in [
            "    max_mr_size:                0x800000000000",
            "    max_qp:                     4096",
            "    max_srq_sge:                32",
            "    max_total_mcast_qp_attach:  65536",
        ] {
            assert!(
                info.text(true).lines().any(|found| found == line),
                "{line} is not in\n{}",
                info.text(true)
            );
        }
        assert!(!info.text(false).contains("max_qp"));
        assert_eq!(serde_json::to_value(&info).unwrap()["limits"]["max_qp"], 4096);
    }

    #[test]
    fn a_link_that_is_too_small_is_down() {
        let info = Info::of(&interface(335));
        assert_eq!((info.state, info.active_mtu), ("PORT_DOWN (1)", None));
        assert!(info.text(false).contains("none: the link MTU is below 336"));
    }
}
