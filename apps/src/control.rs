//! How two of our processes talk before, between and after the packets: lines of JSON over a stream.
//!
//! Streams never block: whoever waits looks at them between two rounds of whatever else it does, and so notices also
//! Ctrl-C and a peer that ended.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::clock::Stopwatch;
use crate::error::{Context, Failure, Result};
use crate::{interrupt, tcp};

/// A line that is longer than this is not one of ours.
const MAX_LINE: usize = 1 << 20;
/// How long a peer may take for an answer that it has at hand.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at a stream.
const PERIOD: Duration = Duration::from_micros(500);

/// One end of a conversation.
#[derive(Debug)]
pub(crate) struct Control<S = TcpStream> {
    stream: S,
    received: Vec<u8>,
}

impl Control<UnixStream> {
    /// Both ends, for two threads.
    pub(crate) fn pair() -> Result<(Self, Self)> {
        let (one, other) = UnixStream::pair().context("cannot make a pair of sockets")?;
        for end in [&one, &other] {
            end.set_nonblocking(true).context("cannot set up a socket")?;
        }
        Ok((Self::new(one), Self::new(other)))
    }
}

impl Control<TcpStream> {
    /// Takes the next one who connects to `listener`, however long it takes.
    pub(crate) fn accept(listener: &TcpListener) -> Result<(Self, SocketAddr)> {
        let (stream, peer) = tcp::accept(listener)?;
        Ok((Self::new(stream), peer))
    }

    /// Connects to a peer.
    pub(crate) fn connect(host: &str, port: u16) -> Result<Self> {
        tcp::connect(host, port, Duration::ZERO).map(Self::new)
    }

    /// Connects to a peer that may not be ready yet.
    pub(crate) fn connect_within(host: &str, port: u16, patience: Duration) -> Result<Self> {
        tcp::connect(host, port, patience).map(Self::new)
    }
}

impl<S: Read + Write> Control<S> {
    const fn new(stream: S) -> Self {
        Self { stream, received: Vec::new() }
    }

    /// Tells the peer something.
    pub(crate) fn send(&mut self, message: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_vec(message).map_err(|error| Failure::new(error.to_string()))?;
        line.push(b'\n');
        write_all(&mut self.stream, &line)
    }

    /// What the peer says next, within [`PATIENCE`].
    pub(crate) fn receive<T: DeserializeOwned>(&mut self) -> Result<T> {
        let stopwatch = Stopwatch::start();
        loop {
            if let Some(message) = self.poll()? {
                return Ok(message);
            }
            if stopwatch.elapsed() > PATIENCE {
                let seconds = PATIENCE.as_secs();
                return Err(Failure::new(format!(
                    "the peer said nothing for {seconds} s; is it a uroce that runs the same command?"
                )));
            }
            interrupt::pause_unless_asked(PERIOD)?;
        }
    }

    /// What the peer says next, however long it takes.
    pub(crate) fn wait<T: DeserializeOwned>(&mut self) -> Result<T> {
        loop {
            if let Some(message) = self.poll()? {
                return Ok(message);
            }
            interrupt::pause_unless_asked(PERIOD)?;
        }
    }

    /// What the peer has said, if anything. An error when it is gone.
    pub(crate) fn poll<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        if let Some(line) = self.take_line() {
            return parse(&line).map(Some);
        }
        let mut chunk = [0; 4096];
        match self.stream.read(&mut chunk) {
            Ok(0) => Err(Failure::PeerGone),
            Ok(count) => {
                self.received.extend_from_slice(&chunk[..count]);
                self.check_length()?;
                self.take_line().map(|line| parse(&line)).transpose()
            }
            Err(error) if is_transient(&error) => Ok(None),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Err(Failure::PeerGone),
            Err(error) => Err(Failure::new(format!("cannot hear the peer: {error}"))),
        }
    }

    fn take_line(&mut self) -> Option<Vec<u8>> {
        let end = self.received.iter().position(|&byte| byte == b'\n')?;
        Some(self.received.drain(..=end).collect())
    }

    fn check_length(&self) -> Result<()> {
        if self.received.len() <= MAX_LINE {
            return Ok(());
        }
        Err(Failure::new("the peer sends something endless: it is not a uroce that runs the same command"))
    }
}

/// Writes all of `bytes` to a stream that never blocks.
pub(crate) fn write_all(stream: &mut impl Write, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if is_transient(&error) => interrupt::pause_unless_asked(PERIOD)?,
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                return Err(Failure::PeerGone);
            }
            Err(error) => return Err(Failure::new(format!("cannot talk to the peer: {error}"))),
        }
    }
    Ok(())
}

/// Whether to try again later.
pub(crate) fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T> {
    serde_json::from_slice(line).map_err(|error| {
        Failure::new(format!("the peer speaks otherwise than this uroce ({error}): run the same command and version at both ends"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_arrive_in_order_and_whole() {
        let (mut one, mut other) = Control::pair().unwrap();
        one.send(&1u32).unwrap();
        one.send(&"two").unwrap();
        assert_eq!(other.receive::<u32>().unwrap(), 1);
        assert_eq!(other.receive::<String>().unwrap(), "two");
        assert_eq!(other.poll::<u32>().unwrap(), None);
    }

    #[test]
    fn half_a_line_is_kept_until_the_rest_comes() {
        let (mut one, mut other) = Control::pair().unwrap();
        one.stream.write_all(b"12").unwrap();
        assert_eq!(other.poll::<u32>().unwrap(), None);
        one.stream.write_all(b"34\n").unwrap();
        assert_eq!(other.receive::<u32>().unwrap(), 1234);
    }

    #[test]
    fn a_peer_that_went_away_is_told_apart_from_one_that_is_silent() {
        let (one, mut other) = Control::pair().unwrap();
        assert!(other.poll::<u32>().unwrap().is_none());
        drop(one);
        assert!(other.poll::<u32>().unwrap_err().to_string().contains("closed the connection"));
    }

    #[test]
    fn strangers_are_refused() {
        let (mut one, mut other) = Control::pair().unwrap();
        one.stream.write_all(b"GET / HTTP/1.1\n").unwrap();
        assert!(other.receive::<u32>().unwrap_err().to_string().contains("speaks otherwise"));
    }
}
