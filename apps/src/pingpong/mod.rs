//! `uroce pingpong`: messages there and back, with the exchange, the options and the output of `ibv_rc_pingpong`,
//! `ibv_uc_pingpong`, `ibv_ud_pingpong` and `ibv_srq_pingpong`, so that each can be at the other end.

mod exchange;
mod link;
mod run;
mod service;

use clap::Args;
use serde::Serialize;
use uroce::{Context, Drive, Endpoint, Gid, MemoryRegion, Mtu};

use crate::cli::{self, DeviceArgs};
use crate::device;
use crate::error::{Failure, Result};
use crate::out;
use crate::stats::{gbps, rounded};
use exchange::Exchange;
use link::{Linked, Prepared};
use run::{Outcome, Run};
use service::{SLOTS, Service};

const AFTER_HELP: &str = "\
Examples:
  uroce pingpong eth0                   the server; on the client `ibv_rc_pingpong -g 1 192.0.2.1`
  uroce pingpong eth0 192.0.2.1 -c      the client of `ibv_rc_pingpong -g 1 -c` on 192.0.2.1
  uroce pingpong eth0 --ud -s 1024      the server of `ibv_ud_pingpong -g 1 -s 1024 192.0.2.1`
  uroce pingpong eth0 --srq -q 4        the server of `ibv_srq_pingpong -g 1 -q 4 192.0.2.1`

Give -s, -m, -n and -q alike at both ends; they are not exchanged. The programs of rdma-core need -g on RoCE.";

/// What every byte is before a run; ours and theirs alike.
const FILL: u8 = 0x7b;

/// `uroce pingpong`
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct PingpongArgs {
    /// Interface
    iface: String,
    /// The server to connect to; without it, be the server
    host: Option<String>,
    /// Unreliable connection, as ibv_uc_pingpong
    #[arg(long, group = "service")]
    uc: bool,
    /// Unreliable datagrams, as ibv_ud_pingpong
    #[arg(long, group = "service")]
    ud: bool,
    /// Reliable connections that share their receives, as ibv_srq_pingpong
    #[arg(long, group = "service")]
    srq: bool,
    /// Number of queue pairs; --srq only [default: 16]
    #[arg(short = 'q', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..SLOTS as i64))]
    num_qp: Option<u32>,
    /// TCP port for the exchange
    #[arg(short, long, default_value_t = 18515, value_name = "PORT")]
    port: u16,
    /// Message size [default: 4096; 2048 with --ud, which is bounded by the path MTU]
    #[arg(short, long, value_parser = cli::size, value_name = "BYTES")]
    size: Option<u32>,
    /// Path MTU; not with --ud [default: 1024]
    #[arg(short, long, value_parser = cli::mtu, value_name = "BYTES", conflicts_with = "ud")]
    mtu: Option<Mtu>,
    /// Receives posted at a time
    #[arg(short, long, default_value_t = 500, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8192))]
    rx_depth: u32,
    /// Exchanges, over all queue pairs
    #[arg(short = 'n', long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    iters: u64,
    /// Sleep until completions come instead of polling
    #[arg(short, long)]
    events: bool,
    /// Validate the received buffer, page by page
    #[arg(short, long)]
    chk: bool,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print figures as JSON
    #[arg(long)]
    json: bool,
}

impl PingpongArgs {
    const fn service(&self) -> Service {
        match (self.uc, self.ud, self.srq) {
            (true, _, _) => Service::Uc,
            (_, true, _) => Service::Ud,
            (_, _, true) => Service::Srq,
            _ => Service::Rc,
        }
    }

    fn size(&self) -> u32 {
        self.size.unwrap_or(self.service().default_size())
    }

    fn qps(&self) -> u32 {
        self.num_qp.unwrap_or(self.service().default_qps())
    }

    /// The path MTU of connections; datagrams have that of the port.
    fn path_mtu(&self) -> Option<Mtu> {
        (!self.ud).then(|| self.mtu.unwrap_or(Mtu::B1024))
    }

    /// Refuses what clap cannot.
    fn check(&self) -> Result<()> {
        if self.num_qp.is_some() && !self.srq {
            return Err(Failure::usage("only --srq has a number of queue pairs: leave -q away"));
        }
        if self.qps() > self.rx_depth {
            let (qps, depth) = (self.qps(), self.rx_depth);
            return Err(Failure::usage(format!(
                "{depth} receives are too few for {qps} queue pairs: each needs one; more with -r, or fewer with -q"
            )));
        }
        Ok(())
    }
}

/// Runs it.
pub(crate) fn main(args: &PingpongArgs) -> Result<()> {
    args.check()?;
    let ctx = device::open(&args.iface, &args.device, Drive::Inline)?;
    let mtu = device::path_mtu(&ctx, args.path_mtu())?;
    check_datagram(args, &ctx)?;
    let prepared = Prepared::new(&ctx, args)?;
    let ours = prepared.endpoints();
    ours.iter().try_for_each(|endpoint| show(args, "local", endpoint))?;
    let (link, theirs) = match &args.host {
        Some(host) => as_client(prepared, &ours, args, host)?,
        None => as_server(prepared, &ours, args)?,
    };
    ctx.show(&link.qps);
    theirs.iter().try_for_each(|endpoint| show(args, "remote", endpoint))?;
    let outcome = Run::new(args, &link).run()?;
    print(args, mtu, &outcome)?;
    check_pages(args, &link.memory)
}

