//! The exchange of the pingpong programs of rdma-core: each end says `LID:QPN:PSN:GID` with a NUL for each of its
//! addresses, the client then says `done`.

use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::time::Duration;

use uroce::{Endpoint, Gid, Psn, Qpn};

use super::service::Service;
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
    service: Service,
}

impl Exchange {
    pub(super) fn connect(host: &str, port: u16, service: Service) -> Result<Self> {
        Ok(Self { stream: tcp::connect(host, port, Duration::ZERO)?, service })
    }

    pub(super) fn accept(port: u16, service: Service) -> Result<Self> {
        let listener = tcp::listen(port)?;
        out::note(format_args!("waiting for a client on TCP port {port}"));
        Ok(Self { stream: tcp::accept(&listener)?.0, service })
    }

    /// Says who we are.
    pub(super) fn tell(&mut self, ours: &[Endpoint]) -> Result<()> {
        let nobody = Endpoint { gid: Gid::from_bytes([0; 16]), qpn: Qpn::new(0), psn: Psn::new(0) };
        let all = ours.iter().chain(std::iter::repeat(&nobody)).take(self.service.slots());
        let text: String = all.map(|endpoint| format!("{endpoint}\0")).collect();
        control::write_all(&mut self.stream, text.as_bytes())
    }

    /// Hears who the peer is: as many addresses as we have.
    pub(super) fn hear(&mut self, count: usize) -> Result<Vec<Endpoint>> {
        let mut messages = vec![0; MESSAGE * self.service.slots()];
        self.read(&mut messages)?;
        let all = messages.chunks(MESSAGE).map(parse).collect::<Result<Vec<_>>>()?;
        let theirs: Vec<Endpoint> = all.into_iter().take_while(|endpoint| endpoint.qpn.get() != 0).collect();
        if theirs.len() == count {
            return Ok(theirs);
        }
        let theirs = theirs.len();
        Err(Failure::new(format!(
            "the peer has {theirs} queue pairs and we have {count}: give the same -q at both ends"
        )))
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
        let program = self.service.program();
        Err(Failure::new(format!(
            "the client did not say that it is done: it is not {program}, nor uroce pingpong with our options"
        )))
    }

    fn read(&mut self, into: &mut [u8]) -> Result<()> {
        let stopwatch = Stopwatch::start();
        let mut filled = 0;
        while filled < into.len() {
            match self.stream.read(&mut into[filled..]) {
                Ok(0) => return Err(Failure::PeerGone),
                Ok(count) => filled += count,
                Err(error) if control::is_transient(&error) => self.wait(stopwatch)?,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Err(Failure::PeerGone),
                Err(error) => return Err(Failure::new(format!("cannot hear the peer: {error}"))),
            }
        }
        Ok(())
    }

    fn wait(&self, stopwatch: Stopwatch) -> Result<()> {
        if stopwatch.elapsed() < PATIENCE {
            return interrupt::pause_unless_asked(PERIOD);
        }
        let (seconds, program) = (PATIENCE.as_secs(), self.service.program());
        Err(Failure::new(format!(
            "the peer said too little for {seconds} s; is it {program}, or uroce pingpong with our options?"
        )))
    }
}

fn parse(message: &[u8]) -> Result<Endpoint> {
    let text = String::from_utf8_lossy(message);
    text.parse().map_err(|error| Failure::new(format!("the peer is no pingpong program: {error}")))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use super::super::service::SLOTS;
    use super::*;

    const TEXT: &str = "0000:0000a1:00beef:fe80000000000000021122fffe334455\0";

    /// An exchange, and the stream of its peer.
    fn exchange(service: Service) -> (Exchange, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        stream.set_nonblocking(true).unwrap();
        (Exchange { stream, service }, peer)
    }

    #[test]
    fn the_message_has_the_length_of_the_other_program() {
        assert_eq!(TEXT.len(), MESSAGE);
        let endpoint = parse(TEXT.as_bytes()).unwrap();
        assert_eq!(format!("{endpoint}\0"), TEXT);
    }

    #[test]
    fn a_stranger_is_refused() {
        let error = parse(b"SSH-2.0-OpenSSH_9.2").unwrap_err().to_string();
        assert!(error.contains("no pingpong program"), "{error}");
    }

    #[test]
    fn with_a_shared_receive_queue_all_slots_are_said() {
        let (mut ours, mut peer) = exchange(Service::Srq);
        let endpoint = parse(TEXT.as_bytes()).unwrap();
        ours.tell(&[endpoint; 3]).unwrap();
        let mut said = vec![0; MESSAGE * SLOTS];
        peer.read_exact(&mut said).unwrap();
        assert_eq!(said[..3 * MESSAGE], *TEXT.repeat(3).as_bytes());
        assert_eq!(said[3 * MESSAGE..4 * MESSAGE], *b"0000:000000:000000:00000000000000000000000000000000\0");
        for (count, right) in [(3, true), (4, false)] {
            peer.write_all(&said).unwrap();
            assert_eq!(ours.hear(count).is_ok(), right);
        }
    }

    #[test]
    fn one_address_is_one_message() {
        let (mut ours, mut peer) = exchange(Service::Ud);
        peer.write_all(TEXT.as_bytes()).unwrap();
        peer.write_all(b"done\0").unwrap();
        assert_eq!(ours.hear(1).unwrap().len(), 1);
        ours.hear_done().unwrap();
    }
}
