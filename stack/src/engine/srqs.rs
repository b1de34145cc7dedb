//! Shared receive queues, the engine's side.

use super::cqs::Cq;
use super::{Events, Pd};
use crate::error::Error;
use crate::event::AsyncEvent;
use crate::memory::Keys;
use crate::queue::{Consumer, RecvSlot, SharedRecvQueue, shared_recv_queue};
use crate::rng::Rng;
use crate::slab::Slab;

/// A shared receive queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Srq {
    place: u32,
    /// Tells this queue from earlier ones in the same place.
    serial: u32,
}

/// An XRC domain: what the targets and the shared receive queues in it have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Xrcd(pub(super) u32);

/// What a shared receive queue is created with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SrqInit {
    /// Receives outstanding at most; rounded up to a power of two.
    pub max_wr: u32,
    /// Entries of one receive.
    pub max_sge: u32,
    /// Set for a queue that XRC targets of a domain receive for: which domain, and where its receives complete.
    pub xrc: Option<(Xrcd, Cq)>,
}

/// What `ibv_query_srq` tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SrqAttr {
    /// Receives outstanding at most.
    pub max_wr: u32,
    /// Entries of one receive.
    pub max_sge: u32,
    /// [`AsyncEvent::SrqLimitReached`] is raised when fewer receives than this are left; 0 when it is not armed.
    pub srq_limit: u32,
}

#[derive(Debug)]
struct Queue {
    serial: u32,
    number: u32,
    pd: Pd,
    ring: Consumer<RecvSlot>,
    init: SrqInit,
    limit: u32,
}

impl Queue {
    fn posted(&mut self) -> u64 {
        self.ring.refresh() - self.ring.head()
    }
}

/// Every shared receive queue of an engine.
#[derive(Debug)]
pub(crate) struct Srqs {
    queues: Slab<Queue>,
    /// Numbers that XRC requests name them by; random, as those of queue pairs.
    numbers: Keys,
    next_serial: u32,
    limit: u32,
}

impl Srqs {
    pub(crate) fn new(limit: u32) -> Self {
        Self { queues: Slab::new(limit), numbers: Keys::default(), next_serial: 0, limit }
    }

    pub(crate) fn create(
        &mut self,
        rng: &mut Rng,
        pd: Pd,
        init: &SrqInit,
    ) -> Result<(Srq, SharedRecvQueue), Error> {
        let exhausted = Error::Exhausted { what: "shared receive queue", limit: self.limit };
        let place = self.queues.vacant().ok_or_else(|| exhausted.clone())?;
        let number = self.numbers.insert(rng, 1, 1 << 24, place).ok_or(exhausted)?;
        let (queue, ring) = shared_recv_queue(init.max_wr, init.max_sge as usize);
        let serial = self.next_serial;
        self.next_serial = serial.wrapping_add(1);
        self.queues.insert(Queue { serial, number, pd, ring, init: *init, limit: 0 });
        Ok((Srq { place, serial }, queue))
    }

    pub(crate) fn destroy(&mut self, srq: Srq) -> Result<(), Error> {
        let number = self.find(srq)?.number;
        self.numbers.remove(number);
        self.queues.remove(srq.place);
        Ok(())
    }

    pub(crate) fn query(&self, srq: Srq) -> Result<SrqAttr, Error> {
        let queue = self.get(srq).ok_or(MISSING)?;
        Ok(SrqAttr { max_wr: queue.ring.capacity(), max_sge: queue.init.max_sge, srq_limit: queue.limit })
    }

    /// The number that XRC requests name it by.
    pub(crate) fn number(&self, srq: Srq) -> Result<u32, Error> {
        self.get(srq).map(|queue| queue.number).ok_or(MISSING)
    }

