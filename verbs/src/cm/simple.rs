//! A listener that accepts, a call that connects: for programs that only want a connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use uroce_stack::wire::cm::{PortSpace, RejectReason};

use super::channel::EventChannel;
use super::event::{CmEvent, CmEventType};
use super::id::CmId;
use super::param::ConnParam;
use crate::context::Context;
use crate::cq::CompletionQueue;
use crate::error::Error;
use crate::pd::ProtectionDomain;
use crate::qp::QueuePair;
use crate::{QpBuilder, QpType};

/// Entries of the completion queue, and twice the work requests of the queue pair, of a connection made here.
const DEPTH: u32 = 256;
/// How long a disconnected peer is waited for before a connection is dropped.
const FAREWELL: Duration = Duration::from_secs(2);

/// Waits for connections at an address and port.
///
/// ```no_run
/// use uroce::{Access, CompletionExt, ConnParam, Context, DeviceConfig, Listener, RecvWr};
///
/// let ctx = Context::open(DeviceConfig::new("eth0"))?;
/// let listener = Listener::bind(&ctx, "0.0.0.0:7471".parse().expect("an address"))?;
/// let incoming = listener.accept_request()?;
/// let mr = incoming.pd().alloc_mr(4096, Access::LOCAL_WRITE)?;
/// incoming.qp().post_recv(&[RecvWr::new(1, mr.sge(..))])?;
/// let connection = incoming.accept(&ConnParam::default())?;
/// let length = connection.cq().wait_one()?.result()?.byte_len;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Listener {
    channel: EventChannel,
    id: CmId,
}

impl Listener {
    /// Listens at an address of the device, or at all of them, and at a port; 0 takes a free one.
    ///
    /// # Errors
    /// As [`CmId::bind_addr`] and [`CmId::listen`].
    pub fn bind(ctx: &Context, local: SocketAddr) -> Result<Self, Error> {
        let channel = ctx.create_event_channel()?;
        let id = CmId::new(&channel, PortSpace::Tcp);
        id.bind_addr(local)?;
        id.listen(0)?;
        Ok(Self { channel, id })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// None at present: it is bound.
    pub fn local_addr(&self) -> Result<SocketAddr, Error> {
        self.id.local_addr().ok_or(Error::CmState("the listener is not bound"))
    }

    /// Waits for a peer that asks for a connection.
    ///
    /// # Errors
    /// [`Error::System`] when the thread cannot sleep, and what making a queue pair refuses; then the request is dropped.
    pub fn accept_request(&self) -> Result<Incoming, Error> {
        self.accept_request_within(None)?.ok_or(Error::TimedOut)
    }

    /// The same, for at most `timeout`; `None` when it has passed.
    ///
    /// # Errors
    /// As [`accept_request`](Self::accept_request).
    pub fn accept_request_within(&self, timeout: Option<Duration>) -> Result<Option<Incoming>, Error> {
        while let Some(event) = self.channel.get_event(timeout)? {
            if event.event == CmEventType::ConnectRequest {
                return Incoming::new(event).map(Some);
            }
        }
        Ok(None)
    }
}

/// A peer that asks for a connection: post receives, then [`accept`](Self::accept).
#[derive(Debug)]
pub struct Incoming {
    parts: Parts,
    request: ConnParam,
}

impl Incoming {
    fn new(event: CmEvent) -> Result<Self, Error> {
        let request = event.conn.unwrap_or_default();
        // A channel of its own: its events must not mix with those of others.
        let channel = event.id.context().create_event_channel()?;
        event.id.migrate(&channel);
        Ok(Self { parts: Parts::make(channel, event.id)?, request })
    }

    /// What the peer says about itself.
    #[must_use]
    pub const fn request(&self) -> &ConnParam {
        &self.request
    }

    /// The peer's address.
    #[must_use]
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.parts.id.peer_addr()
    }

    /// The protection domain of the connection to be.
    #[must_use]
    pub fn pd(&self) -> &ProtectionDomain {
        self.parts.qp.pd()
    }

    /// Its queue pair.
    #[must_use]
    pub fn qp(&self) -> &QueuePair {
        &self.parts.qp
    }

    /// Grants the connection and waits until the peer has confirmed it.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the peer does not confirm.
    pub fn accept(self, param: &ConnParam) -> Result<Connection, Error> {
        self.parts.id.accept(param)?;
        let (parts, _) = self.parts.established()?;
        Ok(Connection { parts, peer: self.request })
    }

    /// Refuses, with a word for the peer's application.
    ///
    /// # Errors
    /// When the request has gone meanwhile.
    pub fn reject(self, private_data: &[u8]) -> Result<(), Error> {
        self.parts.id.reject(private_data)
    }
}

