//! The engine: every object of one device, and the four calls that move packets.

mod control;
mod cqs;
mod deadlines;
mod events;
mod memory;
mod multicast;
mod numbers;
mod qps;
mod ready;
mod shared;
mod srqs;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;

pub use cqs::Cq;
pub(crate) use cqs::Cqs;
pub(crate) use events::Events;
pub use qps::NewQp;
pub(crate) use srqs::Srqs;
pub use srqs::{Srq, SrqAttr, SrqInit, Xrcd};

use crate::completion::WcStatus;
use crate::config::Config;
use crate::counters::{Counter, Counters, Tally};
use crate::memory::{Keys, Memory};
use crate::qp::{Env, Port, Qp};
use crate::queue::Doorbells;
use crate::rng::Rng;
use crate::slab::Slab;
use crate::time::Instant;
use crate::wire::{Malformed, Operation, Packet, Qpn};
use deadlines::Deadlines;
use multicast::Groups;
use numbers::Numbers;
use ready::Ready;

/// Packets that a queue pair sends before another gets its turn.
const QUANTUM: u32 = 16;

/// A protection domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pd(u32);

impl Pd {
    #[cfg(test)]
    pub(crate) const fn for_test(number: u32) -> Self {
        Self(number)
    }
}

/// One RoCEv2 endpoint: the HCA.
///
/// See the [crate documentation](crate) for how it is driven.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    port: Port,
    rng: Rng,
    pds: Numbers,
    xrcds: Numbers,
    qps: Slab<Qp>,
    qpns: Keys,
    /// Of each queue pair, by its place.
    qp_counters: Vec<Counters>,
    memory: Memory,
    cqs: Cqs,
    srqs: Srqs,
    groups: Groups,
    /// Where datagrams may be sent to.
    addresses: Vec<IpAddr>,
    counters: Counters,
    events: Events,
    deadlines: Deadlines,
    ready: Ready,
    doorbells: Arc<Doorbells>,
    /// Packets that the queue pair at the front of `ready` has sent in its turn.
    turn: u32,
}

impl Engine {
    /// Takes a received frame: an Ethernet header first, no frame check sequence. `rest` continues `head` when the
    /// frame lies in two buffers; every header must be in `head`.
    ///
    /// Whatever the bytes are, this neither panics nor allocates. What is not for this endpoint, or not whole, or
    /// not from the peer of the queue pair it names, is counted and changes nothing else.
    pub fn receive(&mut self, now: Instant, head: &[u8], rest: &[u8]) {
        match &Packet::parse(head, rest) {
            Ok(packet) => self.dispatch(now, packet),
            Err(malformed) => self.counters.add(drop_counter(*malformed)),
        }
    }

    fn dispatch(&mut self, now: Instant, packet: &Packet<'_>) {
        if packet.bth.dest_qp == Qpn::MULTICAST {
            return self.deliver(now, packet, None);
        }
        match self.qpns.get(packet.bth.dest_qp.get()) {
            None => self.counters.add(Counter::UnknownQp),
            Some(place) if self.is_misdirected(place, packet) => {
                self.counters.add(Counter::WrongDestination);
            }
            Some(place) => self.hand_over(now, place, packet),
        }
    }

    /// Connections know their addresses; a datagram must be sent to one of the interface.
    fn is_misdirected(&self, place: u32, packet: &Packet<'_>) -> bool {
        let is_datagram = self.qps.get(place).is_some_and(|qp| qp.init().qp_type.is_datagram());
        is_datagram && !self.addresses.contains(&packet.ip.destination)
    }

    /// Gives a packet to a queue pair that it is meant for, as far as addresses tell.
    fn hand_over(&mut self, now: Instant, place: u32, packet: &Packet<'_>) {
        let (qp, mut env) = self.split(place, now);
        let Some(qp) = qp else { return };
        if packet.operation == Operation::Cnp {
            // Nothing reacts to it yet; from anybody but the peer it would not count either.
            let counter = if qp.is_peer(packet) { Counter::RpCnpHandled } else { Counter::WrongSource };
            return env.counters.add(counter);
        }
        match qp.admit(packet) {
            Ok(()) => {
                env.counters.add(Counter::RcvdPkts);
                qp.receive(&mut env, packet);
                self.settle(place);
            }
            Err(counter) => env.counters.add(counter),
        }
    }

    /// Does what timers ask for at `now`.
    pub fn expire(&mut self, now: Instant) {
        self.cqs.expire(now);
        if !self.deadlines.any_due(now) {
            return;
        }
        for place in 0..self.deadlines.len() {
            if self.deadlines.is_due(place, now) {
                let (qp, mut env) = self.split(place, now);
                if let Some(qp) = qp {
                    qp.expire(&mut env);
                }
                self.settle(place);
            }
        }
        self.deadlines.refresh();
    }

    /// Fills `frame` with the next frame to send and returns its length; `None` when there is nothing to send now.
    ///
    /// `frame` must have room for the largest packet of the port: its MTU and [`crate::wire::MAX_HEADER`] bytes.
    pub fn transmit(&mut self, now: Instant, frame: &mut [u8]) -> Option<usize> {
        let Self { ready, doorbells, .. } = self;
        doorbells.collect(|place| ready.mark(place));
        while let Some(place) = self.ready.front() {
            let (qp, mut env) = self.split(place, now);
            let sent = qp.and_then(|qp| qp.poll_transmit(&mut env, frame));
            self.settle_transmit(place, sent.is_some());
            if let Some(len) = sent {
                self.note_sent(now, place, &frame[..len]);
                return sent;
            }
        }
        None
    }

