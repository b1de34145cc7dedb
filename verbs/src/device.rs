//! What a device tells about itself.

use std::time::Duration;

use uroce_nic::{Mode, NicStats};
use uroce_stack::Limits;
use uroce_stack::wire::{MacAddr, Mtu};

use crate::gid::Gid;

/// What a device is and how much it holds (`ibv_device_attr`).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeviceAttr {
    /// The interface's name.
    pub name: String,
    /// Its Ethernet address.
    pub mac: MacAddr,
    /// Its address as EUI-64: unique in the world if that is.
    pub node_guid: u64,
    /// How many objects it holds and how large they may be. What is shown here is what the create calls
    /// accept.
    pub limits: Limits,
    /// Ports, 1.
    pub phys_port_cnt: u8,
}

/// Whether frames pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PortState {
    /// The interface is down, has no carrier, or is gone.
    Down,
    /// Frames come and go.
    Active,
}

/// The state of a port (`ibv_port_attr`).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PortAttr {
    /// Whether frames pass.
    pub state: PortState,
    /// The path MTU that queue pairs may use.
    pub active_mtu: Mtu,
    /// The largest path MTU that RoCE has.
    pub max_mtu: Mtu,
    /// The interface's own MTU in bytes.
    pub link_mtu: u32,
    /// The GID table. The first entry is the link-local one that every port has; one for each address
    /// follows.
    pub gids: Vec<GidEntry>,
    /// Index of the entry that is used unless a queue pair says otherwise.
    pub gid_index: u32,
    /// How frames come and go.
    pub mode: Mode,
    /// Frames that came and went, and those that were lost where.
    pub stats: NicStats,
}

/// An entry of the GID table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GidEntry {
    /// Its place, counted from 0.
    pub index: u32,
    /// The address.
    pub gid: Gid,
}

/// What a call of [`Context::progress`](crate::Context::progress) did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Frames received and sent. While it is not 0, call again soon.
    pub frames: usize,
    /// When the next call is due at the latest, if nothing arrives; `None`: not before something arrives or
    /// is posted.
    pub next_deadline: Option<Duration>,
}

/// The EUI-64 of an Ethernet address.
pub(crate) const fn eui_64(mac: MacAddr) -> u64 {
    let [a, b, c, d, e, f] = mac.0;
    u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f])
}
