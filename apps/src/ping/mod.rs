//! `uroce ping`: the protocol, the options and the output of `rping`, so that it can be at the other end.
//!
//! The client tells where its data is, the server READs it and says go ahead; the client tells where it wants it back,
//! the server WRITEs it there and says go ahead. The connection manager connects and disconnects.

mod advert;
mod client;
mod end;
mod server;
mod tally;
mod text;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use clap::Args;
use serde::Serialize;
use uroce::Drive;

use crate::cli::DeviceArgs;
use crate::cm::Listener;
use crate::device::{self, Device};
use crate::error::{Failure, Result};
use crate::out;
use client::Job;
use tally::{Figures, Tally};

const AFTER_HELP: &str = "\
Examples:
  uroce ping eth0                       the server; on the client `rping -c -a 192.0.2.1 -C 10 -v`
  uroce ping eth0 192.0.2.1 -C 10 -v    the client of `rping -s -v` on 192.0.2.1
  uroce ping eth0 -P                    a server of one client after another

The server of rping needs the same -S as its client; that of uroce takes any.";

/// The largest ping of rping.
const MAX_SIZE: u32 = 65535;

/// `uroce ping`
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct PingArgs {
    /// Interface
    iface: String,
    /// The server to ping; without it, be the server
    host: Option<String>,
    /// Be the client, which HOST says already
    #[arg(short, long, conflicts_with = "server")]
    client: bool,
    /// Be the server, which no HOST says already; with -a at this address only
    #[arg(short, long, conflicts_with = "host")]
    server: bool,
    /// Address: of the server to ping, or with -s to listen at
    #[arg(short, long, value_name = "ADDRESS", conflicts_with = "host")]
    address: Option<String>,
    /// Port of the connection manager
    #[arg(short, long, default_value_t = 7174, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Bytes of a ping; of the client
    #[arg(short = 'S', long, default_value_t = 64, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(26..=i64::from(MAX_SIZE)))]
    size: u32,
    /// So many pings, 0 for no end; of the client [default: until Ctrl-C]
    #[arg(short = 'C', long, default_value_t = 0, value_name = "N", hide_default_value = true)]
    count: u64,
    /// Compare what comes back with what was sent; of the client
    #[arg(short = 'V', long)]
    validate: bool,
    /// Serve one client after another, until Ctrl-C
    #[arg(short = 'P', long, conflicts_with_all = ["host", "client"])]
    persistent: bool,
    #[command(flatten)]
    device: DeviceArgs,
    /// Print figures as JSON
    #[arg(long)]
    json: bool,
}

impl PingArgs {
    /// Whom to ping, if this is the client.
    fn target(&self) -> Result<Option<&str>> {
        let target =
            self.host.as_deref().or(self.address.as_deref().filter(|_| !self.server && !self.persistent));
        if self.client && target.is_none() {
            return Err(Failure::usage("a client needs the server's address: give HOST, or -a ADDRESS"));
        }
        Ok(target)
    }

    /// Where to listen.
    fn place(&self) -> Result<SocketAddr> {
        let address = match &self.address {
            Some(text) => text.parse().map_err(|_| {
                Failure::usage(format!(
                    "{text} is no IP address: a server listens at one of its own interface"
                ))
            })?,
            None => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        };
        Ok(SocketAddr::new(address, self.port))
    }
}

/// Prints the data of pings, if that is wanted.
#[derive(Clone, Copy, Debug)]
struct Printer {
    wanted: bool,
}

impl Printer {
    fn data(self, title: &str, data: &[u8]) -> Result<()> {
        if !self.wanted {
            return Ok(());
        }
        // A peer's data must not move the cursor of a terminal.
        let printable = text::of(data).iter().filter(|byte| !byte.is_ascii_control());
        let bytes: Vec<u8> = printable.copied().collect();
        out::line(format_args!("{title}: {}", String::from_utf8_lossy(&bytes)))
    }
}

/// Runs it; `verbose` shows the data.
pub(crate) fn main(args: &PingArgs, verbose: bool) -> Result<()> {
    let printer = Printer { wanted: verbose && !args.json };
    match args.target()? {
        Some(host) => as_client(args, host, printer),
        None => as_server(args, printer),
    }
}