    /// Counts a frame; what goes to a multicast group goes to its members here, too.
    fn note_sent(&mut self, now: Instant, place: u32, frame: &[u8]) {
        self.counters.add(Counter::SentPkts);
        self.qp_counters[place as usize].add(Counter::SentPkts);
        let sends_datagrams = self.qps.get(place).is_some_and(|qp| qp.init().qp_type.is_datagram());
        if self.groups.is_empty() || !sends_datagrams {
            return;
        }
        if let Ok(packet) = Packet::parse(frame, &[])
            && packet.bth.dest_qp == Qpn::MULTICAST
        {
            self.deliver(now, &packet, Some(place));
        }
    }

    /// Makes every completion since the last call visible, and calls `notify` once for each completion queue that
    /// was armed for one of them. To be called when what was transmitted has left.
    pub fn publish(&mut self, notify: &mut dyn FnMut(Cq)) {
        self.cqs.publish(notify);
    }

    /// When the next timer is due; `None` when none is running.
    ///
    /// May be early, when the timer that it was computed for has been stopped since.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Instant> {
        [self.deadlines.next(), self.cqs.deadline()].into_iter().flatten().min()
    }

    /// Whether [`transmit`](Self::transmit) or [`publish`](Self::publish) may have something to do, doorbells
    /// included.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.ready.front().is_some() || self.doorbells.any() || self.cqs.has_staged()
    }

    /// The counters of this engine.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What was counted for one queue pair since it was created.
    ///
    /// # Errors
    /// When there is no such queue pair.
    pub fn qp_counters(&self, qpn: Qpn) -> Result<&Counters, crate::Error> {
        let place = self.qpns.get(qpn.get()).ok_or(crate::Error::NotFound("queue pair"))?;
        self.qp_counters.get(place as usize).ok_or(crate::Error::NotFound("queue pair"))
    }

    /// One queue pair, and the rest of the engine lent to it.
    fn split(&mut self, place: u32, now: Instant) -> (Option<&mut Qp>, Env<'_>) {
        let Self { qps, qp_counters, memory, cqs, srqs, counters, events, .. } = self;
        let counters = Tally { engine: counters, queue_pair: &mut qp_counters[place as usize] };
        let env = Env { now, memory, cqs, srqs, counters, events };
        (qps.get_mut(place), env)
    }

    /// After a queue pair was touched: its deadline is noted, it gets its turn to send, and completion queues that
    /// overflowed take their queue pairs down.
    fn settle(&mut self, place: u32) {
        self.ready.mark(place);
        self.note_deadline(place);
        self.fail_overrun();
    }

    fn settle_transmit(&mut self, place: u32, sent: bool) {
        self.note_deadline(place);
        self.turn = if sent { self.turn + 1 } else { 0 };
        if !sent {
            self.ready.pop();
        } else if self.turn == QUANTUM {
            self.turn = 0;
            self.ready.rotate();
        }
        self.fail_overrun();
    }

    fn note_deadline(&mut self, place: u32) {
        let deadline = self.qps.get(place).and_then(Qp::deadline);
        self.deadlines.set(place, deadline);
    }

    /// A completion queue that has lost completions is of no use: its queue pairs go into error.
    fn fail_overrun(&mut self) {
        while let Some(cq) = self.cqs.take_overrun() {
            self.counters.add(Counter::CqOverrun);
            self.events.raise(crate::AsyncEvent::CqErr(cq));
            self.fail_where(|qp| qp.init().completes_on(cq));
        }
    }

    /// The interface is lost: every queue pair goes into error, and everything posted is flushed.
    pub fn fail_all(&mut self) {
        self.fail_where(|_| true);
    }

    fn fail_where(&mut self, which: impl Fn(&Qp) -> bool) {
        let Self { qps, qp_counters, memory, cqs, srqs, counters, events, deadlines, .. } = self;
        for (place, qp) in qps.iter_mut().filter(|(_, qp)| which(qp)) {
            if qp.can_fail() {
                let counters = Tally { engine: counters, queue_pair: &mut qp_counters[place as usize] };
                let mut env = Env { now: Instant::ZERO, memory, cqs, srqs, counters, events };
                qp.fail(&mut env, WcStatus::WrFlushErr, false);
                env.events.raise(crate::AsyncEvent::QpFatal(qp.number()));
            }
            deadlines.set(place, None);
        }
    }
}

/// Which counter a frame goes to that is no packet.
const fn drop_counter(malformed: Malformed) -> Counter {
    match malformed {
        Malformed::NotRoce => Counter::NotRoce,
        Malformed::UnknownOpcode => Counter::UnknownOpcode,
        Malformed::TransportVersion => Counter::BadVersion,
        Malformed::Icrc => Counter::IcrcErrors,
        Malformed::IpOptions
        | Malformed::Fragment
        | Malformed::Ipv6Extension
        | Malformed::IpLength
        | Malformed::IpChecksum
        | Malformed::UdpLength => Counter::BadIp,
        _ => Counter::BadLength,
    }
}
