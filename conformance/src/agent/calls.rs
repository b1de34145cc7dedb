//! The calls, one method each.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::types::{Created, Data, Done};
use super::{
    Agent, AgentError, Attributes, Bind, Device, Handle, Hello, NewQueuePair, Path, ProgramState, QueuePair,
    Region, SendRequest, Sge, Window, WorkCompletion, hex,
};

/// For calls that wait for nothing.
const NOW: Duration = Duration::ZERO;

impl Agent {
    /// Who answers.
    ///
    /// # Errors
    /// See [`AgentError`], for this and every other call.
    pub fn hello(&mut self) -> Result<Hello, AgentError> {
        self.call("hello", json!({}), NOW)
    }

    /// The device, its port, its GID table and its network interface.
    pub fn device(&mut self) -> Result<Device, AgentError> {
        self.call("device", json!({}), NOW)
    }

    /// Counters of the device, by name.
    pub fn counters(&mut self) -> Result<BTreeMap<String, i64>, AgentError> {
        #[derive(Deserialize)]
        struct Counters {
            counters: BTreeMap<String, i64>,
        }
        Ok(self.call::<Counters>("counters", json!({}), NOW)?.counters)
    }

    /// Closes an object: whatever was created here with a handle.
    pub fn close(&mut self, handle: Handle) -> Result<(), AgentError> {
        self.done("close", json!({ "handle": handle }))
    }

    /// A protection domain.
    pub fn alloc_pd(&mut self) -> Result<Handle, AgentError> {
        self.created("alloc_pd", json!({}))
    }

    /// A completion queue of at least `cqe` entries.
    pub fn create_cq(&mut self, cqe: u32) -> Result<Handle, AgentError> {
        self.created("create_cq", json!({ "cqe": cqe }))
    }

    /// Allocates and registers memory; `fill` is repeated over it, zeros without.
    pub fn register_mr(
        &mut self,
        pd: Handle,
        length: u64,
        access: u32,
        fill: Option<&[u8]>,
    ) -> Result<Region, AgentError> {
        let fill = fill.map(hex::encode);
        self.call("register_mr", json!({ "pd": pd, "length": length, "access": access, "fill": fill }), NOW)
    }

    /// Registers a part of a region's memory once more, with other rights.
    pub fn register_part(
        &mut self,
        pd: Handle,
        region: &Region,
        offset: u64,
        length: u64,
        access: u32,
    ) -> Result<Region, AgentError> {
        let mr = region.handle;
        let args = json!({ "pd": pd, "mr": mr, "offset": offset, "length": length, "access": access });
        self.call("register_part", args, NOW)
    }

    /// Bytes of a region.
    pub fn read_memory(&mut self, region: &Region, offset: u64, length: u64) -> Result<Vec<u8>, AgentError> {
        let args = json!({ "mr": region.handle, "offset": offset, "length": length });
        let data: Data = self.call("read_memory", args, NOW)?;
        bytes(&data)
    }

    /// Overwrites bytes of a region.
    pub fn write_memory(&mut self, region: &Region, offset: u64, data: &[u8]) -> Result<(), AgentError> {
        self.done("write_memory", json!({ "mr": region.handle, "offset": offset, "data": hex::encode(data) }))
    }

    /// A memory window of type 1 or 2.
    pub fn alloc_mw(&mut self, pd: Handle, kind: u8) -> Result<Window, AgentError> {
        self.call("alloc_mw", json!({ "pd": pd, "type": kind }), NOW)
    }

    /// Binds a window of type 1 through a queue pair; returns the key it answers to from then on.
    pub fn bind_mw(&mut self, qp: &QueuePair, wr_id: u64, bind: &Bind) -> Result<u32, AgentError> {
        #[derive(Deserialize)]
        struct Bound {
            rkey: u32,
        }
        let mut args = json!({ "qp": qp.handle, "wr_id": wr_id });
        merge(&mut args, json!(bind));
        Ok(self.call::<Bound>("bind_mw", args, NOW)?.rkey)
    }

    /// A queue pair.
    pub fn create_qp(&mut self, new: &NewQueuePair) -> Result<QueuePair, AgentError> {
        self.call("create_qp", json!(new), NOW)
    }

    /// A shared receive queue.
    pub fn create_srq(&mut self, pd: Handle, max_wr: u32, max_sge: u32) -> Result<Handle, AgentError> {
        self.created("create_srq", json!({ "pd": pd, "max_wr": max_wr, "max_sge": max_sge }))
    }

    /// Posts a receive to a shared receive queue.
    pub fn post_srq_recv(&mut self, srq: Handle, wr_id: u64, sges: &[Sge]) -> Result<(), AgentError> {
        self.done("post_srq_recv", json!({ "srq": srq, "wr_id": wr_id, "sges": sges }))
    }

