//! A program of ours while it runs.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::peer::Result;

/// A program of ours, killed when dropped.
#[derive(Debug)]
pub(crate) struct Local {
    child: Child,
    stderr: BufReader<ChildStderr>,
    said: String,
}

impl Local {
    /// Starts it with nothing to read; it dies with this process.
    pub(crate) fn start(program: &std::path::Path, words: &[String]) -> Result<Self> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let stderr = BufReader::new(child.stderr.take().ok_or("a program without standard error")?);
        Ok(Self { child, stderr, said: String::new() })
    }

    /// Waits until it has written a line with this text to its standard error.
    pub(crate) fn until_said(&mut self, text: &str) -> Result<()> {
        while !self.said.contains(text) {
            if self.stderr.read_line(&mut self.said)? == 0 {
                return Err(format!("uroce ended: {}", self.said.trim()).into());
            }
        }
        Ok(())
    }

    /// Waits until it has ended well, at most the given time.
    pub(crate) fn finish(mut self, limit: Duration) -> Result<()> {
        let end = Instant::now() + limit;
        loop {
            match self.child.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => {
                    return Err(format!("uroce ended with {status}: {}", self.said()).into());
                }
                None if Instant::now() > end => {
                    return Err(format!("uroce did not end within {limit:?}").into());
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    /// All that an ended program wrote to its standard error: too little to fill a pipe.
    fn said(&mut self) -> &str {
        // What could not be read is missing from the text, which explains a failure and nothing else.
        let _ = self.stderr.read_to_string(&mut self.said);
        self.said.trim()
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        // Both fail only when it has ended and been waited for.
        let _ = self.child.kill();
        let _: std::io::Result<ExitStatus> = self.child.wait();
    }
}
