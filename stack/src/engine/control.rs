//! Control calls: objects made, changed, destroyed.

use super::deadlines::Deadlines;
use super::{Cq, Cqs, Engine, Events, Pd, Ready};
use crate::access::Access;
use crate::config::{Config, Limits};
use crate::counters::Counters;
use crate::error::{Error, ModifyError};
use crate::event::AsyncEvent;
use crate::memory::{Keys, Memory, MrKeys, Region};
use crate::qp::{Qp, QpAttr, QpInit};
use crate::queue::{
    CompletionReader, Doorbell, Doorbells, QpShared, QueueCaps, RecvQueue, SendQueue, recv_ring, send_ring,
};
use crate::rng::Rng;
use crate::slab::Slab;
use crate::time::Instant;
use crate::wire::Qpn;

/// The first and last queue pair numbers that may be handed out: 0 and 1 are for management, 0xFFFFFF is multicast.
const QPNS: core::ops::Range<u32> = 2..0xFF_FFFF;

/// A new queue pair, in RESET.
#[derive(Debug)]
pub struct NewQp {
    /// Its number.
    pub qpn: Qpn,
    /// The application's half of its send queue.
    pub send: SendQueue,
    /// The application's half of its receive queue.
    pub recv: RecvQueue,
}

impl Engine {
    /// An engine without any object.
    ///
    /// # Errors
    /// When a value of the configuration is out of the range that its documentation gives.
    pub fn new(config: Config) -> Result<Self, Error> {
        check_config(&config)?;
        let limits = &config.limits;
        Ok(Self {
            rng: Rng::new(config.seed),
            pds: hashbrown::HashSet::new(),
            next_pd: 0,
            qps: Slab::new(limits.max_qp),
            qpns: Keys::default(),
            memory: Memory::new(limits.max_mr),
            cqs: Cqs::new(limits.max_cq),
            counters: Counters::default(),
            events: Events::default(),
            deadlines: Deadlines::new(),
            ready: Ready::default(),
            doorbells: Doorbells::new(limits.max_qp),
            turn: 0,
            config,
        })
    }

    /// The limits it was made with.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.config.limits
    }

    /// A new protection domain.
    ///
    /// # Errors
    /// When there are as many as the limits allow.
    pub fn alloc_pd(&mut self) -> Result<Pd, Error> {
        let limit = self.config.limits.max_pd;
        if self.pds.len() as u64 >= u64::from(limit) {
            return Err(Error::Exhausted { what: "protection domain", limit });
        }
        while !self.pds.insert(Pd(self.next_pd)) {
            self.next_pd = self.next_pd.wrapping_add(1);
        }
        let pd = Pd(self.next_pd);
        self.next_pd = self.next_pd.wrapping_add(1);
        Ok(pd)
    }

    /// Ends a protection domain.
    ///
    /// # Errors
    /// [`Error::Busy`] while regions or queue pairs belong to it.
    pub fn dealloc_pd(&mut self, pd: Pd) -> Result<(), Error> {
        self.check_pd(pd)?;
        if self.memory.uses(pd) || self.qps.iter().any(|qp| qp.pd() == pd) {
            return Err(Error::Busy("protection domain"));
        }
        self.pds.remove(&pd);
        Ok(())
    }

    /// Registers memory; its first byte gets the address `iova`.
    ///
    /// # Errors
    /// When remote write or atomic access is asked for without local write, when the addresses pass 2^64, or when
    /// there are as many regions as the limits allow.
    pub fn register_mr(
        &mut self,
        pd: Pd,
        region: Region,
        iova: u64,
        access: Access,
    ) -> Result<MrKeys, Error> {
        self.check_pd(pd)?;
        self.memory.register(&mut self.rng, pd, region, iova, access)
    }

    /// Revokes a region and hands it back. When this returns, no byte of it is touched any more: work requests that
    /// name it fail, and peers that do get a NAK.
    ///
    /// # Errors
    /// When there is no such region.
    pub fn deregister_mr(&mut self, lkey: u32) -> Result<Region, Error> {
        self.memory.deregister(lkey)
    }

    /// A new completion queue of at least `cqe` entries, and the application's half of it.
    ///
    /// # Errors
    /// When `cqe` is 0 or above the limit, or when there are as many queues as the limits allow.
    pub fn create_cq(&mut self, cqe: u32) -> Result<(Cq, CompletionReader), Error> {
        check_range("cqe", cqe, 1, self.config.limits.max_cqe)?;
        self.cqs.create(cqe)
    }

    /// Ends a completion queue.
    ///
    /// # Errors
    /// [`Error::Busy`] while queue pairs complete on it.
    pub fn destroy_cq(&mut self, cq: Cq) -> Result<(), Error> {
        if self.qps.iter().any(|qp| qp.init().send_cq == cq || qp.init().recv_cq == cq) {
            return Err(Error::Busy("completion queue"));
        }
        self.cqs.destroy(cq)?;
        self.events.forget(|event| *event == AsyncEvent::CqErr(cq));
        Ok(())
    }

    /// A new queue pair, in RESET, with a number that nobody can guess.
    ///
    /// # Errors
    /// When a size is above its limit, when an object it names does not exist, or when there are as many queue pairs
    /// as the limits, or the range of numbers, allow.
    pub fn create_qp(&mut self, pd: Pd, init: &QpInit) -> Result<NewQp, Error> {
        self.check_pd(pd)?;
        check_init(init, &self.config.limits)?;
        if !self.cqs.contains(init.send_cq) || !self.cqs.contains(init.recv_cq) {
            return Err(Error::NotFound("completion queue"));
        }
        let exhausted = Error::Exhausted { what: "queue pair", limit: self.config.limits.max_qp };
        let place = self.qps.vacant().ok_or_else(|| exhausted.clone())?;
        let range = self.config.qpns.clone();
        let number = self.qpns.insert(&mut self.rng, range.start, range.end, place).ok_or(exhausted)?;
        Ok(self.insert_qp(place, Qpn::new(number), pd, *init))
    }

    fn insert_qp(&mut self, place: u32, qpn: Qpn, pd: Pd, init: QpInit) -> NewQp {
        let shared = QpShared::new(Doorbell::new(&self.doorbells, place));
        let caps = QueueCaps {
            max_send_sge: init.max_send_sge as usize,
            max_recv_sge: init.max_recv_sge as usize,
            max_inline_data: init.max_inline_data as usize,
            max_msg_sz: self.config.limits.max_msg_sz,
        };
        let (send, sq) = send_ring(init.max_send_wr, caps, &shared);
        let (recv, rq) = recv_ring(init.max_recv_wr, caps, &shared);
        let ident = self.rng.next_u32() as u16;
        self.qps.insert(Qp::new(qpn, pd, init, (sq, rq), shared, self.config.window, ident));
        self.deadlines.grow(place + 1);
        self.ready.grow(place + 1);
        NewQp { qpn, send, recv }
    }

    /// Changes attributes and state of a queue pair.
    ///
    /// # Errors
    /// When the state machine or its attribute tables forbid it, or a value is out of range; nothing is changed.
    pub fn modify_qp(&mut self, now: Instant, qpn: Qpn, attr: &QpAttr) -> Result<(), ModifyError> {
        let place = self.qpns.get(qpn.get()).ok_or(ModifyError::NotFound)?;
        let (limits, port_mtu) = (self.config.limits.clone(), self.config.port_mtu);
        let (qp, mut env) = self.split(place, now);
        qp.ok_or(ModifyError::NotFound)?.modify(&mut env, attr, &limits, port_mtu)?;
        self.settle(place);
        Ok(())
    }

    /// The attributes of a queue pair as they stand, its true state first of all.
    ///
    /// # Errors
    /// When there is no such queue pair.
    pub fn query_qp(&self, qpn: Qpn) -> Result<(QpAttr, QpInit), Error> {
        let qp = self.qpns.get(qpn.get()).and_then(|place| self.qps.get(place));
        let qp = qp.ok_or(Error::NotFound("queue pair"))?;
        Ok((qp.attr(), *qp.init()))
    }

    /// Ends a queue pair. What is posted ends without completions; completions that exist stay.
    ///
    /// # Errors
    /// When there is no such queue pair.
    pub fn destroy_qp(&mut self, qpn: Qpn) -> Result<(), Error> {
        let place = self.qpns.remove(qpn.get()).ok_or(Error::NotFound("queue pair"))?;
        let mut qp = self.qps.remove(place).ok_or(Error::NotFound("queue pair"))?;
        qp.destroy();
        self.deadlines.set(place, None);
        self.events.forget(|event| event.queue_pair() == Some(qpn));
        Ok(())
    }

    /// The oldest asynchronous event that was not fetched.
    pub fn next_event(&mut self) -> Option<AsyncEvent> {
        self.events.next()
    }

    fn check_pd(&self, pd: Pd) -> Result<(), Error> {
        if self.pds.contains(&pd) { Ok(()) } else { Err(Error::NotFound("protection domain")) }
    }
}

