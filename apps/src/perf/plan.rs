//! What is to be measured.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use uroce::Mtu;

use super::args::{BwOp, LatOp};
use super::connection::Connection;
use crate::cli::MAX_SIZE;
use crate::error::{Failure, Result};

/// Bytes that a warm-up moves at most on each queue pair.
const WARM_UP_BYTES: u64 = 16 << 20;
/// Bounds of what one may ask for, on the command line or as a client.
const MAX_QPS: u32 = 1024;
const MAX_DEPTH: u32 = 8192;
/// What one completion queue holds.
const MAX_ENTRIES: u32 = 1 << 20;
/// Bytes that all queue pairs send from and receive into.
const MAX_MEMORY: u64 = 4 << 30;
/// Sizes of `-a`, as powers of two.
const ALL: std::ops::RangeInclusive<u32> = 1..=23;

/// Which test, as both ends must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Test {
    Bw(BwOp),
    Lat(LatOp),
}

/// How long to measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Amount {
    /// So many messages on each queue pair.
    Messages(u64),
    /// So long.
    Time(Duration),
}

/// A measurement, or one for each size.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) test: Test,
    pub(crate) connection: Connection,
    /// Whether the connection manager connects the queue pairs.
    pub(crate) cm: bool,
    /// Whether the queue pairs share their receives.
    pub(crate) srq: bool,
    pub(crate) size: u32,
    pub(crate) all: bool,
    pub(crate) amount: Amount,
    pub(crate) mtu: Option<Mtu>,
    pub(crate) qps: u32,
    pub(crate) tx_depth: u32,
    pub(crate) rx_depth: u32,
    pub(crate) cq_mod: u32,
}

impl Test {
    /// The command, as one types it.
    pub(crate) fn command(self) -> String {
        match self {
            Self::Bw(_) => format!("bw {}", self.op()),
            Self::Lat(_) => format!("lat {}", self.op()),
        }
    }

    /// The operation.
    pub(crate) const fn op(self) -> &'static str {
        match self {
            Self::Bw(BwOp::Write) | Self::Lat(LatOp::Write) => "write",
            Self::Bw(BwOp::Read) | Self::Lat(LatOp::Read) => "read",
            Self::Bw(BwOp::Send) | Self::Lat(LatOp::Send) => "send",
            Self::Bw(BwOp::Atomic) => "atomic",
        }
    }

    /// Whether the responder must act by itself, beyond what its engine does.
    pub(crate) const fn is_active(self) -> bool {
        matches!(self, Self::Bw(BwOp::Send) | Self::Lat(LatOp::Write | LatOp::Send))
    }

    /// Whether messages are received into posted receives.
    pub(crate) const fn receives(self) -> bool {
        matches!(self, Self::Bw(BwOp::Send) | Self::Lat(LatOp::Send))
    }
}

impl Plan {
    /// Refuses what cannot be.
    pub(crate) fn check(&self) -> Result<()> {
        if self.test == Test::Bw(BwOp::Atomic) && (self.size != 8 || self.all) {
            return Err(Failure::usage("atomic operations have 8 bytes: leave -s and -a away"));
        }
        if !self.connection.has(self.test) {
            let (connection, op) = (self.connection.name(), self.test.op());
            return Err(Failure::usage(format!(
                "{connection} has no {op}: UC has write and send, UD has send, RC has all"
            )));
        }
        if self.cm && (self.connection != Connection::Rc || self.mtu.is_some()) {
            return Err(Failure::usage(
                "with --cm there is RC only, with the path MTU of the interface: leave -c and -m away",
            ));
        }
        if self.srq && !self.test.receives() {
            return Err(Failure::usage("only `send` takes receives: leave --use-srq away"));
        }
        self.check_bounds().map_err(Failure::usage)
    }

    /// The same once the path MTU is known: refuses datagrams that are longer.
    pub(crate) fn with_mtu(&self, mtu: Mtu) -> Result<Self> {
        let fits = self.connection != Connection::Ud || self.all || self.size as usize <= mtu.bytes();
        if fits {
            return Ok(Self { mtu: Some(mtu), ..self.clone() });
        }
        let (size, mtu) = (self.size, mtu.bytes());
        Err(Failure::new(format!(
            "{size} bytes do not fit a datagram, which is one packet of path MTU {mtu} at most: use `-s {mtu}`, or -c RC"
        )))
    }

