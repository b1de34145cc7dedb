//! Two connected ends.

use std::time::{Duration, Instant};

use crate::deviation::Deviation;
use crate::peer::{Completion, Datagram, Endpoint, Peer, Remote, Request, Result, Route, Setup};

use super::Scenario;

/// How long a completion may take: an emulated kernel that retransmits once is still far below.
pub const LIMIT: Duration = Duration::from_secs(20);
/// How long nothing must come where nothing may come: an emulated kernel that still works on a packet is done by then.
pub const SILENCE: Duration = Duration::from_millis(150);

/// Two connected ends: the one that acts and the one that serves.
pub struct Pair<'a> {
    /// Sends the requests.
    pub active: &'a mut dyn Peer,
    /// Answers them.
    pub passive: &'a mut dyn Peer,
    /// The acting end's endpoints, one a queue pair.
    pub sources: Vec<Endpoint>,
    /// The serving end's endpoints.
    pub targets: Vec<Endpoint>,
    /// How the ends are joined.
    pub route: Route,
    /// Where rdma_rxe was expected to differ from the specification.
    deviations: Vec<&'static Deviation>,
}

impl std::fmt::Debug for Pair<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pair({} to {})", self.active.name(), self.passive.name())
    }
}

impl<'a> Pair<'a> {
    /// Opens and connects both ends.
    ///
    /// # Errors
    /// When one of them refuses.
    pub fn open(
        active: &'a mut dyn Peer,
        passive: &'a mut dyn Peer,
        route: Route,
        scenario: &Scenario,
    ) -> Result<Self> {
        let setup = Setup { route, demands: scenario.demands };
        let (sources, targets) = (active.open(&setup)?, passive.open(&setup)?);
        let mut pair = Self { active, passive, sources, targets, route, deviations: Vec::new() };
        pair.connect()?;
        Ok(pair)
    }

    /// Brings both ends from RESET to RTS.
    ///
    /// # Errors
    /// When one of them refuses.
    pub fn connect(&mut self) -> Result<()> {
        self.passive.connect(&self.sources)?;
        self.active.connect(&self.targets)
    }

    /// Closes both ends and tells which deviations were met.
    ///
    /// # Errors
    /// When one of them cannot.
    pub fn close(self) -> (Result<()>, Vec<&'static Deviation>) {
        let (active, passive) = (self.active.close(), self.passive.close());
        (active.and(passive), self.deviations)
    }

    /// Path MTU in bytes.
    pub fn mtu(&self) -> usize {
        self.route.mtu as usize
    }

    /// What the acting end is expected to do: what is specified, or what rdma_rxe is known to do.
    pub fn of_active<T>(&mut self, specified: T, deviation: &'static Deviation, rxe: T) -> T {
        self.of(self.active.is_rxe(), specified, deviation, rxe)
    }

    /// The same for the serving end.
    pub fn of_passive<T>(&mut self, specified: T, deviation: &'static Deviation, rxe: T) -> T {
        self.of(self.passive.is_rxe(), specified, deviation, rxe)
    }

    /// What somebody else is expected to see of rdma_rxe as the serving end, which understands itself.
    pub fn toward_rxe<T>(&mut self, specified: T, deviation: &'static Deviation, rxe: T) -> T {
        self.of(self.passive.is_rxe() && !self.active.is_rxe(), specified, deviation, rxe)
    }

    /// What is expected where both ends are the same rdma_rxe.
    pub fn of_loopback<T>(&mut self, specified: T, deviation: &'static Deviation, rxe: T) -> T {
        self.of(self.active.is_rxe() && self.passive.is_rxe(), specified, deviation, rxe)
    }

    fn of<T>(&mut self, deviates: bool, specified: T, deviation: &'static Deviation, rxe: T) -> T {
        if !deviates {
            return specified;
        }
        if !self.deviations.contains(&deviation) {
            self.deviations.push(deviation);
        }
        rxe
    }

    /// The serving end's memory from an offset on.
    pub fn remote(&self, offset: usize) -> Remote {
        let target = &self.targets[0];
        Remote { addr: target.addr + offset as u64, rkey: target.rkey }
    }

    /// The serving end's first queue pair, as a datagram names it.
    pub fn datagram(&self) -> Datagram {
        let target = &self.targets[0];
        Datagram { gid: target.gid, qp_num: target.qp_num, qkey: Setup::QKEY }
    }

    /// Posts one request at the acting end and returns its completion.
    ///
    /// # Errors
    /// When posting fails or no completion comes in time.
    pub fn request(&mut self, request: &Request) -> Result<Completion> {
        self.active.post_send(request)?;
        self.active_completion()
    }

    /// The acting end's next completion.
    ///
    /// # Errors
    /// When none comes in time.
    pub fn active_completion(&mut self) -> Result<Completion> {
        one(self.active)
    }

    /// The serving end's next completion.
    ///
    /// # Errors
    /// When none comes in time.
    pub fn passive_completion(&mut self) -> Result<Completion> {
        one(self.passive)
    }

    /// Waits until the serving end has had time to look at what was sent, and checks that nothing completed there.
    ///
    /// # Errors
    /// When something did.
    pub fn passive_stays_silent(&mut self) -> Result<()> {
        silent(self.passive)
    }
}

fn one(peer: &mut dyn Peer) -> Result<Completion> {
    let start = Instant::now();
    let found = peer.completions(1, LIMIT)?;
    let missing = || format!("no completion at {} within {:.1?}", peer.name(), start.elapsed());
    Ok(*found.first().ok_or_else(missing)?)
}

fn silent(peer: &mut dyn Peer) -> Result<()> {
    match peer.completions(1, SILENCE)?.first() {
        None => Ok(()),
        Some(found) => Err(format!("{} completed what it must not: {found:?}", peer.name()).into()),
    }
}
