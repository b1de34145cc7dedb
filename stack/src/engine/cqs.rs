//! Completion queues, the engine's side.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use crate::completion::{Completion, WcStatus};
use crate::error::Error;
use crate::queue::{CompletionReader, CqShared, Producer, completion_ring};
use crate::slab::Slab;
use crate::time::Instant;

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
    moderation: Option<Moderation>,
}

/// Notifications come for several completions at once.
#[derive(Clone, Copy, Debug)]
struct Moderation {
    count: u32,
    period: Duration,
    /// Completions that no notification has told of.
    untold: u32,
    /// When they are to be told of.
    due: Option<Instant>,
}

impl Moderation {
    /// Whether it is time for a notification, now that `new` completions have come.
    fn is_due(&mut self, now: Instant, new: u32) -> bool {
        self.untold = self.untold.saturating_add(new);
        if self.untold == 0 {
            return false;
        }
        let due = *self.due.get_or_insert(now + self.period);
        if self.untold < self.count && now < due {
            return false;
        }
        (self.untold, self.due) = (0, None);
        true
    }
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
    /// When the next moderated notification is due; may be early.
    deadline: Option<Instant>,
    /// The time of the round.
    now: Instant,
    limit: u32,
}

impl Cqs {
    pub(crate) const fn new(limit: u32) -> Self {
        Self {
            queues: Slab::new(limit),
            next_serial: 0,
            staged: Vec::new(),
            overrun: Vec::new(),
            deadline: None,
            now: Instant::ZERO,
            limit,
        }
    }

    pub(crate) fn create(&mut self, capacity: u32) -> Result<(Cq, CompletionReader), Error> {
        let exhausted = Error::Exhausted { what: "completion queue", limit: self.limit };
        let place = self.queues.vacant().ok_or(exhausted)?;
        let (ring, shared, reader) = completion_ring(capacity);
        let serial = self.next_serial;
        self.next_serial = serial.wrapping_add(1);
        self.queues.insert(CompletionQueue {
            serial,
            ring,
            shared,
            solicited: false,
            overrun: false,
            moderation: None,
        });
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

    pub(crate) fn resize(&mut self, cq: Cq, reader: &mut CompletionReader, cqe: u32) -> Result<(), Error> {
        let queue = self.find(cq).ok_or(Error::NotFound("completion queue"))?;
        if reader.regrow(&mut queue.ring, cqe) {
            Ok(())
        } else {
            Err(Error::Invalid("more completions wait than the completion queue would hold: poll them first"))
        }
    }

    pub(crate) fn moderate(&mut self, cq: Cq, count: u16, period: Duration) -> Result<(), Error> {
        let now = self.now;
        let queue = self.find(cq).ok_or(Error::NotFound("completion queue"))?;
        let untold = queue.moderation.map_or(0, |moderation| moderation.untold);
        // An armed application waits for what was held back until now: it is told in this round.
        let moderation =
            Moderation { count: count.into(), period, untold, due: (untold != 0).then_some(now) };
        queue.moderation = (count > 1).then_some(moderation);
        if untold != 0 && !queue.ring.has_staged() {
            self.staged.push(cq.place);
        }
        Ok(())
    }

    /// Looks again at queues whose notification may be due.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.now = now;
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        let Self { queues, staged, deadline, .. } = self;
        *deadline = None;
        for (place, queue) in queues.iter_mut() {
            let due = queue.moderation.and_then(|moderation| moderation.due);
            match due {
                Some(due) if due > now => {
                    *deadline = Some(deadline.map_or(due, |earliest| earliest.min(due)));
                }
                Some(_) if !queue.ring.has_staged() => staged.push(place),
                _ => {}
            }
        }
    }

    /// When [`expire`](Self::expire) has something to do.
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    pub(crate) fn publish(&mut self, notify: &mut dyn FnMut(Cq)) {
        let Self { queues, staged, deadline, now, .. } = self;
        for place in staged.drain(..) {
            let Some(queue) = queues.get_mut(place) else { continue };
            let new = queue.ring.publish();
            if let Some(moderation) = &mut queue.moderation
                && !moderation.is_due(*now, new)
            {
                *deadline = [*deadline, moderation.due].into_iter().flatten().min();
                continue;
            }
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