    /// Asks for an event when a shared receive queue holds fewer receives than this.
    pub fn arm_srq(&mut self, srq: Handle, limit: u32) -> Result<(), AgentError> {
        self.done("arm_srq", json!({ "srq": srq, "limit": limit }))
    }

    /// An address handle: a way for datagrams.
    pub fn create_ah(&mut self, pd: Handle, path: &Path) -> Result<Handle, AgentError> {
        self.created("create_ah", json!({ "pd": pd, "path": path }))
    }

    /// Puts a queue pair into a multicast group, and the guest's interface with it, until the handle is closed.
    pub fn attach(&mut self, qp: &QueuePair, group: Ipv6Addr) -> Result<Handle, AgentError> {
        self.created("attach", json!({ "qp": qp.handle, "group": group }))
    }

    /// The next asynchronous event of this connection's device, as its `ibv_event_type`; nothing after the time.
    pub fn async_event(&mut self, timeout: Duration) -> Result<Option<u32>, AgentError> {
        #[derive(Deserialize)]
        struct Found {
            event: Option<u32>,
        }
        let args = json!({ "timeout_ms": milliseconds(timeout) });
        Ok(self.call::<Found>("async_event", args, timeout)?.event)
    }

    /// Changes the attributes that are set.
    pub fn modify_qp(&mut self, qp: &QueuePair, attributes: &Attributes) -> Result<(), AgentError> {
        let mut args = json!({ "qp": qp.handle });
        merge(&mut args, json!(attributes));
        self.done("modify_qp", args)
    }

    /// Attributes of a queue pair, by their names in `ibv_qp_attr`.
    pub fn query_qp(&mut self, qp: &QueuePair) -> Result<BTreeMap<String, u64>, AgentError> {
        self.call("query_qp", json!({ "qp": qp.handle }), NOW)
    }

    /// Posts a receive.
    pub fn post_recv(&mut self, qp: &QueuePair, wr_id: u64, sges: &[Sge]) -> Result<(), AgentError> {
        self.done("post_recv", json!({ "qp": qp.handle, "wr_id": wr_id, "sges": sges }))
    }

    /// Posts a send.
    pub fn post_send(&mut self, qp: &QueuePair, request: &SendRequest) -> Result<(), AgentError> {
        let mut args = json!({ "qp": qp.handle });
        merge(&mut args, json!(request));
        self.done("post_send", args)
    }

    /// Waits until `count` completions have come or the time is over; returns what came.
    pub fn poll_cq(
        &mut self,
        cq: Handle,
        count: usize,
        timeout: Duration,
    ) -> Result<Vec<WorkCompletion>, AgentError> {
        #[derive(Deserialize)]
        struct Polled {
            completions: Vec<WorkCompletion>,
        }
        let args = json!({ "cq": cq, "count": count, "timeout_ms": milliseconds(timeout) });
        Ok(self.call::<Polled>("poll_cq", args, timeout)?.completions)
    }

    /// Starts a program in the guest.
    pub fn spawn(&mut self, argv: &[&str]) -> Result<Handle, AgentError> {
        self.created("spawn", json!({ "argv": argv }))
    }

    /// Waits for a program's end, at most the given time.
    pub fn wait(&mut self, program: Handle, timeout: Duration) -> Result<ProgramState, AgentError> {
        self.call("wait", json!({ "handle": program, "timeout_ms": milliseconds(timeout) }), timeout)
    }

    /// Sends a signal to a program and its children.
    pub fn kill(&mut self, program: Handle, signal: i32) -> Result<(), AgentError> {
        self.done("kill", json!({ "handle": program, "signal": signal }))
    }

    /// A file of the guest.
    pub fn read_file(&mut self, path: &str) -> Result<Vec<u8>, AgentError> {
        let data: Data = self.call("read_file", json!({ "path": path }), NOW)?;
        bytes(&data)
    }

    /// Writes a file of the guest.
    pub fn write_file(&mut self, path: &str, data: &[u8]) -> Result<(), AgentError> {
        self.done("write_file", json!({ "path": path, "data": hex::encode(data) }))
    }

    fn done(&mut self, name: &str, args: Value) -> Result<(), AgentError> {
        self.call::<Done>(name, args, NOW).map(|_| ())
    }

    fn created(&mut self, name: &str, args: Value) -> Result<Handle, AgentError> {
        Ok(self.call::<Created>(name, args, NOW)?.handle)
    }
}

fn bytes(data: &Data) -> Result<Vec<u8>, AgentError> {
    hex::decode(&data.data).ok_or_else(|| AgentError::Protocol("memory that is not hexadecimal".into()))
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Adds the members of one JSON object to another.
fn merge(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}
