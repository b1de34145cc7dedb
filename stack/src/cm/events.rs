//! Events that wait to be fetched.

use alloc::collections::VecDeque;

use super::ConnId;
use super::counters::{CmCounter, CmCounters};
use super::event::CmEvent;

/// Events that one connection raises at most: request or reply, MRA, established, an end, time-wait.
const EACH: usize = 5;

/// The queue of events, oldest first.
///
/// Peers cannot fill it: each event is raised once a connection, connections are bounded, and the request of one that
/// ends before the application has looked is withdrawn. The limit is for an application that acts without looking.
#[derive(Debug)]
pub(super) struct Events {
    queue: VecDeque<CmEvent>,
    limit: usize,
}

impl Events {
    pub(super) const fn new(connections: u32) -> Self {
        Self { queue: VecDeque::new(), limit: EACH * connections as usize }
    }

    pub(super) fn raise(&mut self, counters: &mut CmCounters, event: CmEvent) {
        if self.queue.len() < self.limit {
            self.queue.push_back(event);
        } else {
            counters.add(CmCounter::EventsLost);
        }
    }

    /// Takes back the request that began `id`; `false` when it has been fetched.
    pub(super) fn withdraw(&mut self, id: ConnId) -> bool {
        let place = self.queue.iter().position(|event| event.id() == id && event.is_request());
        place.is_some_and(|place| self.queue.remove(place).is_some())
    }

    /// The application has no use for `id` any more.
    pub(super) fn forget(&mut self, id: ConnId) {
        self.queue.retain(|event| event.id() != id);
    }

    pub(super) fn next(&mut self) -> Option<CmEvent> {
        self.queue.pop_front()
    }
}
