//! The receives of one queue pair, from its own queue or from a shared one: taken by messages, completed, flushed.

use alloc::collections::VecDeque;

use super::attr::QpType;
use super::connection::Connection;
use super::env::Env;
use crate::completion::{Completion, WcOpcode, WcStatus};
use crate::engine::{Cq, Srq};
use crate::memory::AccessError;
use crate::queue::{Consumer, RecvSlot};
use crate::wire::{Payload, Psn};

/// A receive whose completion waits until the acknowledgement of its message has left.
#[derive(Clone, Copy, Debug)]
struct Held {
    completion: Completion,
    solicited: bool,
    psn: Psn,
    cq: Option<Cq>,
    /// The receive's index in the queue pair's own ring.
    index: Option<u64>,
}

/// Where messages find receives.
#[derive(Debug)]
pub(super) struct Receives {
    rq: Consumer<RecvSlot>,
    /// The receive of its own that the next message takes; those from the ring's head up to it have held completions.
    next: u64,
    /// Receives come from here instead. Of an XRC target: where those of the present message come from.
    srq: Option<Srq>,
    /// The receive that the open message has taken from a shared queue; a copy, as others go on taking there.
    shared: RecvSlot,
    is_open: bool,
    /// `shared` holds the receive of a message that was given up.
    is_kept: bool,
    held: VecDeque<Held>,
}

impl Receives {
    /// `max_sge` is that of the shared queue's receives, if any come from there.
    pub(super) fn new(rq: Consumer<RecvSlot>, srq: Option<Srq>, max_sge: usize) -> Self {
        let held = VecDeque::with_capacity(rq.capacity() as usize);
        Self { rq, next: 0, srq, shared: RecvSlot::new(max_sge), is_open: false, is_kept: false, held }
    }

    /// The next message of an XRC target takes its receive from `srq`.
    pub(super) const fn set_srq(&mut self, srq: Srq) {
        self.srq = Some(srq);
    }

    pub(super) const fn srq(&self) -> Option<Srq> {
        self.srq
    }

    /// Whether a message would find a receive.
    pub(super) fn is_posted(&mut self, env: &mut Env<'_>) -> bool {
        match self.srq {
            Some(srq) => self.is_kept || env.srqs.is_posted(srq),
            None => self.next < self.rq.refresh(),
        }
    }

    /// Opens a message that needs a receive; false when there is none.
    pub(super) fn take(&mut self, env: &mut Env<'_>) -> bool {
        self.is_open = match self.srq {
            Some(srq) => self.is_kept || env.srqs.take(srq, &mut self.shared, env.events),
            None => self.next < self.rq.refresh(),
        };
        self.is_kept = false;
        self.is_open
    }

    /// The receive of the open message.
    pub(super) fn current(&self) -> &RecvSlot {
        if self.srq.is_some() { &self.shared } else { self.rq.get(self.next) }
    }

    /// Puts a part of the open message into its receive. The keys of one from a shared queue are of the protection domain
    /// of that queue (IBTA, Shared Receive Queue).
    pub(super) fn place(
        &self,
        connection: &Connection,
        env: &Env<'_>,
        offset: u64,
        part: Payload<'_>,
    ) -> Result<(), AccessError> {
        let pd = self.srq.and_then(|srq| env.srqs.pd(srq)).unwrap_or(connection.pd);
        env.memory.scatter(pd, self.current().sges(), offset, part)
    }

    /// The open message is given up: its receive is there for the next one. One that was taken from a shared queue
    /// cannot be put back, and stays with this queue pair.
    pub(super) const fn give_up(&mut self) {
        self.is_kept = self.is_open && self.srq.is_some();
        self.is_open = false;
    }

    /// The message is complete: its completion waits until `psn` is acknowledged.
    pub(super) fn finish(
        &mut self,
        connection: &Connection,
        env: &Env<'_>,
        completion: Completion,
        solicited: bool,
        psn: Psn,
    ) {
        let completion = Completion { wr_id: self.current().wr_id, ..completion };
        let cq = self.completion_queue(connection, env);
        let index = self.pass();
        self.held.push_back(Held { completion, solicited, psn, cq, index });
    }

    /// The open message, or the next receive without one, ends like this at once.
    pub(super) fn end(&mut self, connection: &Connection, env: &mut Env<'_>, status: WcStatus) {
        let completion = Completion {
            wr_id: self.current().wr_id,
            status,
            opcode: WcOpcode::Recv,
            qp_num: connection.number,
            ..Completion::default()
        };
        if let Some(cq) = self.completion_queue(connection, env) {
            env.cqs.push(cq, completion, true);
        }
        if let Some(index) = self.pass() {
            self.rq.release_to(index + 1);
        }
    }

    /// Hands out the completions of messages up to `acknowledged`, or all.
    pub(super) fn release(&mut self, env: &mut Env<'_>, acknowledged: Option<Psn>) {
        while let Some(held) = self.held.front() {
            if acknowledged.is_some_and(|psn| held.psn.distance(psn) > 0) {
                break;
            }
            if let Some(cq) = held.cq {
                env.cqs.push(cq, held.completion, held.solicited);
            }
            if let Some(index) = held.index {
                self.rq.release_to(index + 1);
            }
            self.held.pop_front();
        }
    }

    /// Ends every receive: the one that a message had taken with `open`, all others of its own as flushed. Those of a
    /// shared queue stay there for others.
    pub(super) fn flush(&mut self, connection: &Connection, env: &mut Env<'_>, open: WcStatus) {
        self.release(env, None);
        if self.is_open {
            self.end(connection, env, open);
        } else if self.is_kept {
            self.end(connection, env, WcStatus::WrFlushErr);
        }
        if self.srq.is_some() {
            return;
        }
        while self.next < self.rq.refresh() {
            self.end(connection, env, WcStatus::WrFlushErr);
        }
    }

    /// Forgets every receive without a completion: a reset.
    pub(super) fn discard(&mut self) {
        let end = self.rq.refresh();
        self.rq.release_to(end);
        (self.next, self.is_open, self.is_kept) = (end, false, false);
        self.held.clear();
    }

    /// The receive is used up; tells its index when it was the queue pair's own.
    fn pass(&mut self) -> Option<u64> {
        (self.is_open, self.is_kept) = (false, false);
        if self.srq.is_some() {
            return None;
        }
        self.next += 1;
        Some(self.next - 1)
    }

    /// An XRC target completes where the shared receive queue says, as long as that exists; everything else where the
    /// queue pair does.
    fn completion_queue(&self, connection: &Connection, env: &Env<'_>) -> Option<Cq> {
        match self.srq {
            Some(srq) if connection.init.qp_type == QpType::XrcTgt => env.srqs.completion_queue(srq),
            _ => Some(connection.init.recv_cq),
        }
    }
}