fn as_client(args: &PingArgs, host: &str, printer: Printer) -> Result<()> {
    let ctx = device::open(&args.iface, &args.device, Drive::Inline)?;
    let job = Job {
        host: host.to_owned(),
        port: args.port,
        size: args.size as usize,
        count: args.count,
        verify: args.validate,
    };
    let tally = client::run(&ctx, &job, printer)?;
    print(args, &tally)
}

fn as_server(args: &PingArgs, printer: Printer) -> Result<()> {
    let place = args.place()?;
    let ctx = device::open(&args.iface, &args.device, Drive::Inline)?;
    let listener = Listener::bind(&ctx, place)?;
    out::note(format_args!("waiting for a client on port {} of the connection manager", args.port));
    loop {
        let served = serve_one(&ctx, &listener, args, printer);
        match served {
            // One client that fails does not end the others.
            Err(Failure::Said(text)) if args.persistent => out::note(format_args!("uroce: {text}")),
            Err(Failure::PeerGone) if args.persistent => out::note("the client vanished"),
            served if !args.persistent => return served,
            served => served?,
        }
    }
}

#[derive(Serialize)]
struct Served {
    client: String,
    pings: u64,
}

fn serve_one(ctx: &Device, listener: &Listener, args: &PingArgs, printer: Printer) -> Result<()> {
    let asking = listener.wait()?;
    let client = asking.peer().ip();
    let pings = server::serve(ctx, asking, printer)?;
    if args.json {
        return out::compact_json(&Served { client: client.to_string(), pings });
    }
    out::line(format_args!("{pings} pings of {client}"))
}

#[derive(Serialize)]
struct Report {
    pings: u64,
    size: u32,
    validated: bool,
    #[serde(flatten)]
    figures: Figures,
}

fn print(args: &PingArgs, tally: &Tally) -> Result<()> {
    let (pings, size, figures) = (tally.count, args.size, tally.figures());
    if args.json {
        return out::json(&Report { pings, size, validated: args.validate, figures });
    }
    let Figures { min_us, avg_us, max_us } = figures;
    let right = if args.validate { ", each byte as it was sent" } else { "" };
    out::line(format_args!(
        "{pings} pings of {size} bytes{right}; READ and WRITE took {min_us:.1} us at least, {avg_us:.1} us on average, \
         {max_us:.1} us at most"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cable_pair;

    /// Runs a client against a server on the in-memory cable; what each counted.
    fn pinged(size: usize, count: u64) -> (u64, u64) {
        let (left, right) = cable_pair(Drive::default(), Drive::default()).unwrap();
        let listener = Listener::bind(&right, ([192, 0, 2, 2], 7174).into()).unwrap();
        let printer = Printer { wanted: false };
        let job = Job { host: "192.0.2.2".into(), port: 7174, size, count, verify: true };
        std::thread::scope(|scope| {
            let server = scope.spawn(|| server::serve(&right, listener.wait().unwrap(), printer).unwrap());
            let tally = client::run(&left, &job, printer).unwrap();
            (tally.count, server.join().unwrap())
        })
    }

    #[test]
    fn pings_of_every_size_come_back_as_they_were_sent() {
        for size in [26, 64, 4097, MAX_SIZE as usize] {
            assert_eq!(pinged(size, 60), (60, 60), "{size}");
        }
    }

    #[test]
    fn nobody_listens_and_nobody_is_there() {
        let (left, right) = cable_pair(Drive::default(), Drive::default()).unwrap();
        let printer = Printer { wanted: false };
        let job = |host: &str| Job { host: host.into(), port: 1, size: 64, count: 1, verify: false };
        let _answers = right.create_event_channel().unwrap();
        let refused = client::run(&left, &job("192.0.2.2"), printer).unwrap_err().to_string();
        assert!(refused.contains("nobody listens on port 1 of 192.0.2.2"), "{refused}");
        let nobody = client::run(&left, &job("192.0.2.77"), printer).unwrap_err().to_string();
        assert!(nobody.contains("192.0.2.77:1"), "{nobody}");
    }
}
