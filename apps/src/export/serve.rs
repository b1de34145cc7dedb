//! `uroce serve`: shows memory or a file to whoever connects.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use uroce::{CmEvent, CmEventType, Drive};

use super::allow::Network;
use super::clients::{Clients, News, Rules, Work};
use super::memory::Memory;
use super::{PORT, number};
use crate::cli::DeviceArgs;
use crate::clock::Stopwatch;
use crate::cm::{Asking, Listener};
use crate::device::{self, Device};
use crate::error::Result;
use crate::out;

const AFTER_HELP: &str = "\
Examples:
  uroce serve eth0 --size 1G                    memory to read, write and compare
  uroce serve eth0 --file disk.img              a file to read
  uroce serve eth0 --file disk.img --write --allow 192.0.2.0/24

Whoever may connect may read everything, and with --write change it: nothing is encrypted or authenticated, and addresses
can be forged on a network that others share. Do not truncate the file meanwhile: that ends the server. Ctrl-C ends it.";

/// Between two looks whether each client is still there.
const PROBE: Duration = Duration::from_secs(5);

/// `uroce serve`
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ServeArgs {
    /// Interface
    iface: String,
    /// Show so much memory, all zero at first, to be read and written
    #[arg(long, default_value = "64M", value_parser = number::size, value_name = "BYTES", conflicts_with = "file")]
    size: u64,
    /// Show this file, to be read
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// Let clients write the file, too
    #[arg(long, requires = "file")]
    write: bool,
    /// Port of the connection manager
    #[arg(short, long, default_value_t = PORT, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Take clients of this network only, such as 192.0.2.0/24; may be given several times [default: all]
    #[arg(long, value_name = "CIDR")]
    allow: Vec<Network>,
    /// So many clients at a time
    #[arg(long, default_value_t = 64, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    max_clients: u32,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print what happens as JSON, a line each
    #[arg(long)]
    json: bool,
}

/// Runs it, until Ctrl-C.
pub(crate) fn main(args: &ServeArgs) -> Result<()> {
    let memory = match &args.file {
        Some(path) => Memory::file(path, args.write)?,
        None => Memory::anonymous(args.size)?,
    };
    // Clients are answered by the thread of the device.
    let ctx = device::open(&args.iface, &args.device, Drive::default())?;
    let listener = Listener::bind(&ctx, SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), args.port))?;
    let rules = Rules { allowed: args.allow.clone(), most: args.max_clients as usize };
    let rights = if memory.is_writable() { "to read and write" } else { "to read" };
    out::note(format_args!(
        "waiting for clients on port {} of the connection manager, with {} bytes {rights}; Ctrl-C ends it",
        args.port,
        memory.len()
    ));
    serve(&ctx, &listener, &memory, rules, &mut |news| tell(args, &news))
}

/// Serves clients until Ctrl-C, or until the device fails.
pub(super) fn serve(
    ctx: &Device,
    listener: &Listener,
    memory: &Memory,
    rules: Rules,
    tell: &mut dyn FnMut(News) -> Result<()>,
) -> Result<()> {
    let mut clients = Clients::new(ctx, memory, rules)?;
    let mut probed = Stopwatch::start();
    loop {
        if let Some(event) = listener.event()? {
            handle(&mut clients, event)?.map(&mut *tell).transpose()?;
        }
        device::check(ctx)?;
        clients.bury().into_iter().try_for_each(&mut *tell)?;
        if probed.elapsed() >= PROBE {
            probed = Stopwatch::start();
            clients.probe();
        }
    }
}

fn handle(clients: &mut Clients<'_>, event: CmEvent) -> Result<Option<News>> {
    let news = match event.event {
        CmEventType::ConnectRequest => Asking::of(event).map(|asking| clients.admit(asking)).transpose()?,
        CmEventType::Disconnected
        | CmEventType::TimewaitExit
        | CmEventType::Unreachable
        | CmEventType::Rejected
        | CmEventType::ConnectError => clients.remove(&event.id),
        _ => None,
    };
    Ok(news)
}

fn tell(args: &ServeArgs, news: &News) -> Result<()> {
    if args.json {
        return out::compact_json(news);
    }
    let News { event, client, clients, reason, work } = news;
    let more = match (reason, work) {
        (Some(reason), _) => format!(": {reason}"),
        (None, Some(work)) => format!(" after {}", summary(work)),
        (None, None) => String::new(),
    };
    let all = args.max_clients;
    out::line(format_args!("{client} {event}{more} ({clients} of {all} clients)"))
}

fn summary(work: &Work) -> String {
    let Work { seconds, reads, writes, atomics, refused } = work;
    let refused = if *refused > 0 { format!(", {refused} refused") } else { String::new() };
    format!("{seconds:.2} s, {reads} reads, {writes} writes, {atomics} atomics{refused}")
}
