//! Runs the scenarios against a live peer and says what came of it.

use std::net::{Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::{Parser, Subcommand, ValueEnum};
use uroce::{Backend, Context, DeviceConfig};
use uroce_conformance::agent::Agent;
use uroce_conformance::cm::{Connections, Figure, Sides};
use uroce_conformance::own::{Device, Own};
use uroce_conformance::peer::{Family, FlushForm, Peer, Result};
use uroce_conformance::pingpong::{Pingpong, Station};
use uroce_conformance::report;
use uroce_conformance::runner::{self, Cell, Filter};
use uroce_conformance::rxe::Rxe;
use uroce_conformance::watchdog::{self, Watchdog};

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

impl Way {
    const fn backend(self) -> Backend {
        match self {
            Self::Auto => Backend::Auto,
            Self::Xdp => Backend::Xdp,
            Self::Packet => Backend::Packet,
        }
    }
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
    let board = Board::new(arguments.json);
    match &arguments.command {
        Command::Selftest { filter } => selftest(arguments, rxe, &Filter(filter.clone()), &board)?,
        Command::Run { filter, uroce } => interop(arguments, rxe, uroce, &Filter(filter.clone()), &board)?,
    }
    Ok(board.close())
}

fn selftest(arguments: &Arguments, mut second: Rxe, filter: &Filter, board: &Board) -> Result<()> {
    let mut first = Rxe::new(Agent::connect(arguments.agent)?, FIRST_PSN)?;
    scenarios(&mut first, &mut second, filter, board);
    Ok(())
}

fn interop(arguments: &Arguments, mut rxe: Rxe, uroce: &Path, filter: &Filter, board: &Board) -> Result<()> {
    let (name, backend) = (arguments.interface.clone(), arguments.backend.backend());
    let mut device = Device::reopening(move |form| open(&name, backend, form));
    let context = device.context(FlushForm::Specified)?;
    eprintln!("uRoCE on {} through {}", arguments.interface, context.query_port().mode);
    let stations = (own_station(&context)?, guest_station(arguments)?);
    drop(context);
    let mut own = Own::new(device, FIRST_PSN);
    scenarios(&mut own, &mut rxe, filter, board);
    drop(own); // the interface is free for others now
    connections(arguments, uroce, &stations, filter, board)?;
    let mut pingpong = Pingpong {
        agent: Agent::connect(arguments.agent)?,
        program: uroce.to_owned(),
        interface: arguments.interface.clone(),
        own: stations.0,
        guest: stations.1,
    };
    pingpong.run(filter, |row| board.add(row));
    Ok(())
}

/// What goes through the connection manager: with a device of ours, then with the `uroce` command.
fn connections(
    arguments: &Arguments,
    uroce: &Path,
    (own, guest): &(Station, Station),
    filter: &Filter,
    board: &Board,
) -> Result<()> {
    let sides = Sides {
        agent: Agent::connect(arguments.agent)?,
        program: uroce.to_owned(),
        interface: arguments.interface.clone(),
        own: own.addresses(),
        guest: guest.addresses(),
    };
    let watchdog = board.watchdog();
    let mut connections = Connections::new(sides, &watchdog);
    let context = open(&arguments.interface, arguments.backend.backend(), FlushForm::Specified)?;
    connections.run(&context, filter, |row| board.add(row));
    drop(context);
    connections.run_pings(filter, |row| board.add(row));
    board.show(connections.figures());
    Ok(())
}

fn scenarios(first: &mut dyn Peer, second: &mut dyn Peer, filter: &Filter, board: &Board) {
    let (there, back) = (first.name().to_owned(), second.name().to_owned());
    board.head(&[format!("{there} to {back}"), format!("{back} to {there}")]);
    runner::run(first, second, filter, &board.watchdog(), |row| board.add(row));
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
    Ok(Station { host, host6: v6.1, gid_indexes: [v4.0, v6.0] })
}

fn open(interface: &str, backend: Backend, form: FlushForm) -> Result<Context> {
    let config = DeviceConfig::new(interface).backend(backend);
    Ok(Context::open(config.rxe_flush_icrc(form == FlushForm::Doubled))?)
}

/// Where the cells are shown and kept; shared with whoever finds one that hangs.
#[derive(Clone)]
struct Board {
    json: bool,
    cells: Arc<Mutex<Vec<Cell>>>,
    figures: Arc<Mutex<Vec<Figure>>>,
}

impl Board {
    fn new(json: bool) -> Self {
        Self { json, cells: Arc::default(), figures: Arc::default() }
    }

    /// Ends everything when a cell hangs, which is reported as failed.
    fn watchdog(&self) -> Watchdog {
        let board = self.clone();
        Watchdog::new(watchdog::LIMIT, move |cell| {
            board.add(&[cell]);
            board.close();
            std::process::exit(1)
        })
    }

    fn head(&self, directions: &[String]) {
        if !self.json {
            println!("{}", report::head(directions));
        }
    }

    fn add(&self, row: &[Cell]) {
        if !self.json {
            println!("{}", report::row(row));
        }
        lock(&self.cells).extend_from_slice(row);
    }

    /// Prints and keeps what was measured.
    fn show(&self, figures: &[Figure]) {
        if !self.json {
            figures.iter().for_each(|figure| println!("{figure}"));
        }
        lock(&self.figures).extend_from_slice(figures);
    }

    /// Prints the end of the report and says how it went.
    fn close(&self) -> ExitCode {
        let cells = lock(&self.cells);
        let text = if self.json {
            report::json(&cells, &lock(&self.figures)).to_string()
        } else {
            report::closing(&cells)
        };
        println!("{text}");
        if report::failed(&cells) == 0 && !cells.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
