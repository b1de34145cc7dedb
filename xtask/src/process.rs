//! Running other programs, with errors that show the command line.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::cleanup::{self, Guard};
use crate::error::{Context, Failure, Result};

/// Runs a command to its end with the terminal's input and output; a non-zero status is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = status(command)?;
    if status.success() {
        Ok(())
    } else {
        Err(Failure::new(format!("`{}` ended with {status}", line(command))))
    }
}

/// Runs a command to its end with the terminal's input and output.
pub(crate) fn status(command: &mut Command) -> Result<ExitStatus> {
    Process::spawn(command)?.wait()
}

/// Runs a command to its end and hands each line it prints, on either stream, to `each` as it comes.
pub(crate) fn watch(mut command: Command, mut each: impl FnMut(&str)) -> Result<ExitStatus> {
    let (reader, writer) = std::io::pipe().context("making a pipe")?;
    let second = writer.try_clone().context("making a pipe")?;
    let process = Process::spawn(command.stdin(Stdio::null()).stdout(writer).stderr(second))?;
    drop(command); // its ends of the pipe must close, or the lines never end
    for line in BufReader::new(reader).split(b'\n') {
        each(&String::from_utf8_lossy(&line.context(&process.line)?));
    }
    process.wait()
}

/// Runs a command quietly and returns what it wrote to its standard output; a non-zero status is an error that
/// carries what the command said.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.output().context(format!("`{}`", line(command)))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Err(Failure::new(format!("`{}` ended with {}:\n{}", line(command), output.status, tail(&said, 20))))
}

/// The last `count` lines of a text.
pub(crate) fn tail(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// Whether a program of this name is in the search path.
pub(crate) fn exists(program: &str) -> bool {
    let Some(path) = std::env::var_os("PATH") else { return false };
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// A running program, killed when dropped or when the command is interrupted.
#[derive(Debug)]
pub(crate) struct Process {
    child: Arc<Mutex<Child>>,
    line: String,
    _guard: Guard,
}

impl Process {
    /// Starts a program.
    pub(crate) fn spawn(command: &mut Command) -> Result<Self> {
        let line = line(command);
        let child = Arc::new(Mutex::new(command.spawn().context(format!("`{line}`"))?));
        let doomed = Arc::clone(&child);
        let guard = Guard::new(move || end(&mut doomed.lock().unwrap_or_else(PoisonError::into_inner)));
        Ok(Self { child, line, _guard: guard })
    }

    /// Its status if it has ended.
    pub(crate) fn poll(&self) -> Result<Option<ExitStatus>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner).try_wait().context(&self.line)
    }

    /// Waits for its end. The child stays unlocked meanwhile, so that an interrupt can kill it.
    pub(crate) fn wait(&self) -> Result<ExitStatus> {
        loop {
            if let Some(status) = self.poll()? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// How long a program that got Ctrl-C from the terminal may take to end before it is asked to. Asking at once would be
/// a second signal, which many take as "stop cleaning up and go".
const OWN_TIME: Duration = Duration::from_secs(1);
/// How long a program may take once asked, before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// Ends a program: asks first, because it may have something of its own to undo.
fn end(child: &mut Child) {
    if ended(child) || (cleanup::is_interrupted() && ends_within(child, OWN_TIME)) {
        return;
    }
    // `kill` is built into every shell; it fails only when the program has just ended.
    let _ = Command::new("sh").arg("-c").arg(format!("kill -TERM {}", child.id())).status();
    if !ends_within(child, GRACE) {
        // Both fail only when it has ended and been waited for, which is what is wanted.
        let _ = child.kill();
        let _ = child.wait();
    }
}

fn ends_within(child: &mut Child, time: Duration) -> bool {
    let limit = Instant::now() + time;
    while !ended(child) {
        if Instant::now() > limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

fn ended(child: &mut Child) -> bool {
    !matches!(child.try_wait(), Ok(None))
}

/// The command as one would type it.
fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_command_is_named_with_what_it_said() {
        let error =
            output(Command::new("sh").args(["-c", "echo broken >&2; exit 3"])).unwrap_err().to_string();
        assert!(error.contains("exit 3") && error.contains("broken"), "{error}");
    }

    #[test]
    fn watching_sees_both_streams() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo err >&2; exit 4"]);
        let mut lines = Vec::new();
        let status = watch(command, |line| lines.push(line.to_owned())).unwrap();
        lines.sort();
        assert_eq!((status.code(), lines), (Some(4), vec!["err".into(), "out".into()]));
    }

    #[test]
    fn a_dropped_process_is_dead() {
        let process = Process::spawn(Command::new("sleep").arg("60")).unwrap();
        let pid = process.child.lock().unwrap().id();
        drop(process);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn tail_keeps_the_end() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
        assert_eq!(tail("a", 2), "a");
    }
}
