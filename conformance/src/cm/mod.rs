//! Connections by address and port, against the connection manager of the guest's kernel and the programs of rdma-core
//! that use it, each side asking the other.

mod figure;
mod guest;
mod killed;
mod messages;
mod ping;
mod rate;
mod refusals;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use uroce::Context;

use crate::agent::Agent;
use crate::peer::{Family, Result};
use crate::runner::{Cell, Filter};
use crate::watchdog::Watchdog;

pub use figure::Figure;

/// How long one step may take: the guest is emulated, and a lost message of the connection manager is repeated after
/// five seconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// First port of the connection manager; every run takes the next one.
const FIRST_PORT: u16 = 19000;
/// Sizes of the pings, in bytes.
const PING_SIZES: [u32; 2] = [64, 20000];
const FAMILIES: [Family; 2] = [Family::V4, Family::V6];

/// What both sides need for one cell.
struct Ends<'a> {
    agent: &'a mut Agent,
    context: &'a Context,
    own: IpAddr,
    guest: IpAddr,
    port: u16,
    figures: &'a mut Vec<Figure>,
}

impl Ends<'_> {
    /// Where we listen.
    const fn here(&self) -> SocketAddr {
        SocketAddr::new(self.own, self.port)
    }

    /// Where the guest listens.
    const fn there(&self) -> SocketAddr {
        SocketAddr::new(self.guest, self.port)
    }
}

/// One direction of a scenario.
type Run = fn(&mut Ends<'_>) -> Result<()>;

/// Name, where it runs, and what we do as the asking and as the asked side.
const ALL: [(&str, &[Family], Run, Run); 5] = [
    ("cm/messages", &FAMILIES, messages::client, messages::server),
    ("cm/refused", &FAMILIES, refusals::refused_there, refusals::refused_here),
    ("cm/nobody-listens", &FAMILIES, refusals::nobody_there, refusals::nobody_here),
    ("cm/killed", &FAMILIES, killed::server, killed::client),
    ("cm/200-connections", &[Family::V4], rate::client, rate::server),
];

/// Names of all these scenarios.
pub fn names() -> impl Iterator<Item = String> {
    let pings = PING_SIZES.into_iter().map(ping_name);
    ALL.iter().map(|(name, ..)| (*name).to_owned()).chain(pings)
}

fn ping_name(size: u32) -> String {
    format!("rping/{size}")
}

/// The two sides.
#[derive(Debug)]
pub struct Sides {
    /// Starts the guest's programs.
    pub agent: Agent,
    /// The `uroce` command.
    pub program: PathBuf,
    /// Our interface.
    pub interface: String,
    /// Our IPv4 and IPv6 address.
    pub own: [IpAddr; 2],
    /// The guest's.
    pub guest: [IpAddr; 2],
}

/// What runs them.
#[derive(Debug)]
pub struct Connections<'a> {
    sides: Sides,
    watchdog: &'a Watchdog,
    figures: Vec<Figure>,
    port: u16,
}

impl<'a> Connections<'a> {
    /// Nothing has run yet.
    pub const fn new(sides: Sides, watchdog: &'a Watchdog) -> Self {
        Self { sides, watchdog, figures: Vec::new(), port: FIRST_PORT }
    }

    /// What was measured.
    pub fn figures(&self) -> &[Figure] {
        &self.figures
    }

    /// Runs every wanted scenario on a device, both ways; `seen` gets each row of cells as it is done.
    pub fn run(&mut self, context: &Context, filter: &Filter, mut seen: impl FnMut(&[Cell])) {
        for (name, families, there, back) in ALL.iter().filter(|(name, ..)| filter.wants(name)) {
            for family in *families {
                let row = [("uRoCE to rxe", *there), ("rxe to uRoCE", *back)];
                seen(&row.map(|(direction, run)| {
                    self.cell(name, *family, direction, |this, index| run(&mut this.ends(context, index)))
                }));
            }
        }
    }

    /// Runs the pings, for which the interface must be free.
    pub fn run_pings(&mut self, filter: &Filter, mut seen: impl FnMut(&[Cell])) {
        for size in PING_SIZES.into_iter().filter(|size| filter.wants(&ping_name(*size))) {
            for family in FAMILIES {
                seen(&[false, true].map(|serve| self.ping(size, family, serve)));
            }
        }
    }

    fn ping(&mut self, size: u32, family: Family, serve: bool) -> Cell {
        let direction = if serve { "rxe to uRoCE" } else { "uRoCE to rxe" };
        self.cell(&ping_name(size), family, direction, |this, index| {
            let Sides { agent, program, interface, own, guest } = &mut this.sides;
            let server = if serve { own } else { guest }[index];
            let job = ping::Job { program, interface, server, port: this.port, size };
            if serve { job.server(agent) } else { job.client(agent) }
        })
    }

    fn ends<'b>(&'b mut self, context: &'b Context, index: usize) -> Ends<'b> {
        let Sides { agent, own, guest, .. } = &mut self.sides;
        let (port, figures) = (self.port, &mut self.figures);
        Ends { agent, context, own: own[index], guest: guest[index], port, figures }
    }

    /// Runs one cell at the next port; `run` gets the index of the family's addresses.
    fn cell(
        &mut self,
        name: &str,
        family: Family,
        direction: &str,
        run: impl FnOnce(&mut Self, usize) -> Result<()>,
    ) -> Cell {
        let (index, route) = match family {
            Family::V4 => (0, "IPv4"),
            Family::V6 => (1, "IPv6"),
        };
        self.port += 1;
        let cell = Cell {
            scenario: name.into(),
            route: route.into(),
            direction: direction.into(),
            time: Duration::ZERO,
            failure: None,
            deviations: Vec::new(),
        };
        let watchdog = self.watchdog;
        let _watched = watchdog.watch(&cell);
        let start = Instant::now();
        let failure = run(self, index).err().map(|error| error.to_string());
        Cell { time: start.elapsed(), failure, ..cell }
    }
}