/// A datagram is one packet.
fn check_datagram(args: &PingpongArgs, ctx: &Context) -> Result<()> {
    let (size, mtu) = (args.size(), ctx.active_mtu().bytes());
    if !args.ud || size as usize <= mtu {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{size} bytes do not fit a datagram: {} carries path MTU {mtu}; use `-s {mtu}` at both ends",
        args.iface
    )))
}

/// Connects after both have spoken.
fn as_client(
    prepared: Prepared,
    ours: &[Endpoint],
    args: &PingpongArgs,
    host: &str,
) -> Result<(Linked, Vec<Endpoint>)> {
    let mut exchange = Exchange::connect(host, args.port, args.service())?;
    exchange.tell(ours)?;
    let theirs = exchange.hear(ours.len())?;
    exchange.done()?;
    check_reachable(args, ours, &theirs)?;
    Ok((prepared.connect(args, &theirs)?, theirs))
}

/// Connects before it answers, so that the client's first message arrives at a queue pair that is ready.
fn as_server(prepared: Prepared, ours: &[Endpoint], args: &PingpongArgs) -> Result<(Linked, Vec<Endpoint>)> {
    let mut exchange = Exchange::accept(args.port, args.service())?;
    let theirs = exchange.hear(ours.len())?;
    check_reachable(args, ours, &theirs)?;
    let link = prepared.connect(args, &theirs)?;
    exchange.tell(ours)?;
    exchange.hear_done()?;
    Ok((link, theirs))
}

fn check_reachable(args: &PingpongArgs, ours: &[Endpoint], theirs: &[Endpoint]) -> Result<()> {
    ours.iter().zip(theirs).try_for_each(|(ours, peer)| {
        check_gid(args.service(), peer.gid)?;
        device::check_family(ours.gid, peer.gid)
    })
}

fn check_gid(service: Service, gid: Gid) -> Result<()> {
    if gid.bytes() == [0; 16] {
        return Err(Failure::new(format!(
            "the peer sent no GID, without which RoCE cannot reach it: start {} there with `-g INDEX`, the index of a \
             RoCE v2 entry that `ibv_devinfo -v` shows",
            service.program()
        )));
    }
    Ok(())
}

fn show(args: &PingpongArgs, whose: &str, endpoint: &Endpoint) -> Result<()> {
    if args.json {
        return Ok(());
    }
    out::line(address_line(whose, endpoint))
}

fn address_line(whose: &str, endpoint: &Endpoint) -> String {
    let label = format!("{whose} address:");
    let Endpoint { gid, qpn, psn } = endpoint;
    let (qpn, psn) = (qpn.get(), psn.get());
    format!("  {label:<15} LID 0x0000, QPN 0x{qpn:06x}, PSN 0x{psn:06x}, GID {gid}")
}

/// The figures of a run.
#[derive(Serialize)]
struct Figures {
    connection: &'static str,
    srq: bool,
    qps: u32,
    bytes: u64,
    iterations: u64,
    size: u32,
    mtu: usize,
    seconds: f64,
    gbps: f64,
    usec_per_iteration: f64,
}

fn print(args: &PingpongArgs, mtu: Mtu, outcome: &Outcome) -> Result<()> {
    let (seconds, iterations) = (outcome.seconds, args.iters);
    let bytes = u64::from(args.size()) * iterations * 2;
    let usec = seconds * 1e6 / iterations as f64;
    let rate = gbps(bytes, seconds);
    if args.json {
        return out::json(&Figures {
            connection: args.service().connection(),
            srq: args.srq,
            qps: args.qps(),
            bytes,
            iterations,
            size: args.size(),
            mtu: mtu.bytes(),
            seconds: rounded(seconds),
            gbps: rounded(rate),
            usec_per_iteration: rounded(usec),
        });
    }
    out::line(format_args!("{bytes} bytes in {seconds:.2} seconds = {:.2} Mbit/sec", rate * 1e3))?;
    out::line(format_args!("{iterations} iters in {seconds:.2} seconds = {usec:.2} usec/iter"))
}

/// The client of a run with `-c` leaves 0 at the start of every page, and the server looks for it.
fn check_pages(args: &PingpongArgs, memory: &MemoryRegion) -> Result<()> {
    if !args.chk || args.host.is_some() {
        return Ok(());
    }
    let wrong = run::wrong_pages(&memory.to_vec(args.service().headroom()..)?);
    match wrong.first() {
        None => Ok(()),
        Some(first) => Err(Failure::new(format!(
            "invalid data in {} of the pages, the first of them page {first}: the messages were damaged, or the client \
             ran without -c",
            wrong.len()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_read_as_those_of_the_other_program() {
        let endpoint = "0000:0000a1:00beef:00000000000000000000ffff0a000001".parse().unwrap();
        let line = address_line("local", &endpoint);
        assert_eq!(line, "  local address:  LID 0x0000, QPN 0x0000a1, PSN 0x00beef, GID ::ffff:10.0.0.1");
        assert!(address_line("remote", &endpoint).starts_with("  remote address: LID 0x0000"));
    }

    #[test]
    fn a_peer_without_a_gid_is_told_what_to_do() {
        assert!(
            check_gid(Service::Ud, Gid::from_bytes([0; 16]))
                .unwrap_err()
                .to_string()
                .contains("ibv_ud_pingpong there with `-g INDEX`")
        );
    }
}