    /// Arms the limit event. A limit that the queue is below already is reported with the next receive that is taken.
    pub(crate) fn set_limit(&mut self, srq: Srq, limit: u32) -> Result<(), Error> {
        let queue = self.find(srq)?;
        let high = u64::from(queue.ring.capacity());
        if u64::from(limit) > high {
            return Err(Error::OutOfRange { what: "srq_limit", found: limit.into(), low: 0, high });
        }
        queue.limit = limit;
        Ok(())
    }

    pub(crate) fn resize(
        &mut self,
        srq: Srq,
        posting: &mut SharedRecvQueue,
        max_wr: u32,
    ) -> Result<(), Error> {
        let queue = self.find(srq)?;
        if max_wr < queue.limit {
            return Err(Error::Invalid("the shared receive queue would be smaller than its limit"));
        }
        if posting.regrow(&mut queue.ring, max_wr) {
            Ok(())
        } else {
            Err(Error::Invalid("more receives are posted than the shared receive queue would hold"))
        }
    }

    pub(crate) fn contains(&self, srq: Srq) -> bool {
        self.get(srq).is_some()
    }

    pub(crate) fn is_xrc(&self, srq: Srq) -> bool {
        self.get(srq).is_some_and(|queue| queue.init.xrc.is_some())
    }

    pub(crate) fn max_sge(&self, srq: Srq) -> u32 {
        self.get(srq).map_or(0, |queue| queue.init.max_sge)
    }

    /// Whose keys its receives name.
    pub(crate) fn pd(&self, srq: Srq) -> Option<Pd> {
        self.get(srq).map(|queue| queue.pd)
    }

    pub(crate) fn uses_pd(&self, pd: Pd) -> bool {
        self.queues.iter().any(|queue| queue.pd == pd)
    }

    pub(crate) fn uses_cq(&self, cq: Cq) -> bool {
        self.queues.iter().any(|queue| queue.init.xrc.is_some_and(|(_, used)| used == cq))
    }

    pub(crate) fn uses_xrcd(&self, xrcd: Xrcd) -> bool {
        self.queues.iter().any(|queue| queue.init.xrc.is_some_and(|(used, _)| used == xrcd))
    }

    /// The queue of this number in the domain, and the protection domain that its messages move memory in.
    pub(crate) fn in_domain(&self, number: u32, xrcd: Xrcd) -> Option<(Srq, Pd)> {
        let place = self.numbers.get(number)?;
        let queue = self.queues.get(place)?;
        let (domain, _) = queue.init.xrc?;
        (domain == xrcd).then_some((Srq { place, serial: queue.serial }, queue.pd))
    }

    /// Where receives of an XRC queue complete.
    pub(crate) fn completion_queue(&self, srq: Srq) -> Option<Cq> {
        self.get(srq)?.init.xrc.map(|(_, cq)| cq)
    }

    pub(crate) fn is_posted(&mut self, srq: Srq) -> bool {
        self.find(srq).is_ok_and(|queue| queue.posted() > 0)
    }

    /// Takes the oldest receive, as a copy, so that its place is free; false when there is none.
    pub(crate) fn take(&mut self, srq: Srq, into: &mut RecvSlot, events: &mut Events) -> bool {
        let Ok(queue) = self.find(srq) else { return false };
        let posted = queue.posted();
        if posted == 0 {
            return false;
        }
        let head = queue.ring.head();
        let slot = queue.ring.get(head);
        into.fill(slot.wr_id, slot.sges());
        queue.ring.release_to(head + 1);
        if posted - 1 < u64::from(queue.limit) {
            queue.limit = 0;
            events.raise(AsyncEvent::SrqLimitReached(srq));
        }
        true
    }

    fn get(&self, srq: Srq) -> Option<&Queue> {
        self.queues.get(srq.place).filter(|queue| queue.serial == srq.serial)
    }

    fn find(&mut self, srq: Srq) -> Result<&mut Queue, Error> {
        self.queues.get_mut(srq.place).filter(|queue| queue.serial == srq.serial).ok_or(MISSING)
    }
}

const MISSING: Error = Error::NotFound("shared receive queue");
