//! Datagrams that wait to be sent.

use alloc::collections::VecDeque;
use core::net::IpAddr;

use super::counters::{CmCounter, CmCounters};
use super::params::{Route, Sender};
use crate::wire::cm::{CmKind, CmMad};
use crate::wire::{MAD_LEN, Qpn};

/// A datagram for queue pair 1 of a peer, to be sent from queue pair 1 with the Q_Key of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Our address.
    pub source: IpAddr,
    /// The peer's.
    pub destination: IpAddr,
    /// The peer's queue pair: [`Qpn::GSI`].
    pub destination_qp: Qpn,
    /// 20 bits.
    pub flow_label: u32,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Hop limit or TTL.
    pub hop_limit: u8,
    /// Service level, which becomes the VLAN priority.
    pub sl: u8,
    /// The payload.
    pub mad: [u8; MAD_LEN],
}

/// Answers to strangers that are kept at most. They have a queue of their own, so that a flood of rubbish does not
/// crowd out the messages of connections.
const ANSWERS: usize = 256;

#[derive(Debug)]
pub(super) struct Outbox {
    /// Messages of connections.
    messages: VecDeque<Datagram>,
    /// Answers for which no connection exists.
    answers: VecDeque<Datagram>,
    limit: usize,
}

impl Outbox {
    /// Room for two messages of each of `connections`. What finds no room is lost, as on the wire, and repeated by the
    /// same timers.
    pub(super) fn new(connections: u32) -> Self {
        let limit = 2 * connections as usize;
        Self { messages: VecDeque::new(), answers: VecDeque::with_capacity(ANSWERS), limit }
    }

    pub(super) fn message(
        &mut self,
        counters: &mut CmCounters,
        route: &Route,
        kind: CmKind,
        mad: [u8; MAD_LEN],
    ) {
        let full = self.messages.len() >= self.limit;
        push(&mut self.messages, counters, kind, full, datagram(route, mad));
    }

    pub(super) fn answer(&mut self, counters: &mut CmCounters, to: &Sender, mad: &CmMad) {
        let full = self.answers.len() >= ANSWERS;
        let datagram = datagram(&Route::new(to.destination, to.source), mad.emit());
        push(&mut self.answers, counters, mad.message.kind(), full, datagram);
    }

    pub(super) fn next(&mut self) -> Option<Datagram> {
        self.messages.pop_front().or_else(|| self.answers.pop_front())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.answers.is_empty()
    }
}

fn push(
    queue: &mut VecDeque<Datagram>,
    counters: &mut CmCounters,
    kind: CmKind,
    full: bool,
    datagram: Datagram,
) {
    if full {
        counters.add(CmCounter::OutboxFull);
    } else {
        counters.add(CmCounter::sent(kind));
        queue.push_back(datagram);
    }
}

fn datagram(route: &Route, mad: [u8; MAD_LEN]) -> Datagram {
    Datagram {
        source: route.source,
        destination: route.destination,
        destination_qp: Qpn::GSI,
        flow_label: route.label(),
        traffic_class: route.traffic_class,
        hop_limit: route.hop_limit,
        sl: route.sl,
        mad,
    }
}
