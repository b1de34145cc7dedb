//! The connection manager: how two queue pairs find each other (IBTA volume 1, chapter 12; protocol section 6).
//!
//! A [`Cm`] holds connections, listeners and questions after queue pairs for datagrams. It has no I/O and no clock:
//! datagrams that arrive at queue pair 1 are handed in, datagrams to be sent are fetched, and so are events. It touches
//! no queue pair: [`QpSettings`] says what to set one to, and the application, or whoever drives it, does so.
//!
//! # The contract of the loop
//!
//! ```text
//! cm.receive(now, sender, mad)             each datagram that queue pair 1 received
//! cm.expire(now)                           timers that are due
//! while let Some(event) = cm.next_event()  what happened; answers are calls
//! while let Some(out) = cm.poll_transmit() datagrams to send from queue pair 1
//! ```
//! Between rounds the driver may sleep until [`Cm::next_deadline`] unless [`Cm::has_work`].
//!
//! # A connection
//!
//! ```text
//! active                                                   passive
//! connect                      -- REQ -->                  ConnectRequest: queue pair to RTS, accept
//! Reply: queue pair to RTS     <-- REP --
//! establish                    -- RTU -->                  Established
//! disconnect                   -- DREQ -->                 DisconnectRequest: disconnect
//! Disconnected                 <-- DREP --
//! TimewaitExit                                             TimewaitExit
//! ```
//!
//! # What strangers can do
//!
//! Messages are not authenticated. A datagram is checked before anything is stored; a message about a connection counts
//! only when it comes from the address of the connection's peer and names the connection's random identifier. Requests
//! are answered without memory when nobody listens; those that are kept are bounded, and the oldest gives way, so a
//! flood shortens how long a request may take, and shuts nobody out.

mod active;
mod admission;
mod close;
mod config;
mod conn;
mod counters;
mod error;
mod event;
mod events;
mod expire;
mod listeners;
mod outbox;
mod params;
mod passive;
mod receive;
mod refuse;
mod request;
mod settings;
mod sidr;
mod steps;
mod table;
mod terms;

use alloc::vec::Vec;

use crate::rng::Rng;
use crate::time::Instant;
use crate::wire::Psn;

use events::Events;
use listeners::Listeners;
use outbox::Outbox;
use steps::Keep;
use table::{Place, Table};

pub use config::CmConfig;
pub use conn::CmState;
pub use counters::{CmCounter, CmCounters};
pub use error::CmError;
pub use event::{CmEvent, ConnectRequest, Reply, SidrRequest, Unreachable};
pub use outbox::Datagram;
pub use params::{AcceptParams, ConnectParams, ListenParams, Route, Sender, SidrParams};
pub use settings::QpSettings;
pub use terms::{ReplyTerms, RequestTerms};

/// A connection, or a question after a queue pair for datagrams. The number of one that has ended is not used again
/// soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConnId(u32);

impl ConnId {
    /// Our communication identifier of it, as it is on the wire.
    #[must_use]
    pub const fn comm_id(self) -> u32 {
        self.0
    }
}

/// A listener. Its number is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListenId(u64);

/// A connection manager.
#[derive(Debug)]
pub struct Cm {
    config: CmConfig,
    rng: Rng,
    /// The upper half of every transaction identifier that we choose.
    agent: u32,
    table: Table,
    listeners: Listeners,
    outbox: Outbox,
    events: Events,
    counters: CmCounters,
    /// No deadline is earlier.
    earliest: Option<Instant>,
    /// Those whose deadline has come, while they are gone through.
    due: Vec<Place>,
}

impl Cm {
    /// A connection manager without connections.
    ///
    /// # Errors
    /// When a value of the configuration is out of the range that its documentation gives.
    pub fn new(config: CmConfig) -> Result<Self, CmError> {
        config.check()?;
        let mut rng = Rng::new(config.seed);
        Ok(Self {
            agent: rng.next_u32(),
            rng,
            table: Table::new(config.max_connections, config.ids.clone()),
            listeners: Listeners::default(),
            outbox: Outbox::new(config.max_connections),
            events: Events::new(config.max_connections),
            counters: CmCounters::default(),
            earliest: None,
            due: Vec::new(),
            // Nothing that can be shown holds the seed.
            config: CmConfig { seed: [0; 32], ..config },
        })
    }

    /// A starting PSN that nobody can guess (S02).
    pub fn random_psn(&mut self) -> Psn {
        Psn::new(self.rng.next_u32())
    }

    /// The next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Datagram> {
        self.outbox.next()
    }

    /// Whether there are datagrams to send.
    #[must_use]
    pub fn has_work(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// The oldest event that was not fetched.
    pub fn next_event(&mut self) -> Option<CmEvent> {
        self.events.next()
    }

    /// What has been counted.
    #[must_use]
    pub const fn counters(&self) -> &CmCounters {
        &self.counters
    }

    /// The state of a connection that the application holds.
    #[must_use]
    pub fn state(&self, id: ConnId) -> Option<CmState> {
        self.owned(id).ok().map(|(_, state)| state)
    }

    /// Connections and questions that take up room, those in time-wait among them.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.table.len()
    }
}
