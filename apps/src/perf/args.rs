//! The options of `bw` and `lat`, with perftest's names and defaults.

use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use uroce::Mtu;

use super::connection::Connection;
use super::plan::{Amount, Plan, Test};
use crate::cli::{self, DeviceArgs};
use crate::error::{Failure, Result};

const BW_HELP: &str = "\
Examples:
  uroce bw write cable -s 64K -D 3      the stack alone: both ends in one process, no network
  uroce bw write eth0                   the server waits for one client, serves it, and ends
  uroce bw write eth0 192.0.2.1         the client measures and prints
  uroce bw read eth0 192.0.2.1 -a       all sizes from 2 bytes to 8 MiB
  uroce bw send cable -c UD -s 1024     datagrams; tells how many were lost
  uroce bw atomic cable --json          FETCH_ADD on 8 bytes; figures as JSON";

const LAT_HELP: &str = "\
WRITE and SEND go there and back, and half of that is shown; READ is shown whole.

Examples:
  uroce lat write cable -s 8
  uroce lat send eth0                   the server
  uroce lat send eth0 192.0.2.1 -n 10000";

/// What `bw` can measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BwOp {
    /// RDMA WRITE
    Write,
    /// RDMA READ
    Read,
    /// SEND into posted receives
    Send,
    /// FETCH_ADD on a word of 8 bytes
    Atomic,
}

/// What `lat` can measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LatOp {
    /// RDMA WRITE there and back; each end watches its memory
    Write,
    /// RDMA READ
    Read,
    /// SEND there and back
    Send,
}

/// `uroce bw`
#[derive(Args, Debug)]
#[command(after_help = BW_HELP)]
pub(crate) struct BwArgs {
    /// Operation to measure
    #[arg(value_enum)]
    pub(crate) op: BwOp,
    #[command(flatten)]
    pub(crate) common: PerfArgs,
    /// Number of queue pairs
    #[arg(short, long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) qp: u32,
    /// Work requests outstanding on each queue pair
    #[arg(short, long, default_value_t = 128, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8192))]
    pub(crate) tx_depth: u32,
    /// Receives posted on each queue pair; `send` only
    #[arg(short, long, default_value_t = 512, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8192))]
    pub(crate) rx_depth: u32,
    /// Ask for a completion once in so many work requests [default: 100, at most half of the tx depth]
    #[arg(short = 'Q', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8192))]
    pub(crate) cq_mod: Option<u32>,
    /// Let all queue pairs take their receives from one shared receive queue; `send` only
    #[arg(long)]
    pub(crate) use_srq: bool,
}

/// `uroce lat`
#[derive(Args, Debug)]
#[command(after_help = LAT_HELP)]
pub(crate) struct LatArgs {
    /// Operation to measure
    #[arg(value_enum)]
    pub(crate) op: LatOp,
    #[command(flatten)]
    pub(crate) common: PerfArgs,
}

/// What both take.
#[derive(Args, Clone, Debug)]
pub(crate) struct PerfArgs {
    /// Interface, or `cable` to have both ends in this process on an in-memory cable
    pub(crate) iface: String,
    /// The server to measure against; without it, be the server
    pub(crate) host: Option<String>,
    /// Transport service
    #[arg(short, long, value_enum, default_value_t, ignore_case = true)]
    pub(crate) connection: Connection,
    /// Message size, with K, M or G for powers of 1024 [default: 64K for bw, 1K with UD, 2 for lat; atomics have 8]
    #[arg(short, long, value_parser = cli::size, value_name = "BYTES")]
    pub(crate) size: Option<u32>,
    /// All sizes from 2 bytes to 8 MiB, or to the path MTU with UD
    #[arg(short, long, conflicts_with = "size")]
    pub(crate) all: bool,
    /// Messages on each queue pair [default: 5000 for bw, 1000 for lat]
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "duration", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub(crate) iters: Option<u64>,
    /// Measure for so many seconds instead
    #[arg(short = 'D', long, value_name = "SECONDS")]
    pub(crate) duration: Option<f64>,
    /// Path MTU [default: the largest that both links carry]
    #[arg(short, long, value_parser = cli::mtu, value_name = "BYTES")]
    pub(crate) mtu: Option<Mtu>,
    /// Connect through the connection manager, on the same port number; RC only
    #[arg(short = 'R', long)]
    pub(crate) cm: bool,
    /// TCP port on which both ends agree
    #[arg(short, long, default_value_t = 18515, value_name = "PORT")]
    pub(crate) port: u16,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    /// Print figures as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl PerfArgs {
    /// Refuses what clap cannot.
    pub(crate) fn check(&self) -> Result<()> {
        match self.duration {
            Some(seconds) if !(0.01..=86_400.0).contains(&seconds) => {
                Err(Failure::usage("a duration is 0.01 to 86400 seconds"))
            }
            _ => Ok(()),
        }
    }

    fn amount(&self, default: u64) -> Amount {
        match self.duration {
            // A duration out of range is refused by `check`; here it only must not panic.
            Some(seconds) => Amount::Time(Duration::try_from_secs_f64(seconds).unwrap_or_default()),
            None => Amount::Messages(self.iters.unwrap_or(default)),
        }
    }
}

impl BwArgs {
    /// What is to be measured.
    pub(crate) fn plan(&self) -> Plan {
        let default = match (self.op, self.common.connection) {
            (BwOp::Atomic, _) => 8,
            (_, Connection::Ud) => 1024,
            _ => 65536,
        };
        Plan {
            test: Test::Bw(self.op),
            connection: self.common.connection,
            cm: self.common.cm,
            srq: self.use_srq,
            size: self.common.size.unwrap_or(default),
            all: self.common.all,
            amount: self.common.amount(5000),
            mtu: self.common.mtu,
            qps: self.qp,
            tx_depth: self.tx_depth,
            rx_depth: self.rx_depth,
            cq_mod: self.cq_mod.unwrap_or(100).min((self.tx_depth / 2).max(1)),
        }
    }
}

impl LatArgs {
    /// What is to be measured.
    pub(crate) fn plan(&self) -> Plan {
        Plan {
            test: Test::Lat(self.op),
            connection: self.common.connection,
            cm: self.common.cm,
            srq: false,
            size: self.common.size.unwrap_or(2),
            all: self.common.all,
            amount: self.common.amount(1000),
            mtu: self.common.mtu,
            qps: 1,
            tx_depth: 128,
            rx_depth: 128,
            cq_mod: 32,
        }
    }
}
