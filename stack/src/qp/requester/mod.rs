//! The requester: turns posted sends into request packets and the peer's responses into completions.
//!
//! Work requests stay in their ring until they complete, so a retransmission reads them, and the memory they name,
//! again. Three marks run through the ring: the oldest incomplete request, the cursor where transmission stands,
//! and the first request that was never started. PSNs are assigned at the first start and never change. A local
//! operation takes no PSN: it is carried out when it starts, once, and ends when it has become the oldest.

mod response;
mod retry;
mod transmit;

use alloc::boxed::Box;
use alloc::vec;

use super::attr::QpAttr;
use super::connection::Connection;
use super::env::Env;
use super::sends::{Failure, complete};
use crate::completion::WcStatus;
use crate::queue::{Consumer, SendSlot};
use crate::time::Instant;
use crate::wire::Psn;

/// What is known of a started work request.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    first: Psn,
    /// PSNs it takes: request packets, or response packets for a READ; none for a local operation.
    packets: u32,
}

impl Progress {
    fn end(&self) -> Psn {
        self.first + self.packets
    }
}

/// Where transmission stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cursor {
    wqe: u64,
    /// Request packets of it that this pass has sent.
    packet: u32,
}

/// Attributes of the requester.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) timeout: u8,
    pub(crate) retry_cnt: u8,
    pub(crate) rnr_retry: u8,
    pub(crate) max_rd_atomic: u8,
    pub(crate) sq_psn: Psn,
}

/// The sending half of a queue pair.
#[derive(Debug)]
pub(crate) struct Requester {
    sq: Consumer<SendSlot>,
    /// Runs in parallel to the ring.
    progress: Box<[Progress]>,
    cursor: Cursor,
    /// The first work request that was never started.
    unstarted: u64,
    /// The PSN that the next work request starts with.
    next_psn: Psn,
    /// The oldest PSN not acknowledged.
    una: Psn,
    /// One past the newest PSN that has been sent.
    sent_end: Psn,
    /// The window counts request packets from here.
    window_base: Psn,
    window: u32,
    /// Packets since the last that asked for an acknowledgement.
    unasked: u32,
    /// READ and atomic requests sent in this pass and not answered.
    reads_in_flight: u32,
    /// Fails with this status once everything before it has completed.
    stopped: Option<(u64, WcStatus)>,
    ack_deadline: Option<Instant>,
    rnr_until: Option<Instant>,
    retries_left: u8,
    rnr_retries_left: u8,
    /// A response made us go back to `una`; further ones wait for progress or for the timer.
    went_back: bool,
    /// Timeouts since the peer was last heard.
    timeouts: u8,
    draining: bool,
    settings: Settings,
}

impl Requester {
    pub(crate) fn new(sq: Consumer<SendSlot>, window: u32) -> Self {
        let progress = vec![Progress::default(); sq.capacity() as usize].into();
        Self {
            sq,
            progress,
            cursor: Cursor::default(),
            unstarted: 0,
            next_psn: Psn::default(),
            una: Psn::default(),
            sent_end: Psn::default(),
            window_base: Psn::default(),
            window,
            unasked: 0,
            reads_in_flight: 0,
            stopped: None,
            ack_deadline: None,
            rnr_until: None,
            retries_left: 0,
            rnr_retries_left: 0,
            went_back: false,
            timeouts: 0,
            draining: false,
            settings: Settings::default(),
        }
    }

    pub(crate) fn apply(&mut self, attr: &QpAttr) {
        let settings = &mut self.settings;
        settings.timeout = attr.timeout.unwrap_or(settings.timeout);
        settings.retry_cnt = attr.retry_cnt.unwrap_or(settings.retry_cnt);
        settings.rnr_retry = attr.rnr_retry.unwrap_or(settings.rnr_retry);
        settings.max_rd_atomic = attr.max_rd_atomic.unwrap_or(settings.max_rd_atomic);
        if let Some(psn) = attr.sq_psn {
            settings.sq_psn = psn;
            (self.next_psn, self.una, self.sent_end, self.window_base) = (psn, psn, psn, psn);
        }
        self.reload_retries();
    }

    pub(crate) const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// SQD: start nothing new; or start again.
    pub(crate) const fn set_draining(&mut self, draining: bool) {
        self.draining = draining;
    }

    /// Whether everything that was started has completed.
    pub(crate) fn is_drained(&self) -> bool {
        self.oldest() == self.unstarted
    }

    /// When [`expire`](Self::expire) has something to do.
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        match self.rnr_until {
            Some(until) => Some(until),
            None => self.ack_deadline,
        }
    }

    /// Completes every work request that is left as flushed.
    pub(crate) fn flush(&mut self, connection: &Connection, env: &mut Env<'_>) {
        self.sq.refresh();
        while self.oldest() < self.sq.refresh() {
            self.complete(connection, env, WcStatus::WrFlushErr.into());
        }
        self.forget();
    }

    /// Forgets every work request without a completion: a reset.
    pub(crate) fn discard(&mut self) {
        let end = self.sq.refresh();
        self.sq.release_to(end);
        self.forget();
        self.draining = false;
    }

    /// Fails the oldest work request, which completes whether signaled or not.
    pub(crate) fn fail_oldest(&mut self, connection: &Connection, env: &mut Env<'_>, failure: Failure) {
        if self.oldest() < self.sq.refresh() {
            self.complete(connection, env, failure);
        }
    }

    fn forget(&mut self) {
        let end = self.oldest();
        (self.unstarted, self.cursor) = (end, Cursor { wqe: end, packet: 0 });
        (self.ack_deadline, self.rnr_until, self.stopped) = (None, None, None);
        (self.reads_in_flight, self.unasked, self.went_back, self.timeouts) = (0, 0, false, 0);
        (self.una, self.sent_end, self.window_base) = (self.next_psn, self.next_psn, self.next_psn);
    }

    fn oldest(&self) -> u64 {
        self.sq.head()
    }

    fn progress_of(&self, wqe: u64) -> Progress {
        self.progress[self.sq.place(wqe)]
    }

    /// Ends local operations that have become the oldest: they are carried out already.
    fn retire_local(&mut self, connection: &Connection, env: &mut Env<'_>) {
        while self.oldest() < self.unstarted && self.sq.get(self.oldest()).op.is_local() {
            self.complete(connection, env, WcStatus::Success.into());
        }
    }

    /// Ends the oldest work request and hands its place back.
    fn complete(&mut self, connection: &Connection, env: &mut Env<'_>, end: Failure) {
        let wqe = self.oldest();
        let slot = self.sq.get(wqe);
        complete(connection, env, slot, end);
        if slot.op.takes_depth() && wqe < self.cursor.wqe {
            self.reads_in_flight = self.reads_in_flight.saturating_sub(1);
        }
        self.sq.release_to(wqe + 1);
    }
}
