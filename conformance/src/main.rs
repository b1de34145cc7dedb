//! Runs the scenarios against a live peer and says what came of it.

use std::net::{Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use uroce::{Backend, Context, DeviceConfig};
use uroce_conformance::agent::Agent;
use uroce_conformance::own::Own;
use uroce_conformance::peer::{Family, Peer, Result};
use uroce_conformance::pingpong::{Pingpong, Station};
use uroce_conformance::report;
use uroce_conformance::runner::{self, Cell, Filter};
use uroce_conformance::rxe::Rxe;

/// First packet sequence numbers of the two ends: close to where they wrap around, so that they do.
const FIRST_PSN: u32 = 0xff_fff0;
const SECOND_PSN: u32 = 0x7f_fff0;

/// Runs the scenarios against a live peer.
#[derive(Debug, Parser)]
struct Arguments {
    /// Where the agent in the guest listens
    #[arg(long)]
    agent: SocketAddr,
    /// Our interface towards the guest
    #[arg(long)]
    interface: String,
    /// How frames get to and from the interface
    #[arg(long, value_enum, default_value_t = Way::Auto)]
    backend: Way,
    /// Print JSON instead of a table
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Way {
    /// AF_XDP where it can be had, else AF_PACKET
    Auto,
    /// AF_XDP
    Xdp,
    /// AF_PACKET
    Packet,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The guest's rdma_rxe against itself: proves the guest, its agent and the scenarios
    Selftest {
        /// Run only scenarios whose name contains this
        filter: Option<String>,
    },
    /// uRoCE against the guest's rdma_rxe, both ways
    Run {
        /// The `uroce` command, for the ping-pong against rdma-core's
        #[arg(long)]
        uroce: PathBuf,
        /// Run only scenarios whose name contains this
        filter: Option<String>,
    },
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("conformance: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    let rxe = Rxe::new(Agent::connect(arguments.agent)?, SECOND_PSN)?;
    let cells = match &arguments.command {
        Command::Selftest { filter } => selftest(arguments, rxe, &Filter(filter.clone()))?,
        Command::Run { filter, uroce } => interop(arguments, rxe, uroce, &Filter(filter.clone()))?,
    };
    let text = if arguments.json { report::json(&cells).to_string() } else { report::closing(&cells) };
    println!("{text}");
    Ok(if report::failed(&cells) == 0 && !cells.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn selftest(arguments: &Arguments, mut second: Rxe, filter: &Filter) -> Result<Vec<Cell>> {
    let mut first = Rxe::new(Agent::connect(arguments.agent)?, FIRST_PSN)?;
    Ok(scenarios(arguments, &mut first, &mut second, filter))
}

fn interop(arguments: &Arguments, mut rxe: Rxe, uroce: &Path, filter: &Filter) -> Result<Vec<Cell>> {
    let context = open(arguments)?;
    eprintln!("uRoCE on {} through {}", arguments.interface, context.query_port().mode);
    let stations = (own_station(&context)?, guest_station(arguments)?);
    let mut own = Own::new(context, FIRST_PSN);
    let mut cells = scenarios(arguments, &mut own, &mut rxe, filter);
    drop(own); // the interface is free for the `uroce` command now
    let mut pingpong = Pingpong {
        agent: Agent::connect(arguments.agent)?,
        program: uroce.to_owned(),
        interface: arguments.interface.clone(),
        own: stations.0,
        guest: stations.1,
    };
    cells.extend(pingpong.run(filter, |row| show(arguments, row)));
    Ok(cells)
}

fn own_station(context: &Context) -> Result<Station> {
    let gids = context.query_port().gids;
    station(gids.iter().map(|entry| (entry.index, entry.gid.bytes().into())))
}

fn guest_station(arguments: &Arguments) -> Result<Station> {
    let gids = Agent::connect(arguments.agent)?.device()?.gids;
    station(gids.iter().map(|entry| (u32::from(entry.index), entry.gid)))
}

/// The first usable address of each family.
fn station(gids: impl Iterator<Item = (u32, Ipv6Addr)> + Clone) -> Result<Station> {
    let find = |family: Family| {
        let found = gids.clone().find(|(_, gid)| family.has(*gid));
        found.ok_or_else(|| format!("a side has no {family:?} address"))
    };
    let (v4, v6) = (find(Family::V4)?, find(Family::V6)?);
    let host = v4.1.to_ipv4_mapped().ok_or("not an IPv4 address")?;
    Ok(Station { host, gid_indexes: [v4.0, v6.0] })
}

fn open(arguments: &Arguments) -> Result<Context> {
    let backend = match arguments.backend {
        Way::Auto => Backend::Auto,
        Way::Xdp => Backend::Xdp,
        Way::Packet => Backend::Packet,
    };
    Ok(Context::open(DeviceConfig::new(&arguments.interface).backend(backend))?)
}

fn scenarios(
    arguments: &Arguments,
    first: &mut dyn Peer,
    second: &mut dyn Peer,
    filter: &Filter,
) -> Vec<Cell> {
    let (there, back) = (first.name().to_owned(), second.name().to_owned());
    if !arguments.json {
        println!("{}", report::head(&[format!("{there} to {back}"), format!("{back} to {there}")]));
    }
    runner::run(first, second, filter, |row| show(arguments, row))
}

fn show(arguments: &Arguments, row: &[Cell]) {
    if !arguments.json {
        println!("{}", report::row(row));
    }
}
