//! The responder: carries out the peer's requests in PSN order and owes it the responses.
//!
//! Receiving a request never sends: responses are queued, in the order of the requests, and leave when the engine
//! has a frame for them. The checks read straight down, each with the reaction that the specification gives it.

mod duplicate;
mod execute;
mod receive;
mod response;

use alloc::collections::VecDeque;

use super::assembly::Assembly;
use super::attr::QpAttr;
use super::connection::Connection;
use super::env::Env;
use super::receives::Receives;
use crate::access::Access;
use crate::completion::WcStatus;
use crate::counters::Counter;
use crate::engine::Xrcd;
use crate::memory::Subject;
use crate::wire::{Class, Feth, NakCode, Operation, Packet, Position, Psn};
use crate::work::RemoteAddr;
use response::{Response, Responses};

/// Why a request is not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// Silently; the counter tells.
    Drop(Counter),
    /// It is ahead of its turn.
    Gap,
    /// It found no receive.
    NotReady,
    /// The queue pair goes into error.
    Fatal(Fatal),
}

/// A request that ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fatal {
    /// What the peer is told.
    pub(crate) code: NakCode,
    /// How the receive ends that the message had taken, if it had taken one.
    pub(crate) receive: WcStatus,
}

impl Refusal {
    /// The request breaks the protocol (NAK 0x61).
    const INVALID: Self =
        Self::Fatal(Fatal { code: NakCode::InvalidRequest, receive: WcStatus::RemInvReqErr });
    /// The request asks for memory that it may not have (NAK 0x62).
    const ACCESS: Self =
        Self::Fatal(Fatal { code: NakCode::RemoteAccessError, receive: WcStatus::RemAccessErr });
}

/// What is kept of an answered READ or atomic request, to answer it again.
#[derive(Clone, Copy, Debug)]
struct Resource {
    first: Psn,
    packets: u32,
    answer: Answer,
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Read {
        by: Subject,
        remote: RemoteAddr,
        length: u32,
    },
    Atomic {
        original: u64,
    },
    /// An ATOMIC WRITE, which is answered without data.
    Written,
}

/// Attributes of the responder.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) rq_psn: Psn,
    pub(crate) max_dest_rd_atomic: u8,
    pub(crate) min_rnr_timer: u8,
}

/// The receiving half of a queue pair.
#[derive(Debug)]
pub(crate) struct Responder {
    receives: Receives,
    /// Who asks for memory: the queue pair, but for XRC in the protection domain of the shared receive queue.
    subject: Subject,
    epsn: Psn,
    /// The newest SEND or WRITE packet carried out. Duplicates are acknowledged with it, never with a READ or atomic
    /// request: rxe takes a plain acknowledgement that names one for its answer.
    newest_data: Psn,
    /// Messages completed, modulo 2^24.
    msn: u32,
    /// The gap at `epsn`, or the missing receive, was reported; what follows is dropped in silence.
    reported: bool,
    assembly: Assembly,
    resources: VecDeque<Resource>,
    responses: Responses,
    settings: Settings,
}

impl Responder {
    pub(crate) fn new(receives: Receives, subject: Subject) -> Self {
        Self {
            receives,
            subject,
            epsn: Psn::default(),
            newest_data: Psn::default(),
            msn: 0,
            reported: false,
            assembly: Assembly::Idle,
            resources: VecDeque::new(),
            responses: Responses::default(),
            settings: Settings::default(),
        }
    }

    pub(crate) fn apply(&mut self, attr: &QpAttr) {
        self.settings.min_rnr_timer = attr.min_rnr_timer.unwrap_or(self.settings.min_rnr_timer);
        if let Some(depth) = attr.max_dest_rd_atomic {
            self.set_depth(depth);
        }
        if let Some(psn) = attr.rq_psn {
            self.settings.rq_psn = psn;
            (self.epsn, self.newest_data, self.msn) = (psn, psn.prev(), 0);
        }
    }

    /// Makes room for `depth` READs and atomics; what is owed and remembered stays, the oldest excepted.
    fn set_depth(&mut self, depth: u8) {
        self.settings.max_dest_rd_atomic = depth;
        let excess = self.resources.len().saturating_sub(usize::from(depth));
        self.resources.drain(..excess);
        self.resources.reserve(usize::from(depth) - self.resources.len());
        self.responses.set_depth(usize::from(depth));
    }

    pub(crate) const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether responses wait for a frame.
    pub(crate) fn owes(&self) -> bool {
        !self.responses.is_empty()
    }

    /// Takes a request that is the peer's and whole. An error ends the connection; its NAK is queued.
    pub(crate) fn on_request(
        &mut self,
        connection: &Connection,
        env: &mut Env<'_>,
        packet: &Packet<'_>,
    ) -> Result<(), Fatal> {
        let psn = packet.bth.psn;
        match self.process(connection, env, packet) {
            Ok(()) => {}
            Err(Refusal::Drop(counter)) => env.counters.add(counter),
            Err(Refusal::Gap) => self.report_gap(env),
            Err(Refusal::NotReady) => {
                env.counters.add(Counter::SendRnrErr);
                self.reported = true;
                self.responses.push(Response::NotReady { psn, msn: self.msn });
            }
            Err(Refusal::Fatal(fatal)) => {
                count_nak(env, fatal.code);
                self.responses.push_final(Response::Nak { code: fatal.code, psn, msn: self.msn });
                return Err(fatal);
            }
        }
        Ok(())
    }

