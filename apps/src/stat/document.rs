//! What a running endpoint tells of itself: one JSON document.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uroce::{Context, QpType, QueuePair};

/// Counters by name. The names are those of `hw_counters` of `rdma_rxe` and mlx5 where these count the same.
pub(crate) type Counts = BTreeMap<String, u64>;

/// A device that a process has open.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Endpoint {
    /// The process, as its own PID namespace numbers it.
    pub(crate) pid: u32,
    /// Which of the devices that the process has opened, counted from 0.
    pub(crate) number: u32,
    /// What was typed to start it.
    pub(crate) command: String,
    pub(crate) interface: String,
    /// Port of the device, 1.
    pub(crate) port: u8,
    /// The way frames take.
    pub(crate) backend: String,
    /// The GID that packets come from.
    pub(crate) gid: String,
    /// What the engine has counted since the device was opened.
    pub(crate) counters: Counts,
    /// What the backend has counted: frames, bytes, and what was lost where.
    pub(crate) interface_counters: Counts,
    pub(crate) queue_pairs: Vec<QueuePairStat>,
}

/// One of its queue pairs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct QueuePairStat {
    pub(crate) qpn: u32,
    /// The service, as verbs abbreviate it.
    pub(crate) service: String,
    pub(crate) state: String,
    /// Those that are not zero: a device may have thousands of queue pairs.
    pub(crate) counters: Counts,
}

impl Endpoint {
    /// The device as it is now, the process's `number`th.
    pub(crate) fn of<'a>(
        ctx: &Context,
        number: u32,
        command: &str,
        queue_pairs: impl Iterator<Item = &'a QueuePair>,
    ) -> Self {
        let port = ctx.query_port();
        Self {
            pid: std::process::id(),
            number,
            command: command.to_owned(),
            interface: ctx.query_device().name,
            port: 1,
            backend: port.mode.to_string(),
            gid: ctx.gid().to_string(),
            counters: counts(ctx.counters().iter()),
            interface_counters: counts(port.stats.iter()),
            queue_pairs: queue_pairs.map(QueuePairStat::of).collect(),
        }
    }

    /// A counter of the engine; 0 when the endpoint is of a version that does not have it.
    pub(crate) fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    /// A counter of the backend; 0 when the endpoint is of a version that does not have it.
    pub(crate) fn interface_counter(&self, name: &str) -> u64 {
        self.interface_counters.get(name).copied().unwrap_or(0)
    }

    /// Whether this is the same endpoint at another time.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (self.pid, self.number, &self.command) == (other.pid, other.number, &other.command)
    }
}

impl QueuePairStat {
    fn of(qp: &QueuePair) -> Self {
        let all = qp.counters();
        Self {
            qpn: qp.qpn().get(),
            service: qp.query().map_or("", |(_, init)| service(init.qp_type)).to_owned(),
            state: format!("{:?}", qp.state()).to_uppercase(),
            counters: counts(all.iter().filter(|(_, count)| *count > 0)),
        }
    }
}

/// The abbreviation of a service.
const fn service(kind: QpType) -> &'static str {
    match kind {
        QpType::Rc => "RC",
        QpType::Uc => "UC",
        QpType::Ud => "UD",
        QpType::XrcIni | QpType::XrcTgt => "XRC",
        _ => "GSI",
    }
}

fn counts(all: impl Iterator<Item = (&'static str, u64)>) -> Counts {
    all.map(|(name, count)| (name.to_owned(), count)).collect()
}

#[cfg(test)]
mod tests {
    use uroce::Drive;

    use super::*;
    use crate::device;

    #[test]
    fn a_device_tells_of_itself_and_back() {
        let (near, _far) = device::cable_pair(Drive::Inline, Drive::Inline).unwrap();
        let endpoint = Endpoint::of(&near, 3, "bw write cable", std::iter::empty());
        assert_eq!((endpoint.pid, endpoint.number, &*endpoint.backend), (std::process::id(), 3, "cable"));
        assert_eq!((endpoint.counter("sent_pkts"), endpoint.counter("no such")), (0, 0));
        assert!(endpoint.counters.contains_key("out_of_sequence"));
        assert!(endpoint.interface_counters.contains_key("tx_frames"));
        let text = serde_json::to_string(&endpoint).unwrap();
        assert_eq!(serde_json::from_str::<Endpoint>(&text).unwrap(), endpoint);
    }
}
