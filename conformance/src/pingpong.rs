//! `ibv_rc_pingpong` of rdma-core in the guest against `uroce pingpong` here, each as the server of the other. Both
//! check what they receive.

use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::agent::{Agent, Handle};
use crate::peer::{Family, Result, Route};
use crate::runner::{Cell, Filter, ROUTES};

/// Message sizes in bytes, each with the number of exchanges.
const SIZES: [(u32, u32); 3] = [(1, 300), (4096, 200), (1 << 20, 10)];
/// How long a program may take to listen, and then to finish.
const START_LIMIT: Duration = Duration::from_secs(20);
const RUN_LIMIT: Duration = Duration::from_secs(60);
/// First port for the programs' own exchange; every run takes the next one.
const FIRST_PORT: u16 = 18600;
/// State "listening" in the kernel's list of TCP sockets.
const LISTENING: &str = "0A";
const SOCKET_LISTS: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

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
    /// Indexes of its IPv4 and its IPv6 address in its GID table.
    pub gid_indexes: [u32; 2],
}

impl Station {
    fn gid_index(&self, route: Route) -> u32 {
        self.gid_indexes[usize::from(route.family == Family::V6)]
    }
}

/// One run of the two programs.
#[derive(Clone, Copy, Debug)]
struct Job {
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
    /// Runs every wanted size over every route, both ways; `seen` gets each row of cells as it is done.
    pub fn run(&mut self, filter: &Filter, mut seen: impl FnMut(&[Cell])) -> Vec<Cell> {
        let (mut cells, mut port) = (Vec::new(), FIRST_PORT);
        for (route, (size, exchanges)) in ROUTES.iter().flat_map(|route| SIZES.map(|size| (*route, size))) {
            if !filter.wants(&name(size)) {
                continue;
            }
            let row = [Server::Guest, Server::Own].map(|server| {
                port += 1;
                self.cell(Job { route, size, exchanges, port }, server)
            });
            seen(&row);
            cells.extend(row);
        }
        cells
    }

    fn cell(&mut self, job: Job, server: Server) -> Cell {
        let start = Instant::now();
        let failure = self.attempt(job, server).err().map(|error| error.to_string());
        let direction = if server == Server::Guest { "uRoCE to rxe" } else { "rxe to uRoCE" };
        Cell {
            scenario: name(job.size),
            route: job.route.to_string(),
            direction: direction.into(),
            time: start.elapsed(),
            failure,
        }
    }

    fn attempt(&mut self, job: Job, server: Server) -> Result<()> {
        let (own, guest) = match server {
            Server::Guest => {
                let guest = self.start_guest(job, None)?;
                self.await_guest_listening(job.port)?;
                (self.start_own(job, Some(self.guest.host))?, guest)
            }
            Server::Own => {
                let own = self.start_own(job, None)?;
                await_own_listening(job.port)?;
                let host = self.own.host;
                (own, self.start_guest(job, Some(host))?)
            }
        };
        let own = own.finish();
        // When ours failed, theirs would only wait for it.
        let limit = if own.is_ok() { RUN_LIMIT } else { Duration::ZERO };
        let guest = self.finish_guest(guest, limit);
        own.and(guest)
    }

    fn start_own(&self, job: Job, host: Option<Ipv4Addr>) -> Result<Local> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(&self.program).args(["pingpong", &self.interface]);
        command.args(host.map(|host| host.to_string())).args(options(job, self.own.gid_index(job.route)));
        Ok(Local(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?))
    }

    fn start_guest(&mut self, job: Job, host: Option<Ipv4Addr>) -> Result<Handle> {
        let options = options(job, self.guest.gid_index(job.route));
        let words = ["ibv_rc_pingpong", "-d", "rxe0"].into_iter().chain(options.iter().map(String::as_str));
        let host = host.map(|host| host.to_string());
        Ok(self.agent.spawn(&words.chain(host.as_deref()).collect::<Vec<_>>())?)
    }

    fn await_guest_listening(&mut self, port: u16) -> Result<()> {
        until("ibv_rc_pingpong in the guest", || {
            let lists = SOCKET_LISTS.map(|path| self.agent.read_file(path));
            lists
                .into_iter()
                .any(|list| list.is_ok_and(|list| listens(&String::from_utf8_lossy(&list), port)))
        })
    }

    fn finish_guest(&mut self, program: Handle, limit: Duration) -> Result<()> {
        let state = self.agent.wait(program, limit)?;
        self.agent.close(program)?;
        match state.exit {
            Some(0) => Ok(()),
            Some(code) => Err(format!("ibv_rc_pingpong ended with {code}: {}", state.output.trim()).into()),
            None => {
                Err(format!("ibv_rc_pingpong did not end within {limit:?}: {}", state.output.trim()).into())
            }
        }
    }
}

fn name(size: u32) -> String {
    format!("rc_pingpong/{size}")
}

/// The options both programs share; `-c` checks what arrives.
fn options(job: Job, gid_index: u32) -> Vec<String> {
    let numbers = [
        ("-g", gid_index),
        ("-p", u32::from(job.port)),
        ("-s", job.size),
        ("-m", job.route.mtu),
        ("-n", job.exchanges),
    ];
    let words = numbers.into_iter().flat_map(|(option, number)| [option.to_owned(), number.to_string()]);
    words.chain(["-c".to_owned()]).collect()
}

fn await_own_listening(port: u16) -> Result<()> {
    until("uroce pingpong", || {
        SOCKET_LISTS.iter().any(|path| fs::read_to_string(path).is_ok_and(|list| listens(&list, port)))
    })
}

/// Waits until `ready` says so.
fn until(who: &str, mut ready: impl FnMut() -> bool) -> Result<()> {
    let limit = Instant::now() + START_LIMIT;
    while !ready() {
        if Instant::now() > limit {
            return Err(format!("{who} does not listen after {START_LIMIT:?}").into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Whether a port is listened on, by the kernel's list of TCP sockets.
fn listens(list: &str, port: u16) -> bool {
    let wanted = format!(":{port:04X}");
    list.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        fields.next().is_some_and(|local| local.ends_with(&wanted)) && fields.nth(1) == Some(LISTENING)
    })
}

/// A program of ours, killed when dropped.
struct Local(Child);

impl Local {
    fn finish(mut self) -> Result<()> {
        let limit = Instant::now() + RUN_LIMIT;
        loop {
            match self.0.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => {
                    return Err(format!("uroce pingpong ended with {status}: {}", self.said()).into());
                }
                None if Instant::now() > limit => {
                    return Err(format!("uroce pingpong did not end within {RUN_LIMIT:?}").into());
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// What an ended program wrote to its standard error: too little to fill a pipe.
    fn said(&mut self) -> String {
        let stderr = self.0.stderr.take().and_then(|stderr| std::io::read_to_string(stderr).ok());
        stderr.unwrap_or_default().trim().to_owned()
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        // Both fail only when it has ended and been waited for.
        let _ = self.0.kill();
        let _: std::io::Result<ExitStatus> = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::listens;

    const LIST: &str = "  sl  local_address rem_address   st\n   0: 00000000:48A9 00000000:0000 0A 0000\n   \
                        1: 0100000A:48AA 0200000A:9999 01 0000\n";

    #[test]
    fn only_listening_sockets_count() {
        assert!(listens(LIST, 0x48a9));
        assert!(!listens(LIST, 0x48aa));
        assert!(!listens(LIST, 1));
    }
}
