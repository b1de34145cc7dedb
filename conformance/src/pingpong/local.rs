//! A program of ours while it runs.

use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::peer::Result;

/// A program of ours, killed when dropped.
pub(super) struct Local(Child);

impl Local {
    /// Starts it with nothing to read; it dies with this process.
    pub(super) fn start(program: &std::path::Path, words: &[String]) -> Result<Self> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program).args(words);
        Ok(Self(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?))
    }

    /// Waits until it has ended well, at most the given time.
    pub(super) fn finish(mut self, limit: Duration) -> Result<()> {
        let end = Instant::now() + limit;
        loop {
            match self.0.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => {
                    return Err(format!("uroce pingpong ended with {status}: {}", self.said()).into());
                }
                None if Instant::now() > end => {
                    return Err(format!("uroce pingpong did not end within {limit:?}").into());
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