fn check_config(config: &Config) -> Result<(), Error> {
    let Limits { max_qp, max_qp_wr, max_sge, max_cqe, max_inline_data, max_msg_sz, .. } = config.limits;
    let (rd_atom, init_rd_atom) = (config.limits.max_qp_rd_atom, config.limits.max_qp_init_rd_atom);
    check_range("max_qp", max_qp, 1, crate::queue::MAX_DOORBELLS)?;
    check_range("max_qp_wr", max_qp_wr, 1, 1 << 20)?;
    check_range("max_sge", max_sge, 1, 32)?;
    check_range("max_cqe", max_cqe, 1, 1 << 22)?;
    check_range("max_inline_data", max_inline_data, 0, 4096)?;
    check_range("max_msg_sz", max_msg_sz, 1, 1 << 31)?;
    check_range("max_qp_rd_atom", rd_atom.into(), 0, 128)?;
    check_range("max_qp_init_rd_atom", init_rd_atom.into(), 0, 128)?;
    check_range("window", config.window, 1, 1 << 16)?;
    check_range("the first queue pair number", config.qpns.start, QPNS.start, QPNS.end - 1)?;
    check_range("the end of the queue pair numbers", config.qpns.end, config.qpns.start + 1, QPNS.end)
}

fn check_init(init: &QpInit, limits: &Limits) -> Result<(), Error> {
    check_range("max_send_wr", init.max_send_wr, 0, limits.max_qp_wr)?;
    check_range("max_recv_wr", init.max_recv_wr, 0, limits.max_qp_wr)?;
    check_range("max_send_sge", init.max_send_sge, 0, limits.max_sge)?;
    check_range("max_recv_sge", init.max_recv_sge, 0, limits.max_sge)?;
    check_range("max_inline_data", init.max_inline_data, 0, limits.max_inline_data)
}

fn check_range(what: &'static str, found: u32, low: u32, high: u32) -> Result<(), Error> {
    if (low..=high).contains(&found) {
        return Ok(());
    }
    Err(Error::OutOfRange { what, found: found.into(), low: low.into(), high: high.into() })
}
