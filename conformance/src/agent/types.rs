//! What goes over the wire. Numbers are the values of the verbs enumerations.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use serde::{Deserialize, Serialize};

/// Names one object of this connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Handle(pub u32);

/// Reply that only carries a handle.
#[derive(Debug, Deserialize)]
pub(super) struct Created {
    pub(super) handle: Handle,
}

/// Reply that carries nothing.
#[derive(Debug, Deserialize)]
pub(super) struct Done {}

/// Reply that carries bytes as hexadecimal text.
#[derive(Debug, Deserialize)]
pub(super) struct Data {
    pub(super) data: String,
}

/// Who answers.
#[derive(Clone, Debug, Deserialize)]
pub struct Hello {
    /// Version of the protocol.
    pub version: u32,
    /// Release of the guest's kernel.
    pub kernel: String,
    /// Version of the guest's rdma-core.
    pub rdma_core: String,
}

/// The device and its network.
#[derive(Clone, Debug, Deserialize)]
pub struct Device {
    /// Name of the verbs device.
    pub name: String,
    /// Limits of the device, as in `ibv_device_attr`.
    pub attributes: BTreeMap<String, i128>,
    /// The port, as in `ibv_port_attr`.
    pub port: BTreeMap<String, i64>,
    /// Used entries of the GID table.
    pub gids: Vec<Gid>,
    /// Network interface below the device.
    pub netdev: String,
    /// Its MAC address.
    pub mac: String,
    /// Its MTU in bytes.
    pub mtu: u32,
}

/// One entry of the GID table.
#[derive(Clone, Debug, Deserialize)]
pub struct Gid {
    /// Index in the table.
    pub index: u8,
    /// The GID; an IPv4 address is IPv4-mapped.
    pub gid: Ipv6Addr,
    /// `RoCE v2` or `IB/RoCE v1`.
    #[serde(rename = "type")]
    pub kind: String,
}

/// A registered memory region.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Region {
    /// Its handle.
    pub handle: Handle,
    /// Address of its first byte.
    pub addr: u64,
    /// Length in bytes.
    pub length: u64,
    /// Key for local use.
    pub lkey: u32,
    /// Key for peers.
    pub rkey: u32,
}

impl Region {
    /// A part of the region, for a work request.
    pub fn sge(&self, offset: u64, length: u32) -> Sge {
        Sge { addr: self.addr + offset, length, lkey: self.lkey }
    }
}

/// A memory window.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Window {
    /// Its handle.
    pub handle: Handle,
    /// Its key before it is bound.
    pub rkey: u32,
}

/// A queue pair.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct QueuePair {
    /// Its handle.
    pub handle: Handle,
    /// Its number on the wire.
    pub qp_num: u32,
}

/// Sizes of a queue pair.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Capacity {
    /// Work requests the send queue holds.
    pub max_send_wr: u32,
    /// Work requests the receive queue holds.
    pub max_recv_wr: u32,
    /// Scatter elements of a send request.
    pub max_send_sge: u32,
    /// Scatter elements of a receive request.
    pub max_recv_sge: u32,
    /// Bytes that can be posted inline.
    pub max_inline_data: u32,
}

impl Default for Capacity {
    fn default() -> Self {
        Self { max_send_wr: 64, max_recv_wr: 64, max_send_sge: 4, max_recv_sge: 4, max_inline_data: 64 }
    }
}

/// What a queue pair is made of.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct NewQueuePair {
    /// Its protection domain.
    pub pd: Handle,
    /// Where sends complete.
    pub send_cq: Handle,
    /// Where receives complete.
    pub recv_cq: Handle,
    /// Sizes.
    pub cap: Capacity,
    /// `ibv_qp_type`.
    pub qp_type: u8,
    /// Where it takes receives from, if not from a queue of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub srq: Option<Handle>,
}

/// Where packets of a queue pair go; always with a global route.
#[derive(Clone, Debug, Serialize)]
pub struct Path {
    /// GID of the peer.
    pub dgid: Ipv6Addr,
    /// Own entry of the GID table.
    pub sgid_index: u8,
    /// Time to live, hop limit.
    pub hop_limit: u8,
    /// DSCP and ECN bits.
    pub traffic_class: u8,
    /// IPv6 flow label.
    pub flow_label: u32,
}