/// A connection. Dropping it closes it.
#[derive(Debug)]
pub struct Connection {
    parts: Parts,
    peer: ConnParam,
}

impl Connection {
    /// What the peer said about itself as it asked or granted.
    #[must_use]
    pub const fn peer(&self) -> &ConnParam {
        &self.peer
    }

    /// The peer's address.
    #[must_use]
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.parts.id.peer_addr()
    }

    /// Its protection domain.
    #[must_use]
    pub fn pd(&self) -> &ProtectionDomain {
        self.parts.qp.pd()
    }

    /// Its completion queue, for sends and receives.
    #[must_use]
    pub fn cq(&self) -> &CompletionQueue {
        self.parts.qp.send_cq()
    }

    /// Its queue pair.
    #[must_use]
    pub fn qp(&self) -> &QueuePair {
        &self.parts.qp
    }

    /// Whether the peer has ended it, or this side has.
    #[must_use]
    pub fn is_disconnected(&self) -> bool {
        std::iter::from_fn(|| self.parts.channel.try_get_event())
            .any(|event| event.event == CmEventType::Disconnected)
    }

    /// Ends it and waits, for two seconds at most, until the peer has heard.
    ///
    /// # Errors
    /// [`Error::CmState`] when it has ended already.
    pub fn disconnect(self) -> Result<(), Error> {
        self.parts.id.disconnect()?;
        while let Some(event) = self.parts.channel.get_event(Some(FAREWELL))? {
            if matches!(event.event, CmEventType::Disconnected | CmEventType::TimewaitExit) {
                break;
            }
        }
        Ok(())
    }
}

/// What a connection is made of. The id goes before the queue pair, the channel last.
#[derive(Debug)]
struct Parts {
    id: CmId,
    qp: Arc<QueuePair>,
    channel: EventChannel,
}

impl Parts {
    fn make(channel: EventChannel, id: CmId) -> Result<Self, Error> {
        let ctx = id.context().clone();
        let (pd, cq) = (ctx.alloc_pd()?, ctx.create_cq(DEPTH).build()?);
        let prepared = builder(&pd, &cq).build()?;
        let qp = id.create_qp(prepared)?;
        Ok(Self { id, qp, channel })
    }

    fn established(self) -> Result<(Self, ConnParam), Error> {
        loop {
            let event = self.channel.get_event(None)?.ok_or(Error::TimedOut)?;
            match event.event {
                CmEventType::Established => return Ok((self, event.conn.unwrap_or_default())),
                CmEventType::Rejected => return Err(rejected(&event)),
                CmEventType::Unreachable | CmEventType::ConnectError => {
                    return Err(Error::Unreachable { peer: self.id.peer_addr(), status: event.status });
                }
                CmEventType::Disconnected => {
                    return Err(Error::CmState("the peer has closed the connection"));
                }
                _ => {}
            }
        }
    }
}

fn builder<'a>(pd: &'a ProtectionDomain, cq: &'a CompletionQueue) -> QpBuilder<'a> {
    pd.create_qp(QpType::Rc, cq, cq).max_send_wr(DEPTH / 2).max_recv_wr(DEPTH / 2)
}

fn rejected(event: &CmEvent) -> Error {
    let reason = u16::try_from(event.status).map_or(RejectReason::ConsumerDefined, RejectReason::from_code);
    Error::Rejected { reason, private_data: event.private_data().to_vec() }
}

impl Context {
    /// Connects to whoever listens at an address and port.
    ///
    /// # Errors
    /// [`Error::Rejected`] when nobody listens there or the peer refuses, [`Error::Unreachable`] when it does not answer,
    /// which takes more than a minute to know.
    pub fn connect(&self, remote: SocketAddr, param: &ConnParam) -> Result<Connection, Error> {
        let channel = self.create_event_channel()?;
        let id = CmId::new(&channel, PortSpace::Tcp);
        id.resolve_addr(None, remote)?;
        expect(&channel, remote, CmEventType::AddrResolved)?;
        id.resolve_route()?;
        expect(&channel, remote, CmEventType::RouteResolved)?;
        let parts = Parts::make(channel, id)?;
        parts.id.connect(param)?;
        let (parts, peer) = parts.established()?;
        Ok(Connection { parts, peer })
    }
}

fn expect(channel: &EventChannel, remote: SocketAddr, wanted: CmEventType) -> Result<(), Error> {
    let event = channel.get_event(None)?.ok_or(Error::TimedOut)?;
    if event.event == wanted {
        Ok(())
    } else {
        Err(Error::Unreachable { peer: Some(remote), status: event.status })
    }
}
