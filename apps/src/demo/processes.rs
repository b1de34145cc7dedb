//! The two processes of the demo: this program again, once in each namespace.
//!
//! A child tells its parent on standard output, in lines of JSON, what it has done. It ends when its standard input
//! does: also a parent that was killed leaves no child behind.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uroce::Context;

use super::case::{self, Row};
use super::lab::Lab;
use crate::error::{Context as _, Failure, Result};
use crate::{interrupt, out};

/// Between two looks at the children.
const PERIOD: Duration = Duration::from_millis(10);

/// What a child tells.
#[derive(Debug, Serialize, Deserialize)]
enum Event {
    /// Its device is open.
    Opened { backend: String },
    /// A case is done.
    Done(Row),
}

/// Runs the demo in both namespaces. The inner error tells why this machine cannot.
pub(crate) fn run(lab: &Lab, bar: bool) -> Result<Outcome> {
    let program = std::env::current_exe().context("cannot find out which program this is")?;
    let host = lab.server.address;
    let peer = |end: &super::lab::End, role| {
        let mut command = end.command(&program);
        command.args(["demo-peer", role, &end.name, host]);
        command
    };
    let (events, told) = channel();
    let server = Process::start("server", peer(&lab.server, "server"), events.clone())?;
    let client = Process::start("client", peer(&lab.client, "client"), events)?;
    Follower { server, client, told, opened: 0, shown: super::Shown::new(bar) }.run()
}

/// In a child: ends this process when the parent does.
pub(crate) fn end_with_parent() {
    std::thread::spawn(|| {
        let mut nothing = [0; 1];
        while matches!(std::io::stdin().read(&mut nothing), Ok(1..)) {}
        interrupt::ask();
    });
}

/// In a child: tells that its device is open.
pub(crate) fn opened(ctx: &Context) -> Result<()> {
    tell(&Event::Opened { backend: ctx.query_port().mode.to_string() })
}

/// In a child: tells that a case is done.
pub(crate) fn done(row: &Row) -> Result<()> {
    tell(&Event::Done(row.clone()))
}

fn tell(event: &Event) -> Result<()> {
    out::line(serde_json::to_string(event).map_err(|error| Failure::new(error.to_string()))?)
}

/// What the demo came to; the inner error tells why this machine cannot run it.
type Outcome = Result<Vec<Row>, String>;

/// The demo as its parent sees it.
struct Follower {
    server: Process,
    client: Process,
    told: Receiver<Event>,
    opened: u32,
    shown: super::Shown,
}

impl Follower {
    /// Until both have ended, or one has failed.
    fn run(mut self) -> Result<Outcome> {
        loop {
            interrupt::pause_unless_asked(PERIOD)?;
            let ended = [self.server.ended()?, self.client.ended()?];
            self.listen();
            match ended {
                [_, Some(true)] if self.shown.rows.len() == case::all().len() => {
                    return Ok(Ok(self.shown.rows));
                }
                [_, Some(true)] => return Err(Failure::new("the demo ended early; this is a bug")),
                [Some(false), None] if self.server.lost_its_peer() => {}
                [Some(false), Some(false)] if self.server.lost_its_peer() => {
                    return self.client.failure(self.opened);
                }
                [Some(false), _] => return self.server.failure(self.opened),
                [None, Some(false)] if self.client.lost_its_peer() => {}
                [_, Some(false)] => return self.client.failure(self.opened),
                [_, None] => {}
            }
        }
    }

    fn listen(&mut self) {
        for event in self.told.try_iter() {
            match event {
                Event::Opened { backend } => {
                    self.opened += 1;
                    tracing::debug!(backend, "a process of the demo has opened its device");
                }
                Event::Done(row) => self.shown.row(row),
            }
        }
    }
}

/// A child, killed when dropped.
struct Process {
    role: &'static str,
    child: Child,
    /// Held open as long as the child shall live.
    _stdin: Option<ChildStdin>,
    stdout: Option<JoinHandle<()>>,
    stderr: Option<JoinHandle<String>>,
    /// The last line of its standard error, once it has ended.
    reason: String,
}

impl Process {
    fn start(role: &'static str, mut command: Command, events: Sender<Event>) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context(format_args!("cannot start the {role} of the demo"))?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().map(|stdout| std::thread::spawn(move || forward(stdout, &events)));
        let stderr = child.stderr.take().map(|stderr| std::thread::spawn(move || collect(stderr)));
        Ok(Self { role, child, _stdin: stdin, stdout, stderr, reason: String::new() })
    }

    /// Whether it has ended, and if so whether well. All it told has arrived then.
    fn ended(&mut self) -> Result<Option<bool>> {
        let status = self.child.try_wait().context("cannot look after the processes of the demo")?;
        if status.is_some() {
            self.hear_out();
        }
        Ok(status.map(|status| status.success()))
    }

    fn hear_out(&mut self) {
        if let Some(stdout) = self.stdout.take() {
            // It has nothing to return; if it panicked, rows are missing, which is noticed.
            let _ = stdout.join();
        }
        if let Some(stderr) = self.stderr.take() {
            let said = stderr.join().unwrap_or_default();
            let last = said.trim().lines().last().unwrap_or("it did not say why");
            self.reason = last.trim_start_matches("uroce: ").to_owned();
        }
    }

    /// Whether it failed only because the other one did.
    fn lost_its_peer(&self) -> bool {
        self.reason == Failure::PeerGone.to_string()
    }

    /// Why it failed: the outer error if the demo was under way, the inner one if the machine cannot run it.
    fn failure(&self, opened: u32) -> Result<Outcome> {
        interrupt::check()?;
        if opened < 2 {
            Ok(Err(self.reason.clone()))
        } else {
            Err(Failure::new(format!("the {} of the demo failed: {}", self.role, self.reason)))
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only when it has ended already. Whatever it had attached goes with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn forward(stdout: impl Read, events: &Sender<Event>) {
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        let Ok(event) = serde_json::from_str(&line) else { return };
        if events.send(event).is_err() {
            return;
        }
    }
}

fn collect(mut stderr: impl Read) -> String {
    let mut text = Vec::new();
    // What was read before an error is still of use.
    let _ = stderr.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}
