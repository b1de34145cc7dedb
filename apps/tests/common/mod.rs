//! Running the built command, here and in network namespaces.
#![allow(dead_code, reason = "each test program uses its own part")]

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use uroce_nic::testing::{Namespace, VethPair};

/// The command.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_uroce");
/// How long any command may take before it counts as hanging.
const LIMIT: Duration = Duration::from_secs(60);
const PERIOD: Duration = Duration::from_millis(20);

/// Runs the command to its end.
pub(crate) fn uroce(words: &str) -> Ended {
    start_here(words).wait()
}

/// Starts the command.
pub(crate) fn start_here(words: &str) -> Running {
    start(Command::new(PROGRAM).args(words.split_whitespace()))
}

/// Runs the command in a namespace to its end.
pub(crate) fn uroce_in(namespace: &Namespace, words: &str) -> Ended {
    start_in(namespace, words).wait()
}

/// Starts the command in a namespace.
pub(crate) fn start_in(namespace: &Namespace, words: &str) -> Running {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace.name(), PROGRAM]).args(words.split_whitespace());
    start(&mut command)
}

/// Starts a server and returns once it listens, as it says on standard error.
pub(crate) fn serve_in(namespace: &Namespace, words: &str) -> Running {
    let mut running = start_in(namespace, words);
    running.await_stderr("waiting for");
    running
}

fn start(command: &mut Command) -> Running {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    let stderr = child.stderr.take().expect("it was piped");
    Running { child: Some(child), stderr: BufReader::new(stderr), said: String::new() }
}

/// A command under way; killed when dropped.
pub(crate) struct Running {
    child: Option<Child>,
    stderr: BufReader<std::process::ChildStderr>,
    said: String,
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Running {
    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    /// Sends it a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &pid]).status();
        assert!(sent.is_ok_and(|status| status.success()), "kill -{name} {pid}");
    }

    /// Waits until it has ended; a command that hangs is killed and fails the test.
    pub(crate) fn wait(mut self) -> Ended {
        let mut child = self.child.take().expect("it runs");
        let stdout = child.stdout.take().expect("it was piped");
        let reader = std::thread::spawn(move || text(stdout));
        let status = wait(&mut child);
        let stdout = reader.join().expect("reading does not panic");
        let stderr = std::mem::take(&mut self.said) + &text(&mut self.stderr);
        let status = status.unwrap_or_else(|| panic!("it hung; it had said:\n{stdout}\n{stderr}"));
        Ended { status, stdout, stderr }
    }

    /// Waits until it has said this on standard error; returns all that it has said.
    pub(crate) fn await_stderr(&mut self, wanted: &str) -> String {
        while !self.said.contains(wanted) {
            let read = self.stderr.read_line(&mut self.said).expect("standard error is text");
            assert!(read > 0, "it ended early and said:\n{}", self.said);
        }
        self.said.clone()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Ended {
    /// It did what it should; returns what it printed.
    #[track_caller]
    pub(crate) fn good(self) -> String {
        assert!(self.status.success(), "{self:#?}");
        self.stdout
    }

    /// It did what it should and printed JSON.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        let stdout = self.good();
        serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}:\n{stdout}"))
    }

    /// It ended with this status and said on standard error each of `words`, in one line without a panic.
    #[track_caller]
    pub(crate) fn failed(&self, status: i32, words: &[&str]) {
        assert_eq!(self.status.code(), Some(status), "{self:#?}");
        assert!(!self.stderr.contains("panicked"), "{self:#?}");
        let last = self.stderr.trim().lines().find(|line| words.iter().all(|word| line.contains(word)));
        assert!(last.is_some(), "no line with {words:?} in {self:#?}");
    }
}

fn wait(child: &mut Child) -> Option<ExitStatus> {
    for _ in 0..LIMIT.as_millis() / PERIOD.as_millis() {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return Some(status);
        }
        pause(PERIOD);
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

fn text(mut from: impl Read) -> String {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).expect("a pipe can be read");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Lets time pass.
#[expect(clippy::disallowed_methods, reason = "tests wait for processes")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// The numbers under these names, all above zero.
#[track_caller]
pub(crate) fn positive(value: &Value, names: &[&str]) {
    for name in names {
        assert!(value[name].as_f64().is_some_and(|number| number > 0.0), "{name} in {value}");
    }
}

/// Whether an XDP program is attached to the interface of a namespace.
pub(crate) fn is_attached(namespace: &Namespace) -> bool {
    let shown =
        Command::new("ip").args(["-n", namespace.name(), "link", "show", VethPair::INTERFACE]).output();
    let shown: Output = shown.expect("ip runs");
    String::from_utf8_lossy(&shown.stdout).contains("xdp")
}

/// The network namespaces that have names.
pub(crate) fn namespaces() -> String {
    let list = Command::new("ip").args(["netns", "list"]).output().expect("ip runs");
    String::from_utf8_lossy(&list.stdout).into_owned()
}

/// One test with a network at a time: they measure times, and there may be two cores only.
pub(crate) fn one_at_a_time() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Two namespaces with a link of this MTU that AF_XDP can be used on, or why there are none.
pub(crate) fn link(mtu: u32) -> Result<VethPair, String> {
    let pair = VethPair::new("apps", mtu).map_err(|reason| reason.to_string())?;
    let opened = pair.left.inside(|| uroce_nic::probe::xdp(VethPair::INTERFACE));
    match opened {
        Ok(support) if support.native || support.generic => Ok(pair),
        Ok(support) => Err(support.reasons.join(", ")),
        Err(error) => Err(error.to_string()),
    }
}
