//! `uroce pingpong`: messages there and back, with the exchange, the options and the output of `ibv_rc_pingpong`, so
//! that either can be at the other end.

mod exchange;
mod run;

use clap::Args;
use serde::Serialize;
use uroce::{
    Access, CompletionQueue, ConnectionParams, Context, Drive, Endpoint, Gid, MemoryRegion, Mtu,
    PreparedQueuePair, QpType, QueuePair,
};

use crate::cli::{self, DeviceArgs};
use crate::device;
use crate::error::{Failure, Result};
use crate::out;
use crate::stats::{gbps, rounded};
use exchange::Exchange;
use run::{Outcome, Run};

const AFTER_HELP: &str = "\
Examples:
  uroce pingpong eth0                   the server; on the client `ibv_rc_pingpong -g 1 192.0.2.1`
  uroce pingpong eth0 192.0.2.1 -c      the client of `ibv_rc_pingpong -g 1 -c` on 192.0.2.1

Give -s, -m and -n alike at both ends; they are not exchanged. ibv_rc_pingpong needs -g on RoCE.";

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
    /// TCP port for the exchange
    #[arg(short, long, default_value_t = 18515, value_name = "PORT")]
    port: u16,
    /// Message size
    #[arg(short, long, default_value = "4096", value_parser = cli::size, value_name = "BYTES")]
    size: u32,
    /// Path MTU
    #[arg(short, long, default_value = "1024", value_parser = cli::mtu, value_name = "BYTES")]
    mtu: Mtu,
    /// Receives posted at a time
    #[arg(short, long, default_value_t = 500, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8192))]
    rx_depth: u32,
    /// Exchanges
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

/// Runs it.
pub(crate) fn main(args: &PingpongArgs) -> Result<()> {
    let ctx = device::open(&args.iface, &args.device, Drive::Inline)?;
    device::path_mtu(&ctx, Some(args.mtu))?;
    let prepared = Prepared::new(&ctx, args)?;
    let ours = prepared.qp.endpoint();
    show(args, "local", &ours)?;
    let (qp, exchanged) = match &args.host {
        Some(host) => as_client(prepared.qp, &ours, args, host)?,
        None => as_server(prepared.qp, &ours, args)?,
    };
    show(args, "remote", &exchanged)?;
    let outcome = Run::new(args, &qp, &prepared.cq, &prepared.memory).run()?;
    print(args, &outcome)?;
    check_pages(args, &prepared.memory)
}

/// Everything before the peer is known. Receives are posted, so that its first message finds one.
struct Prepared {
    qp: PreparedQueuePair,
    cq: CompletionQueue,
    memory: MemoryRegion,
}

impl Prepared {
    fn new(ctx: &Context, args: &PingpongArgs) -> Result<Self> {
        let (pd, cq) = (ctx.alloc_pd()?, ctx.create_cq(args.rx_depth + 1).build()?);
        let memory = pd.alloc_mr_from(&vec![FILL; args.size as usize], Access::LOCAL_WRITE)?;
        let qp = pd.create_qp(QpType::Rc, &cq, &cq).max_send_wr(1).max_recv_wr(args.rx_depth);
        let qp = qp.build()?.params(params(args));
        qp.post_recv(&run::receives(&memory, args.rx_depth))?;
        Ok(Self { qp, cq, memory })
    }
}

/// As the other program has them: rnr_retry 7 waits for ever.
fn params(args: &PingpongArgs) -> ConnectionParams {
    ConnectionParams {
        path_mtu: Some(args.mtu),
        timeout: 14,
        retry_cnt: 7,
        rnr_retry: 7,
        min_rnr_timer: 12,
        max_rd_atomic: 1,
        max_dest_rd_atomic: 1,
        hop_limit: 64,
        ..ConnectionParams::default()
    }
}

/// Connects after both have spoken.
fn as_client(
    qp: PreparedQueuePair,
    ours: &Endpoint,
    args: &PingpongArgs,
    host: &str,
) -> Result<(QueuePair, Endpoint)> {
    let mut exchange = Exchange::connect(host, args.port)?;
    exchange.tell(ours)?;
    let theirs = exchange.hear()?;
    exchange.done()?;
    Ok((qp.connect(reachable(ours, theirs)?)?, theirs))
}

/// Connects before it answers, so that the client's first message arrives at a queue pair that is ready.
fn as_server(qp: PreparedQueuePair, ours: &Endpoint, args: &PingpongArgs) -> Result<(QueuePair, Endpoint)> {
    let mut exchange = Exchange::accept(args.port)?;
    let theirs = exchange.hear()?;
    let qp = qp.connect(reachable(ours, theirs)?)?;
    exchange.tell(ours)?;
    exchange.hear_done()?;
    Ok((qp, theirs))
}

fn reachable(ours: &Endpoint, peer: Endpoint) -> Result<Endpoint> {
    check_gid(peer.gid)?;
    device::check_family(ours.gid, peer.gid).map(|()| peer)
}

fn check_gid(gid: Gid) -> Result<()> {
    if gid.bytes() == [0; 16] {
        return Err(Failure::new(
            "the peer sent no GID, without which RoCE cannot reach it: start ibv_rc_pingpong there with `-g INDEX`, \
             the index of a RoCE v2 entry that `ibv_devinfo -v` shows",
        ));
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
    bytes: u64,
    iterations: u64,
    size: u32,
    mtu: usize,
    seconds: f64,
    gbps: f64,
    usec_per_iteration: f64,
}

fn print(args: &PingpongArgs, outcome: &Outcome) -> Result<()> {
    let (seconds, iterations) = (outcome.seconds, args.iters);
    let bytes = u64::from(args.size) * iterations * 2;
    let usec = seconds * 1e6 / iterations as f64;
    let rate = gbps(bytes, seconds);
    if args.json {
        return out::json(&Figures {
            bytes,
            iterations,
            size: args.size,
            mtu: args.mtu.bytes(),
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
    let wrong = run::wrong_pages(&memory.to_vec(..)?);
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
        assert!(check_gid(Gid::from_bytes([0; 16])).unwrap_err().to_string().contains("-g INDEX"));
    }
}
