//! Completion queues, the engine's side.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::completion::{Completion, WcStatus};
use crate::error::Error;
use crate::queue::{CompletionReader, CqShared, Producer, completion_ring};
use crate::slab::Slab;

/// A completion queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cq {
    place: u32,
    /// Tells this queue from earlier ones in the same place.
    serial: u32,
}

#[derive(Debug)]
struct CompletionQueue {
    serial: u32,
    ring: Producer<Completion>,
    shared: Arc<CqShared>,
    /// Something solicited or unsuccessful is staged.
    solicited: bool,
    /// Lost a completion; takes no more.
    overrun: bool,
}

/// Every completion queue of an engine.
#[derive(Debug)]
pub(crate) struct Cqs {
    queues: Slab<CompletionQueue>,
    next_serial: u32,
    /// Queues with staged completions, each once.
    staged: Vec<u32>,
    /// Queues that overflowed and whose queue pairs do not know yet.
    overrun: Vec<Cq>,
    limit: u32,
}

impl Cqs {
    pub(crate) const fn new(limit: u32) -> Self {
        Self { queues: Slab::new(limit), next_serial: 0, staged: Vec::new(), overrun: Vec::new(), limit }
    }

    pub(crate) fn create(&mut self, capacity: u32) -> Result<(Cq, CompletionReader), Error> {
        let exhausted = Error::Exhausted { what: "completion queue", limit: self.limit };
        let place = self.queues.vacant().ok_or(exhausted)?;
        let (ring, shared, reader) = completion_ring(capacity);
        let serial = self.next_serial;
        self.next_serial = serial.wrapping_add(1);
        self.queues.insert(CompletionQueue { serial, ring, shared, solicited: false, overrun: false });
        // Room for every queue, so that nothing is allocated when completions come.
        self.staged.reserve(place as usize + 1);
        self.overrun.reserve(place as usize + 1);
        Ok((Cq { place, serial }, reader))
    }

    pub(crate) fn destroy(&mut self, cq: Cq) -> Result<(), Error> {
        self.find(cq).ok_or(Error::NotFound("completion queue"))?;
        self.queues.remove(cq.place);
        self.staged.retain(|place| *place != cq.place);
        self.overrun.retain(|other| *other != cq);
        Ok(())
    }

    pub(crate) fn contains(&self, cq: Cq) -> bool {
        self.queues.get(cq.place).is_some_and(|queue| queue.serial == cq.serial)
    }

    /// Stages a completion. One that finds the queue full is lost, and the queue with it.
    pub(crate) fn push(&mut self, cq: Cq, completion: Completion, solicited: bool) {
        let Some(queue) = self.find(cq) else { return };
        if queue.overrun {
            return;
        }
        let first = !queue.ring.has_staged();
        let Some(slot) = queue.ring.next() else {
            queue.overrun = true;
            queue.shared.set_overrun();
            return self.overrun.push(cq);
        };
        *slot = completion;
        queue.ring.stage();
        queue.solicited |= solicited || completion.status != WcStatus::Success;
        if first {
            self.staged.push(cq.place);
        }
    }

    pub(crate) fn publish(&mut self, notify: &mut dyn FnMut(Cq)) {
        let Self { queues, staged, .. } = self;
        for place in staged.drain(..) {
            let Some(queue) = queues.get_mut(place) else { continue };
            queue.ring.publish();
            if queue.shared.fires(core::mem::take(&mut queue.solicited)) {
                notify(Cq { place, serial: queue.serial });
            }
        }
    }

    pub(crate) const fn has_staged(&self) -> bool {
        !self.staged.is_empty()
    }

    pub(crate) fn take_overrun(&mut self) -> Option<Cq> {
        self.overrun.pop()
    }

    fn find(&mut self, cq: Cq) -> Option<&mut CompletionQueue> {
        self.queues.get_mut(cq.place).filter(|queue| queue.serial == cq.serial)
    }
}
