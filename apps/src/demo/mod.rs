//! `uroce demo`: every operation between two processes, each byte checked.
//!
//! With the needed privileges the command makes two network namespaces joined by a veth pair ([`lab`]) and starts
//! itself once in each, over AF_XDP ([`processes`]). Without, the same operations run over an in-memory cable
//! between two threads. [`server`] and [`client`] are the two ends, the same in both cases.

mod case;
mod client;
mod lab;
mod pattern;
mod processes;
mod server;

use clap::{Args, ValueEnum};
use uroce::Drive;

use crate::cli::{BackendArg, DeviceArgs};
use crate::control::Control;
use crate::device;
use crate::error::{Failure, Result};
use crate::out;
use crate::progress::Progress;
use crate::table::{Align, Table};
use crate::tcp;
use case::Row;

const AFTER_HELP: &str = "\
Examples:
  sudo uroce demo                       two processes in two network namespaces, over AF_XDP
  uroce demo --cable                    one process, over a cable in memory; needs no privilege
  uroce demo --json                     the rows as JSON";

/// TCP port on which the two processes agree, in namespaces of their own.
const PORT: u16 = 18515;

/// `uroce demo`
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct DemoArgs {
    /// Do not try AF_XDP
    #[arg(long)]
    cable: bool,
    /// Print rows as JSON
    #[arg(long)]
    json: bool,
}

/// One process of the demo.
#[derive(Args, Debug)]
pub(crate) struct PeerArgs {
    #[arg(value_enum)]
    role: Role,
    iface: String,
    /// The server
    host: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Role {
    Server,
    Client,
}

/// Runs it.
pub(crate) fn main(args: &DemoArgs) -> Result<()> {
    let rows = if args.cable { over_cable(args)? } else { over_xdp(args)? };
    if args.json {
        return out::json(&rows);
    }
    let backend = rows.first().map_or("nothing", |row| &row.backend);
    out::line(format_args!("Over {backend}, path MTU 4096, best of {} rounds each:", client::ROUNDS))?;
    out::line(table(&rows))
}

/// One of the two processes that [`main`] starts; its parent reads what it prints.
pub(crate) fn peer(args: &PeerArgs) -> Result<()> {
    processes::end_with_parent();
    let device_args = DeviceArgs { backend: BackendArg::Xdp, gid_idx: None, queue: None };
    match args.role {
        Role::Server => {
            let ctx = device::open(&args.iface, &device_args, Drive::default())?;
            let listener = tcp::listen(PORT)?;
            processes::opened(&ctx)?;
            server::serve(&ctx, Control::accept(&listener)?.0)
        }
        Role::Client => {
            let ctx = device::open(&args.iface, &device_args, Drive::Inline)?;
            processes::opened(&ctx)?;
            let control = Control::connect_within(&args.host, PORT, crate::control::PATIENCE)?;
            client::run(&ctx, control, &mut |row| processes::done(&row))
        }
    }
}

fn over_xdp(args: &DemoArgs) -> Result<Vec<Row>> {
    let lacking = match lab::Lab::new() {
        Ok(lab) => match processes::run(&lab, !args.json)? {
            Ok(rows) => return Ok(rows),
            Err(lacking) => lacking,
        },
        Err(Failure::Said(lacking)) => lacking,
        Err(failure) => return Err(failure),
    };
    out::note(format_args!(
        "The demo wants two processes over AF_XDP, which cannot be had here: {lacking}\n\
         It needs root (`sudo uroce demo`), the `ip` command and a kernel with veth and AF_XDP; `uroce doctor` tells \
         more. Instead the same operations run in one process over a cable in memory.\n"
    ));
    over_cable(args)
}

/// Both ends in this process, each on a thread.
fn over_cable(args: &DemoArgs) -> Result<Vec<Row>> {
    let (near, far) = device::cable_pair(Drive::Inline, Drive::default())?;
    let (ours, theirs) = Control::pair()?;
    let server = std::thread::spawn(move || server::serve(&far, theirs));
    let mut shown = Shown::new(!args.json);
    let run = client::run(&near, ours, &mut |row| {
        shown.row(row);
        Ok(())
    });
    let served = server.join().map_err(|_| Failure::new("the server's thread panicked: this is a bug"))?;
    match (served, run) {
        // Who is left alone tells less than who left.
        (Err(served), Ok(()) | Err(Failure::PeerGone)) => Err(served),
        (_, run) => run.map(|()| shown.rows),
    }
}

/// Rows as they are done.
#[derive(Debug)]
struct Shown {
    rows: Vec<Row>,
    progress: Progress,
}

impl Shown {
    fn new(bar: bool) -> Self {
        Self { rows: Vec::new(), progress: Progress::new("demo", bar) }
    }

    fn row(&mut self, row: Row) {
        self.rows.push(row);
        self.progress.draw(self.rows.len() as u64, case::all().len() as u64);
    }
}

fn table(rows: &[Row]) -> Table {
    use Align::{Left, Right};
    let titles = [
        ("operation", Left),
        ("size", Right),
        ("messages", Right),
        ("verified", Right),
        ("Gb/s", Right),
        ("us each", Right),
    ];
    let mut table = Table::new(titles);
    for row in rows {
        let figure = |value: Option<f64>| value.map(|value| format!("{value:.2}")).unwrap_or_default();
        table.row([
            row.op.clone(),
            row.size.to_string(),
            row.messages.to_string(),
            row.verified.to_string(),
            figure(row.gbps),
            figure(row.lat_us),
        ]);
    }
    table
}
