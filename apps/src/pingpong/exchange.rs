//! The exchange of `ibv_rc_pingpong`: each end says `LID:QPN:PSN:GID` with a NUL, the client then says `done`.

use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::time::Duration;

use uroce::Endpoint;

use crate::clock::Stopwatch;
use crate::control::{self, PATIENCE};
use crate::error::{Failure, Result};
use crate::{interrupt, out, tcp};

/// Digits, colons and the NUL.
const MESSAGE: usize = 4 + 1 + 6 + 1 + 6 + 1 + 32 + 1;
const DONE: &[u8] = b"done\0";
/// Between two looks at the stream.
const PERIOD: Duration = Duration::from_micros(500);

/// One end of it.
#[derive(Debug)]
pub(super) struct Exchange {
    stream: TcpStream,
}

impl Exchange {
    pub(super) fn connect(host: &str, port: u16) -> Result<Self> {
        Ok(Self { stream: tcp::connect(host, port, Duration::ZERO)? })
    }

    pub(super) fn accept(port: u16) -> Result<Self> {
        let listener = tcp::listen(port)?;
        out::note(format_args!("waiting for a client on TCP port {port}"));
        Ok(Self { stream: tcp::accept(&listener)?.0 })
    }

    /// Says who we are.
    pub(super) fn tell(&mut self, endpoint: &Endpoint) -> Result<()> {
        control::write_all(&mut self.stream, format!("{endpoint}\0").as_bytes())
    }

    /// Hears who the peer is.
    pub(super) fn hear(&mut self) -> Result<Endpoint> {
        let mut message = [0; MESSAGE];
        self.read(&mut message)?;
        parse(&message)
    }

    pub(super) fn done(&mut self) -> Result<()> {
        control::write_all(&mut self.stream, DONE)
    }

    pub(super) fn hear_done(&mut self) -> Result<()> {
        // Some say it without the NUL.
        let mut message = [0; DONE.len() - 1];
        self.read(&mut message)?;
        if DONE.starts_with(&message) {
            return Ok(());
        }
        Err(Failure::new(
            "the client did not say that it is done: it is not ibv_rc_pingpong, nor uroce pingpong",
        ))
    }

    fn read(&mut self, into: &mut [u8]) -> Result<()> {
        let stopwatch = Stopwatch::start();
        let mut filled = 0;
        while filled < into.len() {
            match self.stream.read(&mut into[filled..]) {
                Ok(0) => return Err(Failure::PeerGone),
                Ok(count) => filled += count,
                Err(error) if control::is_transient(&error) => wait(stopwatch)?,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Err(Failure::PeerGone),
                Err(error) => return Err(Failure::new(format!("cannot hear the peer: {error}"))),
            }
        }
        Ok(())
    }
}

fn wait(stopwatch: Stopwatch) -> Result<()> {
    if stopwatch.elapsed() < PATIENCE {
        return interrupt::pause_unless_asked(PERIOD);
    }
    let seconds = PATIENCE.as_secs();
    Err(Failure::new(format!(
        "the peer said nothing for {seconds} s; is it ibv_rc_pingpong, or uroce pingpong?"
    )))
}

fn parse(message: &[u8]) -> Result<Endpoint> {
    let text = String::from_utf8_lossy(message);
    text.parse().map_err(|error| Failure::new(format!("the peer is no pingpong program: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_has_the_length_of_the_other_program() {
        let text = "0000:0000a1:00beef:fe80000000000000021122fffe334455\0";
        assert_eq!(text.len(), MESSAGE);
        let endpoint = parse(text.as_bytes()).unwrap();
        assert_eq!(format!("{endpoint}\0"), text);
    }

    #[test]
    fn a_stranger_is_refused() {
        let error = parse(b"SSH-2.0-OpenSSH_9.2").unwrap_err().to_string();
        assert!(error.contains("no pingpong program"), "{error}");
    }
}
