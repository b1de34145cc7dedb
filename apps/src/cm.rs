//! Connections by address and port, as the connection manager makes them, in calls that Ctrl-C ends and that tell a person
//! why there is no connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use uroce::{
    CmEvent, CmEventType, CmId, ConnParam, Context, EventChannel, PortSpace, PreparedQueuePair, QueuePair,
    RejectReason,
};

use crate::clock::Stopwatch;
use crate::error::{Failure, Result};
use crate::{interrupt, tcp};

/// Between two looks for Ctrl-C.
pub(crate) const NAP: Duration = Duration::from_millis(100);
/// How long a peer may take to answer: three requests, and a slow machine. The connection manager itself would go on for
/// more than a minute.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long a peer is waited for that is told the end.
const FAREWELL: Duration = Duration::from_secs(2);

/// A connection. Dropping it closes it.
#[derive(Debug)]
pub(crate) struct Link {
    // Goes before the queue pair, so that the peer hears the end of a connection that still exists.
    id: CmId,
    pub(crate) qp: Arc<QueuePair>,
    channel: EventChannel,
    ended: bool,
    /// What the peer said as it granted; nothing on the side that was asked.
    pub(crate) said: Vec<u8>,
}

/// A peer whose address is known, before the connection.
#[derive(Debug)]
pub(crate) struct Resolved {
    id: CmId,
    channel: EventChannel,
    peer: SocketAddr,
}

/// Waits for peers.
#[derive(Debug)]
pub(crate) struct Listener {
    _id: CmId,
    channel: EventChannel,
}

/// A peer that asks for a connection.
#[derive(Debug)]
pub(crate) struct Asking {
    pub(crate) id: CmId,
    pub(crate) request: ConnParam,
}

/// Finds the way to a host.
pub(crate) fn resolve(ctx: &Context, host: &str, port: u16) -> Result<Resolved> {
    let addresses = tcp::resolve(host, port)?;
    let ours = ctx.gid().ip().is_ipv4();
    // A name may have both families; the GID that was chosen has one.
    let fitting = addresses.iter().find(|address| address.is_ipv4() == ours).or(addresses.first());
    let peer = *fitting.ok_or_else(|| Failure::new(format!("{host} has no address")))?;
    let channel = ctx.create_event_channel()?;
    let id = CmId::new(&channel, PortSpace::Tcp);
    id.resolve_addr(None, peer)?;
    expect(&channel, peer, CmEventType::AddrResolved)?;
    id.resolve_route()?;
    expect(&channel, peer, CmEventType::RouteResolved)?;
    Ok(Resolved { id, channel, peer })
}

impl Resolved {
    /// Connects a queue pair.
    pub(crate) fn connect(self, qp: PreparedQueuePair, param: &ConnParam) -> Result<Link> {
        let Self { id, channel, peer } = self;
        let qp = id.create_qp(qp)?;
        id.connect(param)?;
        let granted = expect(&channel, peer, CmEventType::Established)?;
        Ok(Link { id, qp, channel, ended: false, said: granted.private_data().to_vec() })
    }
}

impl Listener {
    /// Listens at an address of the device, or at all of them.
    pub(crate) fn bind(ctx: &Context, local: SocketAddr) -> Result<Self> {
        let channel = ctx.create_event_channel()?;
        let id = CmId::new(&channel, PortSpace::Tcp);
        id.bind_addr(local)?;
        id.listen(0)?;
        Ok(Self { _id: id, channel })
    }

    /// What happens next to it or to those whom it has heard; nothing when nothing does for a while.
    pub(crate) fn event(&self) -> Result<Option<CmEvent>> {
        interrupt::check()?;
        Ok(self.channel.get_event(Some(NAP))?)
    }

    /// The next peer that asks.
    pub(crate) fn wait(&self) -> Result<Asking> {
        loop {
            if let Some(asking) = self.event()?.and_then(Asking::of) {
                return Ok(asking);
            }
        }
    }
}

impl Asking {
    /// The peer of this event, if it is one that asks.
    pub(crate) fn of(event: CmEvent) -> Option<Self> {
        let asks = event.event == CmEventType::ConnectRequest;
        asks.then(|| Self { id: event.id, request: event.conn.unwrap_or_default() })
    }

    /// Who.
    pub(crate) fn peer(&self) -> SocketAddr {
        self.id.peer_addr().unwrap_or(([0; 4], 0).into())
    }

