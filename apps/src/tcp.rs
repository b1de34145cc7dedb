//! TCP connections between the two ends, as streams that never block.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::clock::Stopwatch;
use crate::control::is_transient;
use crate::error::{Context, Failure, Result};
use crate::interrupt;

/// How long to try to reach an address.
const CONNECT: Duration = Duration::from_secs(5);
/// Between two looks at a listener, or two attempts to connect.
const PERIOD: Duration = Duration::from_millis(20);

/// Listens on a port of every address.
pub(crate) fn listen(port: u16) -> Result<TcpListener> {
    let any: [SocketAddr; 2] = [([0u16; 8], port).into(), ([0u8; 4], port).into()];
    bind(&any).map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => Failure::new(format!(
            "TCP port {port} is in use: another server runs already; stop it, or choose another port with -p at both ends"
        )),
        _ => Failure::new(format!("cannot listen on TCP port {port}: {error}")),
    })
}

/// Listens at one address.
pub(crate) fn listen_at(address: SocketAddr) -> Result<TcpListener> {
    bind(&[address]).map_err(|error| {
        Failure::new(format!("cannot listen at {address} ({error}): choose another address or port"))
    })
}

fn bind(addresses: &[SocketAddr]) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(addresses)?;
    listener.set_nonblocking(true).map(|()| listener)
}

/// Takes the next one who connects, as a stream that never blocks.
pub(crate) fn accept(listener: &TcpListener) -> Result<(TcpStream, SocketAddr)> {
    loop {
        match listener.accept() {
            Ok((stream, peer)) => return Ok((prepared(stream)?, peer)),
            Err(error) if is_transient(&error) || error.kind() == ErrorKind::ConnectionAborted => {}
            Err(error) => return Err(Failure::new(format!("cannot accept a connection: {error}"))),
        }
        interrupt::pause_unless_asked(PERIOD)?;
    }
}

/// Connects, as a stream that never blocks. While nobody listens yet, tries again for `patience`.
pub(crate) fn connect(host: &str, port: u16, patience: Duration) -> Result<TcpStream> {
    let addresses = resolve(host, port)?;
    let stopwatch = Stopwatch::start();
    loop {
        match connect_any(&addresses) {
            Ok(stream) => return prepared(stream),
            Err(error) if stopwatch.elapsed() >= patience => return Err(unreachable(host, port, &error)),
            Err(_) => interrupt::pause_unless_asked(PERIOD)?,
        }
    }
}

/// The addresses of a host.
pub(crate) fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>> {
    let found = (host, port).to_socket_addrs();
    let found = found.map_err(|error| {
        Failure::new(format!(
            "{host} is no known host ({error}): give an IP address, or a name that resolves"
        ))
    })?;
    Ok(found.collect())
}

fn connect_any(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut result = Err(ErrorKind::AddrNotAvailable.into());
    for address in addresses {
        result = TcpStream::connect_timeout(address, CONNECT);
        if result.is_ok() {
            break;
        }
    }
    result
}

fn unreachable(host: &str, port: u16, error: &io::Error) -> Failure {
    let meaning = match error.kind() {
        ErrorKind::ConnectionRefused => {
            "nobody listens there: start the server first, the same command without HOST"
        }
        ErrorKind::TimedOut => {
            "nobody answers: check the address, the cable, and that no firewall drops the port"
        }
        _ => "check the address and `ip route get` of it",
    };
    Failure::new(format!("cannot reach {host} on TCP port {port} ({error}): {meaning}"))
}

fn prepared(stream: TcpStream) -> Result<TcpStream> {
    let set = stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true));
    set.context("cannot set up a socket").map(|()| stream)
}
