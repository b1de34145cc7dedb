//! Control calls: the engine itself, protection domains, completion queues, events.

use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use super::deadlines::Deadlines;
use super::{Cq, Cqs, Engine, Events, Groups, Numbers, Pd, Ready, Srqs};
use crate::config::{Config, Limits};
use crate::counters::Counters;
use crate::error::Error;
use crate::event::AsyncEvent;
use crate::memory::{Keys, Memory};
use crate::qp::Port;
use crate::queue::{CompletionReader, Doorbells};
use crate::rng::Rng;
use crate::slab::Slab;

/// The first and last queue pair numbers that may be handed out: 0 and 1 are for management, 0xFFFFFF is multicast.
const QPNS: core::ops::Range<u32> = 2..0xFF_FFFF;

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
            port: Port {
                mtu: config.port_mtu,
                rxe_flush_icrc: config.rxe_flush_icrc,
                controlled_qkeys: config.controlled_qkeys,
            },
            pds: Numbers::new("protection domain", limits.max_pd),
            xrcds: Numbers::new("XRC domain", limits.max_xrcd),
            qps: Slab::new(limits.max_qp),
            qpns: Keys::default(),
            qp_counters: Vec::new(),
            memory: Memory::new(limits.max_mr, limits.max_mw),
            cqs: Cqs::new(limits.max_cq),
            srqs: Srqs::new(limits.max_srq),
            groups: Groups::default(),
            addresses: Vec::new(),
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
        self.pds.take().map(Pd)
    }

    /// Ends a protection domain.
    ///
    /// # Errors
    /// [`Error::Busy`] while regions, windows, queue pairs or shared receive queues belong to it.
    pub fn dealloc_pd(&mut self, pd: Pd) -> Result<(), Error> {
        self.check_pd(pd)?;
        if self.memory.uses(pd) || self.srqs.uses_pd(pd) || self.qps.iter().any(|qp| qp.pd() == pd) {
            return Err(Error::Busy("protection domain"));
        }
        self.pds.release(pd.0);
        Ok(())
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
        if self.srqs.uses_cq(cq) || self.qps.iter().any(|qp| qp.init().completes_on(cq)) {
            return Err(Error::Busy("completion queue"));
        }
        self.cqs.destroy(cq)?;
        self.events.forget(|event| *event == AsyncEvent::CqErr(cq));
        Ok(())
    }

    /// Gives a completion queue room for at least `cqe` entries, also while completions arrive. `reader` is the
    /// application's half of it.
    ///
    /// # Errors
    /// When `cqe` is 0 or above the limit, or when more completions than that wait in the queue; it is as it was then.
    pub fn resize_cq(&mut self, cq: Cq, reader: &mut CompletionReader, cqe: u32) -> Result<(), Error> {
        check_range("cqe", cqe, 1, self.config.limits.max_cqe)?;
        self.cqs.resize(cq, reader, cqe)
    }

    /// Moderates the notifications of a completion queue: one is given when `count` completions have come since the
    /// last, or `period` after the first of them, whichever is earlier. A `count` of 0 or 1 ends moderation.
    ///
    /// # Errors
    /// When there is no such queue.
    pub fn modify_cq(&mut self, cq: Cq, count: u16, period: Duration) -> Result<(), Error> {
        self.cqs.moderate(cq, count, period)
    }

    /// Tells the addresses of the interface: datagrams to others are dropped, so without any no datagram arrives.
    pub fn set_addresses(&mut self, addresses: &[IpAddr]) {
        self.addresses = addresses.to_vec();
    }

    /// The oldest asynchronous event that was not fetched.
    pub fn next_event(&mut self) -> Option<AsyncEvent> {
        self.events.next()
    }

    pub(super) fn check_pd(&self, pd: Pd) -> Result<(), Error> {
        self.pds.check(pd.0)
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
    check_range("max_srq_wr", config.limits.max_srq_wr, 1, 1 << 20)?;
    check_range("max_srq_sge", config.limits.max_srq_sge, 1, 32)?;
    check_range("window", config.window, 1, 1 << 16)?;
    check_range("the first queue pair number", config.qpns.start, QPNS.start, QPNS.end - 1)?;
    check_range("the end of the queue pair numbers", config.qpns.end, config.qpns.start + 1, QPNS.end)
}

pub(super) fn check_range(what: &'static str, found: u32, low: u32, high: u32) -> Result<(), Error> {
    if (low..=high).contains(&found) {
        return Ok(());
    }
    Err(Error::OutOfRange { what, found: found.into(), low: low.into(), high: high.into() })
}
