//! What the device's engine and the application both know of an id.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, Weak};

use uroce_stack::cm::{ConnId, ConnectRequest, ListenId, QpSettings, SidrRequest};
use uroce_stack::wire::cm::PortSpace;
use uroce_stack::wire::{Psn, Qpn};

use super::event::CmEventType;
use super::id::Handle;
use super::param::{ConnParam, UdParam};
use crate::driver::lock;
use crate::os::EventFd;

/// How an id stands to the connection manager of the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Role {
    /// It has no part in anything yet, or no more.
    #[default]
    Idle,
    Listener(ListenId),
    /// A connection, or a question after a datagram service.
    Connection(ConnId),
}

/// A peer's request that waits for an answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Request {
    Connection(ConnectRequest),
    Datagram(SidrRequest),
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) role: Role,
    pub(super) local: Option<SocketAddr>,
    pub(super) remote: Option<SocketAddr>,
    pub(super) request: Option<Request>,
    /// The queue pair that the connection manager moves through its states.
    pub(super) qpn: Option<Qpn>,
    /// Where our receive queue starts, of a peer's request.
    pub(super) rq_psn: Psn,
    /// What the peer's grant asks the queue pair to be set to.
    pub(super) settings: Option<QpSettings>,
    pub(super) queue: Option<Arc<EventQueue>>,
    pub(super) handle: Weak<Handle>,
}

/// One id. The engine's side holds it as long as it has a [`Role`]; it owns nothing of the device.
#[derive(Debug)]
pub(crate) struct IdShared {
    pub(super) port_space: PortSpace,
    pub(super) state: Mutex<State>,
}

impl IdShared {
    pub(super) fn new(port_space: PortSpace, queue: Option<Arc<EventQueue>>) -> Arc<Self> {
        let state = State { queue, ..State::default() };
        Arc::new(Self { port_space, state: Mutex::new(state) })
    }

    pub(super) fn is_datagram(&self) -> bool {
        matches!(self.port_space, PortSpace::Udp | PortSpace::Ipoib)
    }

    pub(super) fn role(&self) -> Role {
        lock(&self.state).role
    }

    /// Reports something that has happened to it.
    pub(super) fn raise(self: &Arc<Self>, news: News) {
        let queue = lock(&self.state).queue.clone();
        if let Some(queue) = queue {
            queue.push(Queued { id: Arc::clone(self), news });
        }
    }
}

/// What happened, without the id.
#[derive(Clone, Debug)]
pub(super) struct News {
    pub(super) event: CmEventType,
    pub(super) status: i32,
    pub(super) listener: Option<Arc<IdShared>>,
    pub(super) conn: Option<ConnParam>,
    pub(super) ud: Option<UdParam>,
}

impl News {
    pub(super) const fn new(event: CmEventType, status: i32) -> Self {
        Self { event, status, listener: None, conn: None, ud: None }
    }

    pub(super) fn conn(self, conn: ConnParam) -> Self {
        Self { conn: Some(conn), ..self }
    }

    pub(super) fn ud(self, ud: UdParam) -> Self {
        Self { ud: Some(ud), ..self }
    }

    pub(super) fn from(self, listener: Arc<IdShared>) -> Self {
        Self { listener: Some(listener), ..self }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Queued {
    pub(super) id: Arc<IdShared>,
    pub(super) news: News,
}

/// Events that wait to be fetched, with a descriptor that says so. Bounded by the objects there are: the engine's
/// connection manager keeps half-open requests within its quota, and every id has a few events at most.
#[derive(Debug)]
pub(super) struct EventQueue {
    events: Mutex<VecDeque<Queued>>,
    count: EventFd,
}

impl EventQueue {
    pub(super) fn new() -> std::io::Result<Arc<Self>> {
        Ok(Arc::new(Self { events: Mutex::default(), count: EventFd::semaphore()? }))
    }

    pub(super) fn push(&self, event: Queued) {
        let mut events = lock(&self.events);
        events.push_back(event);
        self.count.add();
    }

    pub(super) fn pop(&self) -> Option<Queued> {
        let mut events = lock(&self.events);
        let event = events.pop_front()?;
        self.count.take();
        Some(event)
    }

    /// Takes out what concerns an id.
    pub(super) fn extract(&self, id: &Arc<IdShared>) -> Vec<Queued> {
        let mut events = lock(&self.events);
        let (theirs, others) = events.drain(..).partition(|queued: &Queued| Arc::ptr_eq(&queued.id, id));
        *events = others;
        let theirs: VecDeque<Queued> = theirs;
        self.count.take_many(theirs.len());
        theirs.into()
    }
}

impl AsFd for EventQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.count.as_fd()
    }
}

/// The address of a peer or of ours, from its parts.
pub(super) fn socket(address: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(address, port)
}
