//! A scenario, the pair of ends it runs on, and what it may check.

use std::time::Duration;

use crate::peer::{Completion, Endpoint, Part, Peer, Remote, Request, Result, Route, Setup, access, status};

/// How long a completion may take: an emulated kernel that retransmits once is still far below.
pub const LIMIT: Duration = Duration::from_secs(20);

/// Bytes around what an operation touches that are checked to be untouched.
const MARGIN: usize = 64;

/// What a scenario does; an error is a failure and its text the reason.
pub type Run = Box<dyn Fn(&mut Pair<'_>) -> Result<()>>;

/// One thing that must work, or must be refused, between any two ends.
pub struct Scenario {
    /// Its name, such as `write/1025`.
    pub name: String,
    /// What it asks of both ends beyond the usual.
    pub demands: Demands,
    /// Runs it.
    pub run: Run,
}

impl std::fmt::Debug for Scenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scenario").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What a scenario asks of both ends.
#[derive(Clone, Copy, Debug)]
pub struct Demands {
    /// Bytes of memory it uses.
    pub memory: usize,
    /// Rights of that memory.
    pub access: u32,
    /// How often a sender tries again when no receive is posted; 7 means for ever.
    pub rnr_retry: u8,
}

impl Demands {
    /// All rights and patience over enough memory for one message of `length` bytes.
    pub fn message(length: usize) -> Self {
        Self { memory: length + 4 * MARGIN, access: access::ALL, rnr_retry: 7 }
    }
}

/// Two connected ends: the one that acts and the one that serves.
pub struct Pair<'a> {
    /// Sends the requests.
    pub active: &'a mut dyn Peer,
    /// Answers them.
    pub passive: &'a mut dyn Peer,
    /// The serving end's endpoint.
    pub target: Endpoint,
    /// Path MTU in bytes.
    pub mtu: usize,
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
        demands: Demands,
    ) -> Result<Self> {
        let setup =
            Setup { route, region: demands.memory, access: demands.access, rnr_retry: demands.rnr_retry };
        let (source, target) = (active.open(&setup)?, passive.open(&setup)?);
        passive.connect(&source)?;
        active.connect(&target)?;
        Ok(Self { active, passive, target, mtu: route.mtu as usize })
    }

    /// Closes both ends.
    ///
    /// # Errors
    /// When one of them cannot.
    pub fn close(self) -> Result<()> {
        let (active, passive) = (self.active.close(), self.passive.close());
        active.and(passive)
    }

    /// The serving end's memory from an offset on.
    pub fn remote(&self, offset: usize) -> Remote {
        Remote { addr: self.target.addr + offset as u64, rkey: self.target.rkey }
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
}

fn one(peer: &mut dyn Peer) -> Result<Completion> {
    let found = peer.completions(1, LIMIT)?;
    found.first().copied().ok_or_else(|| format!("no completion at {} within {LIMIT:?}", peer.name()).into())
}

/// Where a message of `length` bytes lies in a region: with a margin before and behind.
pub fn place(length: usize) -> Part {
    Part { offset: MARGIN, length }
}

/// Bytes that differ from place to place, so that a misplaced piece shows.
pub fn pattern(length: usize, seed: u32) -> Vec<u8> {
    let step = |state: &mut u32| {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some((*state >> 24) as u8)
    };
    std::iter::repeat_n((), length).scan(seed, |state, ()| step(state)).collect()
}

/// Checks that a peer holds exactly `data` at `offset`, and nothing but the initial fill around it.
///
/// # Errors
/// Names the first byte that differs.
pub fn check_memory(peer: &mut dyn Peer, offset: usize, data: &[u8]) -> Result<()> {
    let start = offset.saturating_sub(MARGIN);
    let part = Part { offset: start, length: offset - start + data.len() + MARGIN };
    let mut expected = vec![Setup::FILL; part.length];
    expected[offset - start..][..data.len()].copy_from_slice(data);
    let found = peer.read(part)?;
    match found.iter().zip(&expected).position(|(found, expected)| found != expected) {
        None if found.len() == expected.len() => Ok(()),
        None => Err(format!("{} returned {} bytes of {}", peer.name(), found.len(), expected.len()).into()),
        Some(place) => Err(difference(peer.name(), start + place, found[place], expected[place]).into()),
    }
}

fn difference(peer: &str, place: usize, found: u8, expected: u8) -> String {
    format!("memory of {peer}: byte {place} is {found:#04x} instead of {expected:#04x}")
}

/// Checks that a completion succeeded, with the expected operation.
///
/// # Errors
/// Says what it is instead.
pub fn check_success(completion: &Completion, wr_id: u64, opcode: u32) -> Result<()> {
    check_status(completion, wr_id, &[status::SUCCESS])?;
    check_equal("completion opcode", completion.opcode, opcode)
}

/// Checks that a completion has one of the statuses.
///
/// # Errors
/// Says what it is instead.
pub fn check_status(completion: &Completion, wr_id: u64, allowed: &[u32]) -> Result<()> {
    check_equal("wr_id", completion.wr_id, wr_id)?;
    if allowed.contains(&completion.status) {
        return Ok(());
    }
    Err(format!("completion status is {}, not one of {allowed:?}", completion.status).into())
}

/// Checks one value.
///
/// # Errors
/// Says which value, and what it is instead.
pub fn check_equal<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<()> {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{what} is {found:?} instead of {expected:?}").into())
    }
}