impl Path {
    /// The way from an entry of the GID table to a peer, unmarked.
    pub const fn new(dgid: Ipv6Addr, sgid_index: u8) -> Self {
        Self { dgid, sgid_index, hop_limit: 64, traffic_class: 0, flow_label: 0 }
    }
}

/// Attributes of a queue pair to change: those that are set, named as in `ibv_qp_attr`.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(missing_docs, reason = "the verbs manual documents them")]
pub struct Attributes {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qp_state: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cur_qp_state: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub en_sqd_async_notify: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qp_access_flags: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pkey_index: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_num: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qkey: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ah_attr: Option<Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_mtu: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_cnt: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rnr_retry: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rq_psn: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rd_atomic: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rnr_timer: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sq_psn: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_dest_rd_atomic: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dest_qp_num: Option<u32>,
}

/// One scatter element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sge {
    /// Address of the first byte.
    pub addr: u64,
    /// Length in bytes.
    pub length: u32,
    /// Key of the region it lies in.
    pub lkey: u32,
}

/// Memory of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Remote {
    /// Address of the first byte.
    pub addr: u64,
    /// Key of the region it lies in.
    pub rkey: u32,
}

/// A window to bind.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Bind {
    /// The window.
    pub mw: Handle,
    /// The key it is to answer to; a window of type 1 chooses it by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rkey: Option<u32>,
    /// The region it opens a part of.
    pub mr: Handle,
    /// Address of its first byte.
    pub addr: u64,
    /// Length in bytes.
    pub length: u64,
    /// What peers may do through it.
    pub access: u32,
}

/// What a FLUSH covers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Flushed {
    /// Bytes from the remote address on.
    pub length: u32,
    /// 1: until everybody sees them; 2: until they survive a loss of power.
    pub placement: u8,
    /// 0: the range; 1: the whole region.
    pub selectivity: u8,
}

/// Who gets a datagram.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Datagram {
    /// Address handle of the way there.
    pub ah: Handle,
    /// Number of the queue pair there.
    pub qp_num: u32,
    /// Its Q_Key.
    pub qkey: u32,
}

/// A send work request. What its operation does not use is left at its default.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SendRequest {
    /// Comes back in the completion.
    pub wr_id: u64,
    /// `ibv_wr_opcode`.
    pub opcode: u32,
    /// `ibv_send_flags`.
    pub flags: u32,
    /// Local memory.
    pub sges: Vec<Sge>,
    /// Memory of the peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<Remote>,
    /// Immediate data: the value of its four wire bytes read big-endian.
    pub imm: u32,
    /// What a COMPARE SWAP compares with, or what a FETCH ADD adds.
    pub compare_add: u64,
    /// What a COMPARE SWAP stores.
    pub swap: u64,
    /// Key to invalidate.
    pub invalidate: u32,
    /// Window to bind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bind: Option<Bind>,
    /// The eight bytes of an ATOMIC WRITE, as hexadecimal text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// What to flush.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flushed: Option<Flushed>,
    /// Who gets it, on a datagram queue pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datagram: Option<Datagram>,
}

/// A work completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct WorkCompletion {
    /// As in the work request.
    pub wr_id: u64,
    /// `ibv_wc_status`.
    pub status: u32,
    /// `ibv_wc_opcode`.
    pub opcode: u32,
    /// Bytes received or read.
    pub byte_len: u32,
    /// Number of the local queue pair.
    pub qp_num: u32,
    /// Number of the sender's queue pair, for UD.
    pub src_qp: u32,
    /// Detail of the device.
    pub vendor_err: u32,
    /// `ibv_wc_flags`.
    pub wc_flags: u32,
    /// Immediate data, if the flags say so.
    #[serde(default)]
    pub imm: Option<u32>,
    /// Key the peer invalidated, if the flags say so.
    #[serde(default)]
    pub invalidated: Option<u32>,
}

/// What a program in the guest has done so far.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ProgramState {
    /// Its exit status (negative: the signal that ended it), or nothing while it runs.
    pub exit: Option<i32>,
    /// All it has printed.
    pub output: String,
}