    /// Ends every receive: the one that a message had taken as told, all others as flushed. What is owed to the peer
    /// stays owed only if `keep_responses`.
    pub(crate) fn flush(
        &mut self,
        connection: &Connection,
        env: &mut Env<'_>,
        receive: WcStatus,
        keep_responses: bool,
    ) {
        if !keep_responses {
            self.responses.clear();
        }
        self.assembly = Assembly::Idle;
        self.receives.flush(connection, env, receive);
    }

    /// Forgets every receive and everything owed: a reset.
    pub(crate) fn discard(&mut self) {
        self.receives.discard();
        self.resources.clear();
        self.responses.clear();
        (self.assembly, self.reported) = (Assembly::Idle, false);
    }

    fn process(
        &mut self,
        connection: &Connection,
        env: &mut Env<'_>,
        packet: &Packet<'_>,
    ) -> Result<(), Refusal> {
        match packet.bth.psn.distance(self.epsn) {
            1.. => Err(Refusal::Gap),
            ..0 => self.on_duplicate(connection, env, packet),
            0 => {
                self.enter_domain(connection, env, packet)?;
                self.check_sequence(&packet.operation)?;
                check_access(connection.access, &packet.operation)?;
                self.execute(connection, env, packet)
            }
        }
    }

    /// A packet of XRC names the shared receive queue of its message, in whose protection domain it moves memory.
    fn enter_domain(
        &mut self,
        connection: &Connection,
        env: &Env<'_>,
        packet: &Packet<'_>,
    ) -> Result<(), Refusal> {
        let (Class::Xrc { srqn: Some(srqn) }, Some(xrcd)) = (packet.class, connection.init.xrcd) else {
            return Ok(());
        };
        self.enter_queue(env, srqn, xrcd)
    }

    fn enter_queue(&mut self, env: &Env<'_>, srqn: u32, xrcd: Xrcd) -> Result<(), Refusal> {
        let (srq, pd) = env.srqs.in_domain(srqn, xrcd).ok_or(Refusal::INVALID)?;
        if self.assembly != Assembly::Idle && self.receives.srq() != Some(srq) {
            return Err(Refusal::INVALID);
        }
        self.receives.set_srq(srq);
        self.subject.pd = pd;
        Ok(())
    }

    /// Only the next packet of an open message may follow it, and only a first one may open a message.
    fn check_sequence(&self, operation: &Operation) -> Result<(), Refusal> {
        let suits = match self.assembly {
            Assembly::Idle => !is_continuation(operation),
            open => open.is_continued_by(operation),
        };
        if suits { Ok(()) } else { Err(Refusal::INVALID) }
    }

    fn report_gap(&mut self, env: &mut Env<'_>) {
        if self.reported {
            return env.counters.add(Counter::GapDropped);
        }
        env.counters.add(Counter::OutOfSequence);
        env.counters.add(Counter::SendSeqErr);
        self.reported = true;
        self.responses.push(Response::Nak { code: NakCode::SequenceError, psn: self.epsn, msn: self.msn });
    }

    /// The packets up to here were in order.
    fn advance(&mut self, packets: u32) {
        self.epsn = self.epsn + packets;
        self.reported = false;
    }

    fn message_done(&mut self) {
        self.msn = (self.msn + 1) & 0xFF_FFFF;
    }
}

/// Whether a packet belongs behind a first one.
const fn is_continuation(operation: &Operation) -> bool {
    match operation {
        Operation::Send { position, .. } | Operation::Write { position, .. } => !position.is_start(),
        _ => false,
    }
}

/// The queue pair's own access flags (section 5.2, step 3: an invalid request, not an access error).
fn check_access(granted: Access, operation: &Operation) -> Result<(), Refusal> {
    let needed = match operation {
        Operation::Write { .. } | Operation::AtomicWrite(_) => Access::REMOTE_WRITE,
        Operation::ReadRequest(_) => Access::REMOTE_READ,
        Operation::CompareSwap(_) | Operation::FetchAdd(_) => Access::REMOTE_ATOMIC,
        Operation::Flush { feth, .. } => flush_rights(*feth)?,
        Operation::Send { .. } => Access::empty(),
        // Responses are no requests.
        _ => return Err(Refusal::INVALID),
    };
    if granted.contains(needed) { Ok(()) } else { Err(Refusal::INVALID) }
}

/// The rights that a FLUSH needs; it names at least one placement (IBTA A19, FETH).
fn flush_rights(feth: Feth) -> Result<Access, Refusal> {
    let mut needed = Access::empty();
    needed.set(Access::FLUSH_GLOBAL, feth.placement & Feth::GLOBAL != 0);
    needed.set(Access::FLUSH_PERSISTENT, feth.placement & Feth::PERSISTENT != 0);
    if needed.is_empty() { Err(Refusal::INVALID) } else { Ok(needed) }
}

fn check_length(position: Position, len: usize, mtu: usize) -> Result<(), Refusal> {
    if position.admits(len, mtu) { Ok(()) } else { Err(Refusal::INVALID) }
}

fn count_nak(env: &mut Env<'_>, code: NakCode) {
    env.counters.add(match code {
        NakCode::RemoteAccessError => Counter::RespRemoteAccessErrors,
        NakCode::RemoteOperationalError => Counter::RespOperationalErrors,
        _ => Counter::RespInvalidRequest,
    });
}
