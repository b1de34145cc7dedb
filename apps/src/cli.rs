//! The command line.

use clap::builder::styling::Styles;
use clap::{Args, Parser, Subcommand, ValueEnum};
use uroce::{Backend, Mtu};

use crate::{demo, devinfo, doctor, export, perf, ping, pingpong, stat};

const AFTER_HELP: &str = "\
Examples:
  uroce doctor eth0                     what this machine lacks, if anything
  uroce demo                            every operation between two processes, each byte checked
  uroce bw write cable                  how fast the stack alone is
  uroce bw write eth0                   on one machine, and then on the other:
  uroce bw write eth0 192.0.2.1
  uroce stat eth0 --watch               what the endpoints on eth0 count, every second
  uroce pingpong eth0 192.0.2.1         against `ibv_rc_pingpong -g 1` on 192.0.2.1

Exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted.";

/// RoCEv2 without an RDMA card: verbs in user space over a plain network interface
#[derive(Debug, Parser)]
#[command(name = "uroce", version, after_help = AFTER_HELP, styles = Styles::plain())]
pub(crate) struct Cli {
    /// Tell more on standard error: once what happens, twice everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Can this machine run it, and if not, what to do
    Doctor(doctor::DoctorArgs),
    /// Show the port of an interface as ibv_devinfo would
    Devinfo(devinfo::DevinfoArgs),
    /// Show what running endpoints count: packets, retries, refusals, drops
    Stat(stat::StatArgs),
    /// Exchange messages with a peer, also with ibv_rc_pingpong of rdma-core
    Pingpong(pingpong::PingpongArgs),
    /// READ and WRITE there and back through the connection manager, also with rping of rdma-core
    Ping(ping::PingArgs),
    /// Show memory or a file to whoever connects
    Serve(export::ServeArgs),
    /// Read what a server shows
    Get(export::GetArgs),
    /// Write into what a server shows
    Put(export::PutArgs),
    /// Compare a word that a server shows, and swap it
    Cas(export::CasArgs),
    /// Measure bandwidth and message rate
    Bw(perf::BwArgs),
    /// Measure latency
    Lat(perf::LatArgs),
    /// Run every operation between two processes and check every byte
    Demo(demo::DemoArgs),
    /// One process of the demo
    #[command(hide = true)]
    DemoPeer(demo::PeerArgs),
}

/// How an interface is opened.
#[derive(Args, Clone, Debug)]
pub(crate) struct DeviceArgs {
    /// Which way frames take to the interface
    #[arg(long, value_enum, default_value_t = BackendArg::Auto, value_name = "WAY")]
    pub(crate) backend: BackendArg,
    /// Local GID, by its index in the table that `uroce devinfo` shows [default: the first IPv4 address, else IPv6]
    #[arg(short = 'g', long = "gid-idx", value_name = "INDEX")]
    pub(crate) gid_idx: Option<u32>,
    /// Receive queue of the interface to attach to [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) queue: Option<u32>,
}

/// Which way frames take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BackendArg {
    /// AF_XDP where it can be had, else AF_PACKET with a warning
    Auto,
    /// AF_XDP or nothing
    Xdp,
    /// AF_PACKET: works everywhere; slower, but for bulk over a veth pair that has it at both ends
    Packet,
}

impl From<BackendArg> for Backend {
    fn from(arg: BackendArg) -> Self {
        match arg {
            BackendArg::Auto => Self::Auto,
            BackendArg::Xdp => Self::Xdp,
            BackendArg::Packet => Self::Packet,
        }
    }
}

/// Reads a path MTU.
pub(crate) fn mtu(text: &str) -> Result<Mtu, String> {
    let bytes = text.parse().ok().and_then(Mtu::from_bytes);
    bytes.ok_or_else(|| "a path MTU is 256, 512, 1024, 2048 or 4096".to_owned())
}

/// Reads a size in bytes, with K, M or G for powers of 1024.
pub(crate) fn size(text: &str) -> Result<u32, String> {
    let wrong = || format!("{text} is not a size: give bytes from 1 to {MAX_SIZE}, or such as 64K, 8M");
    let (digits, shift) = match text.trim_end_matches(['k', 'm', 'g', 'K', 'M', 'G']) {
        digits if digits.len() == text.len() => (digits, 0),
        digits => (digits, unit(&text[digits.len()..]).ok_or_else(wrong)?),
    };
    let bytes =
        digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift)).ok_or_else(wrong)?;
    u32::try_from(bytes).ok().filter(|bytes| (1..=MAX_SIZE).contains(bytes)).ok_or_else(wrong)
}

/// The longest message that the measuring commands send: both ends keep twice as much for each queue pair.
pub(crate) const MAX_SIZE: u32 = 1 << 30;

fn unit(letter: &str) -> Option<u32> {
    match letter {
        "k" | "K" => Some(10),
        "m" | "M" => Some(20),
        "g" | "G" => Some(30),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes() {
        let good = [("1", 1), ("65536", 65536), ("64K", 65536), ("8m", 8 << 20), ("1G", 1 << 30)];
        for (text, bytes) in good {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "0", "K", "2G", "-1", "1KK", "1.5M", "99999999999999999999"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn path_mtus() {
        assert_eq!(mtu("1024"), Ok(Mtu::B1024));
        assert!(mtu("1500").is_err());
    }
}