    /// Refuses what takes too much of a machine, whoever asks for it.
    pub(crate) fn check_bounds(&self) -> Result<(), &'static str> {
        let each = (1..=MAX_DEPTH).contains(&self.tx_depth) && (1..=MAX_DEPTH).contains(&self.rx_depth);
        let one = (1..=MAX_QPS).contains(&self.qps) && (1..=MAX_SIZE).contains(&self.size);
        if !each || !one || self.entries() > MAX_ENTRIES {
            return Err(
                "too many queue pairs for queues this deep: fewer with -q, or shallower ones with -t and -r",
            );
        }
        if 2 * u64::from(self.qps) * u64::from(self.largest()) > MAX_MEMORY {
            return Err(
                "too many queue pairs for messages this long: each takes twice the message, 4 GiB in all",
            );
        }
        Ok(())
    }

    /// Completions that may be waiting at once.
    pub(crate) const fn entries(&self) -> u32 {
        let receives = if self.test.receives() { self.rx_depth } else { 0 };
        let all = self.qps.saturating_mul(self.tx_depth.saturating_add(receives));
        if all < 256 { 256 } else { all }
    }

    /// Whether messages can be lost, and those that are not can be counted.
    pub(crate) fn counts_losses(&self) -> bool {
        self.connection != Connection::Rc && self.test == Test::Bw(BwOp::Send)
    }

    /// The sizes to measure, in order.
    pub(crate) fn sizes(&self) -> Vec<u32> {
        if !self.all {
            return vec![self.size];
        }
        ALL.map(|power| 1 << power).filter(|size| *size <= self.largest()).collect()
    }

    /// The largest of them.
    pub(crate) fn largest(&self) -> u32 {
        match (self.all, self.connection) {
            (false, _) => self.size,
            (true, Connection::Ud) => self.mtu.unwrap_or(Mtu::B4096).bytes() as u32,
            (true, _) => 1 << ALL.end(),
        }
    }

    /// Messages on each queue pair before the clock starts.
    pub(crate) fn warm_up(&self, size: u32) -> u64 {
        let fitting = WARM_UP_BYTES / u64::from(size);
        let most = match self.amount {
            Amount::Messages(messages) => messages,
            Amount::Time(_) => 10_000,
        };
        fitting.clamp(1, 10_000).min(most)
    }

    /// The amount for one size: a long list of sizes should not take forever at the large ones.
    pub(crate) fn amount_of(&self, size: u32) -> Amount {
        match self.amount {
            Amount::Messages(messages) if self.all && size > 1 << 16 => {
                Amount::Messages((messages >> (size.ilog2() - 16)).max(16).min(messages))
            }
            amount => amount,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan {
            test: Test::Bw(BwOp::Write),
            connection: Connection::Rc,
            cm: false,
            srq: false,
            size: 65536,
            all: false,
            amount: Amount::Messages(5000),
            mtu: None,
            qps: 1,
            tx_depth: 128,
            rx_depth: 512,
            cq_mod: 64,
        }
    }

    #[test]
    fn all_sizes_are_those_of_perftest() {
        let all = Plan { all: true, ..plan() };
        let sizes = all.sizes();
        assert_eq!((sizes.first(), sizes.last(), sizes.len()), (Some(&2), Some(&(8 << 20)), 23));
        assert_eq!(all.largest(), 8 << 20);
        assert_eq!(all.amount_of(65536), Amount::Messages(5000));
        assert_eq!(all.amount_of(8 << 20), Amount::Messages(39));
    }

    #[test]
    fn a_warm_up_is_short() {
        assert_eq!(plan().warm_up(65536), 256);
        assert_eq!(plan().warm_up(8), 5000);
        assert_eq!(plan().warm_up(1 << 30), 1);
        assert_eq!(Plan { amount: Amount::Messages(3), ..plan() }.warm_up(8), 3);
    }

    #[test]
    fn atomics_have_eight_bytes() {
        let atomic = Plan { test: Test::Bw(BwOp::Atomic), ..plan() };
        assert!(matches!(atomic.check(), Err(Failure::Usage(_))));
        assert!(Plan { size: 8, ..atomic }.check().is_ok());
    }

    #[test]
    fn services_have_their_operations() {
        let wrong = |connection, test| Plan { connection, test, size: 8, ..plan() }.check().is_err();
        assert!(
            !wrong(Connection::Uc, Test::Bw(BwOp::Write)) && !wrong(Connection::Ud, Test::Lat(LatOp::Send))
        );
        assert!(wrong(Connection::Uc, Test::Bw(BwOp::Read)) && wrong(Connection::Uc, Test::Bw(BwOp::Atomic)));
        assert!(
            wrong(Connection::Ud, Test::Bw(BwOp::Write)) && wrong(Connection::Ud, Test::Lat(LatOp::Write))
        );
    }

    #[test]
    fn datagrams_are_one_packet() {
        let datagrams = Plan { connection: Connection::Ud, test: Test::Bw(BwOp::Send), size: 1025, ..plan() };
        let said = datagrams.with_mtu(Mtu::B1024).unwrap_err().to_string();
        assert!(said.contains("-s 1024"), "{said}");
        assert!(datagrams.with_mtu(Mtu::B2048).is_ok());
        let all = Plan { all: true, ..datagrams }.with_mtu(Mtu::B1024).unwrap();
        assert_eq!((all.sizes().last(), all.largest()), (Some(&1024), 1024));
    }

    #[test]
    fn nobody_may_ask_for_too_much() {
        let bounds = |plan: Plan| plan.check_bounds().is_ok();
        assert!(bounds(plan()) && bounds(Plan { qps: 1024, size: 8, ..plan() }));
        assert!(bounds(Plan { size: MAX_SIZE, ..plan() }));
        assert!(!bounds(Plan { size: MAX_SIZE, qps: 3, ..plan() }));
        assert!(!bounds(Plan { size: u32::MAX, ..plan() }));
        assert!(!bounds(Plan { tx_depth: 8192, qps: 1024, size: 8, ..plan() }));
        assert!(!bounds(Plan { tx_depth: u32::MAX, qps: u32::MAX, ..plan() }));
        assert!(!bounds(Plan { qps: 0, ..plan() }));
    }
}
