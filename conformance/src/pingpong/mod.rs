//! The ping-pong programs of rdma-core in the guest against `uroce pingpong` here, each as the server of the other. Both
//! check what they receive.

mod listening;
mod local;
mod programs;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::agent::{Agent, Handle};
use crate::peer::{Family, Result, Route};
use crate::runner::{Cell, Filter, ROUTES};
pub(crate) use local::Local;
use programs::Program;

/// How long a program may take to finish.
const RUN_LIMIT: Duration = Duration::from_secs(60);
/// First port for the programs' own exchange; every run takes the next one.
const FIRST_PORT: u16 = 18600;

/// Names of all ping-pong scenarios.
pub fn names() -> impl Iterator<Item = String> {
    programs::names()
}

/// What runs the programs of both sides.
#[derive(Debug)]
pub struct Pingpong {
    /// Starts the guest's program.
    pub agent: Agent,
    /// The `uroce` command.
    pub program: PathBuf,
    /// Our interface.
    pub interface: String,
    /// Our side.
    pub own: Station,
    /// The guest.
    pub guest: Station,
}

/// One side.
#[derive(Clone, Debug)]
pub struct Station {
    /// Its IPv4 address. The programs make their own exchange over IPv4, because the guest's listens on nothing else;
    /// the family of the messages comes with the GID index.
    pub host: Ipv4Addr,
    /// Its IPv6 address.
    pub host6: Ipv6Addr,
    /// Indexes of its IPv4 and its IPv6 address in its GID table.
    pub gid_indexes: [u32; 2],
}

impl Station {
    /// Its IPv4 and its IPv6 address.
    pub fn addresses(&self) -> [IpAddr; 2] {
        [self.host.into(), self.host6.into()]
    }

    fn gid_index(&self, route: Route) -> u32 {
        self.gid_indexes[usize::from(route.family == Family::V6)]
    }
}

/// One run of the two programs.
#[derive(Clone, Copy, Debug)]
struct Job {
    program: &'static Program,
    route: Route,
    size: u32,
    exchanges: u32,
    port: u16,
}

/// Who listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    Guest,
    Own,
}

impl Pingpong {
    /// Runs every wanted program and size over its routes, both ways; `seen` gets each row of cells as it is done.
    pub fn run(&mut self, filter: &Filter, mut seen: impl FnMut(&[Cell])) {
        let mut port = FIRST_PORT;
        for mut job in jobs().filter(|job| filter.wants(&job.program.scenario(job.size))) {
            let row = [Server::Guest, Server::Own].map(|server| {
                port += 1;
                job.port = port;
                self.cell(job, server)
            });
            seen(&row);
        }
    }

    fn cell(&mut self, job: Job, server: Server) -> Cell {
        let start = Instant::now();
        let failure = self.attempt(job, server).err().map(|error| error.to_string());
        let direction = if server == Server::Guest { "uRoCE to rxe" } else { "rxe to uRoCE" };
        Cell {
            scenario: job.program.scenario(job.size),
            route: job.route.to_string(),
            direction: direction.into(),
            time: start.elapsed(),
            failure,
            deviations: Vec::new(),
        }
    }

    fn attempt(&mut self, job: Job, server: Server) -> Result<()> {
        let (own, guest) = match server {
            Server::Guest => {
                let guest = self.start_guest(job, None)?;
                listening::in_guest(&mut self.agent, job.program.name, job.port)?;
                (self.start_own(job, Some(self.guest.host))?, guest)
            }
            Server::Own => {
                let own = self.start_own(job, None)?;
                listening::here("uroce pingpong", job.port)?;
                let host = self.own.host;
                (own, self.start_guest(job, Some(host))?)
            }
        };
        let own = own.finish(RUN_LIMIT);
        // When ours failed, theirs would only wait for it.
        let limit = if own.is_ok() { RUN_LIMIT } else { Duration::ZERO };
        let guest = self.finish_guest(job, guest, limit);
        own.and(guest)
    }

    fn start_own(&self, job: Job, host: Option<Ipv4Addr>) -> Result<Local> {
        let words = ["pingpong", &self.interface].map(str::to_owned).into_iter();
        let words = words.chain(host.map(|host| host.to_string()));
        let words = words.chain(job.program.own.iter().map(ToString::to_string));
        let words: Vec<String> = words.chain(options(job, self.own.gid_index(job.route))).collect();
        Local::start(&self.program, &words)
    }

    fn start_guest(&mut self, job: Job, host: Option<Ipv4Addr>) -> Result<Handle> {
        let options = options(job, self.guest.gid_index(job.route));
        let words = [job.program.name, "-d", "rxe0"].into_iter().chain(options.iter().map(String::as_str));
        let host = host.map(|host| host.to_string());
        Ok(self.agent.spawn(&words.chain(host.as_deref()).collect::<Vec<_>>())?)
    }

    fn finish_guest(&mut self, job: Job, program: Handle, limit: Duration) -> Result<()> {
        let state = self.agent.wait(program, limit)?;
        self.agent.close(program)?;
        let (name, output) = (job.program.name, state.output.trim());
        match state.exit {
            Some(0) => Ok(()),
            Some(code) => Err(format!("{name} ended with {code}: {output}").into()),
            None => Err(format!("{name} did not end within {limit:?}: {output}").into()),
        }
    }
}

/// Every run, without its port.
fn jobs() -> impl Iterator<Item = Job> {
    let sized = programs::ALL
        .iter()
        .flat_map(|program| program.sizes.iter().map(move |&(size, exchanges)| (program, size, exchanges)));
    sized.flat_map(|(program, size, exchanges)| {
        let routes = ROUTES.into_iter().filter(|route| program.routes.contain(*route));
        routes.map(move |route| Job { program, route, size, exchanges, port: 0 })
    })
}

/// The options both programs share; `-c` checks what arrives.
fn options(job: Job, gid_index: u32) -> Vec<String> {
    let numbers = [("-g", gid_index), ("-p", u32::from(job.port)), ("-s", job.size), ("-n", job.exchanges)];
    let mtu = job.program.takes_mtu.then_some(("-m", job.route.mtu));
    let words = numbers.into_iter().chain(mtu);
    let words = words.flat_map(|(option, number)| [option.to_owned(), number.to_string()]);
    words.chain(job.program.options.iter().map(ToString::to_string)).chain(["-c".to_owned()]).collect()
}