    /// What to grant: as many READs at a time as the peer asks for, and this word for its application.
    pub(crate) fn grant(&self, said: &[u8]) -> ConnParam {
        let ConnParam { responder_resources, initiator_depth, .. } = self.request;
        ConnParam { responder_resources, initiator_depth, ..ConnParam::default() }.private_data(said)
    }

    /// Grants the connection, and waits until the peer has confirmed it.
    pub(crate) fn accept(self, qp: PreparedQueuePair, said: &[u8]) -> Result<Link> {
        let (peer, param) = (self.peer(), self.grant(said));
        // A channel of its own: its events must not mix with those of others.
        let channel = self.id.context().create_event_channel()?;
        self.id.migrate(&channel);
        let qp = self.id.create_qp(qp)?;
        self.id.accept(&param)?;
        expect(&channel, peer, CmEventType::Established)?;
        Ok(Link { id: self.id, qp, channel, ended: false, said: Vec::new() })
    }
}

impl Link {
    /// Whether the peer has ended it.
    pub(crate) fn has_ended(&mut self) -> bool {
        let ends = |event: CmEvent| event.event == CmEventType::Disconnected;
        self.ended |= std::iter::from_fn(|| self.channel.try_get_event()).any(ends);
        self.ended
    }

    /// Ends it, or answers the peer who has, and waits a moment for the peer to know.
    pub(crate) fn disconnect(mut self) -> Result<()> {
        let heard = self.has_ended();
        self.id.disconnect()?;
        let stopwatch = Stopwatch::start();
        while !heard && !self.has_ended() && stopwatch.elapsed() < FAREWELL {
            if let Some(event) = self.channel.get_event(Some(NAP))? {
                self.ended |= event.event == CmEventType::Disconnected;
            }
        }
        Ok(())
    }
}

/// Waits for this event of a connection to be.
fn expect(channel: &EventChannel, peer: SocketAddr, wanted: CmEventType) -> Result<CmEvent> {
    let stopwatch = Stopwatch::start();
    while stopwatch.elapsed() < PATIENCE {
        interrupt::check()?;
        match channel.get_event(Some(NAP))? {
            Some(event) if event.event == wanted => return Ok(event),
            Some(event) => failed(&event, peer)?,
            None => {}
        }
    }
    Err(silent(peer))
}

/// Why there will be no connection, if the event says so.
pub(crate) fn failed(event: &CmEvent, peer: SocketAddr) -> Result<()> {
    match event.event {
        CmEventType::Rejected => Err(rejected(event, peer)),
        CmEventType::Unreachable => Err(silent(peer)),
        CmEventType::Disconnected => Err(Failure::PeerGone),
        CmEventType::AddrError | CmEventType::RouteError | CmEventType::ConnectError => {
            Err(uroce::Error::Unreachable { peer: Some(peer), status: event.status }.into())
        }
        _ => Ok(()),
    }
}

fn rejected(event: &CmEvent, peer: SocketAddr) -> Failure {
    let code = u16::try_from(event.status).unwrap_or_default();
    match RejectReason::from_code(code) {
        RejectReason::InvalidServiceId => Failure::new(format!(
            "nobody listens on port {} of {}: start the server there first, and give both ends the same port",
            peer.port(),
            peer.ip()
        )),
        RejectReason::ConsumerDefined => match said(event.private_data()) {
            Some(text) => Failure::new(format!("{peer} refused the connection: {text}")),
            None => Failure::new(format!(
                "{peer} refused the connection: another program may listen there, or it does not take us"
            )),
        },
        reason => Failure::new(format!("{peer} refused the connection: {reason}")),
    }
}

/// Private data as a text, which ends at the zeros that fill it up.
fn said(data: &[u8]) -> Option<String> {
    let end = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let text = String::from_utf8_lossy(&data[..end]);
    // What a peer says must not move the cursor of a terminal.
    let text: String = text.chars().filter(|letter| !letter.is_control()).collect();
    Some(text).filter(|text| !text.is_empty())
}

fn silent(peer: SocketAddr) -> Failure {
    Failure::new(format!(
        "nobody answers at {peer}: check that the server runs there on the interface of this address, and that UDP port \
         4791 is open at both ends"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_peer_says_is_harmless_text() {
        assert_eq!(said(b"no room\0\0\0"), Some("no room".to_owned()));
        assert_eq!(said(b"\x1b[2Jgone"), Some("[2Jgone".to_owned()));
        assert_eq!((said(b""), said(&[0; 148])), (None, None));
    }
}
