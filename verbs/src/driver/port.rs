//! One port: an engine and the interface it sits on, and one round of the loop.

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::io;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use uroce_nic::Nic;
use uroce_nic::host::Change;
use uroce_stack::cm::CmConfig;
use uroce_stack::wire::{MacAddr, Mtu, Qpn};
use uroce_stack::{Cq, Engine, Instant, QpAttr, QpState};

use super::events::Events;
use super::signal::CqSignal;
use super::watch::Watch;
use crate::cm::CmService;
use crate::cq::CqId;
use crate::error::Error;
use crate::event::AsyncEvent;
use crate::srq::SrqId;

/// Frames received, and frames sent, in one round: enough to share the cost of a system call, few enough that
/// an acknowledgement does not wait long.
const BUDGET: usize = 64;

/// Frames of one queue pair's turn at most, after which an acknowledgement that it owed has left.
const TURN: usize = 16;
/// Rounds after which completions become visible even if the interface takes no frames at all.
const MAX_HELD: usize = 64;

/// Everything that the lock protects.
pub(crate) struct Port {
    pub(crate) engine: Engine,
    pub(crate) nic: Box<dyn Nic>,
    watch: Option<Watch>,
    mtu: Mtu,
    health: Health,
    /// Frames may be waiting that the interface's descriptor does not tell.
    more: bool,
    /// An acknowledgement was written that the interface has not been told of.
    unflushed: bool,
    held: Held,
    queue_pairs: HashSet<Qpn>,
    queues: HashMap<Cq, Queue>,
    /// To be told once the lock is released.
    fired: Vec<Arc<CqSignal>>,
    /// Made when the first event channel is.
    manager: Option<Box<CmService>>,
    /// The time of the round.
    now: Instant,
}

/// What has happened since completions became visible, while acknowledgements were still owed.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    frames: usize,
    rounds: usize,
}

/// How a round is to treat a lone acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Everything leaves at once.
    Prompt,
    /// It may leave with the next round, which the caller, who polls in a loop, will start at once: perhaps
    /// together with what the caller posts in answer, for the price of one system call.
    Lazy,
}

/// What is known of a completion queue here.
struct Queue {
    id: CqId,
    signal: Arc<CqSignal>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Alive,
    /// The interface is gone. The engine still flushes what is posted.
    Failed,
    /// The engine panicked twice: its state is not to be trusted, and nothing runs any more.
    Broken,
}

/// What a round did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    /// The time that it was stamped with.
    pub(crate) now: Instant,
    /// Frames received and sent.
    pub(crate) frames: usize,
}

impl Port {
    /// An engine that was made for `mtu`, on an interface whose changes `watch` tells if the kernel knows it.
    pub(crate) fn new(engine: Engine, mtu: Mtu, nic: Box<dyn Nic>, watch: Option<Watch>) -> Self {
        Self {
            engine,
            nic,
            watch,
            mtu,
            health: Health::Alive,
            more: false,
            unflushed: false,
            held: Held::default(),
            queue_pairs: HashSet::new(),
            queues: HashMap::new(),
            fired: Vec::new(),
            manager: None,
            now: Instant::ZERO,
        }
    }

    /// Starts the connection manager, unless it runs.
    pub(crate) fn start_manager(
        &mut self,
        now: Instant,
        mac: MacAddr,
        config: CmConfig,
    ) -> Result<(), Error> {
        if self.manager.is_none() {
            self.manager = Some(Box::new(CmService::open(&mut self.engine, now, mac, config)?));
        }
        Ok(())
    }

    /// The connection manager, and the engine that it works on; nothing before it was started.
    pub(crate) fn manager(&mut self) -> Option<(&mut CmService, &mut Engine)> {
        self.manager.as_deref_mut().map(|manager| (manager, &mut self.engine))
    }

    /// Whether frames still come and go.
    pub(crate) fn is_alive(&self) -> bool {
        self.health == Health::Alive
    }

    pub(crate) fn add_queue(&mut self, cq: Cq, id: CqId, signal: Arc<CqSignal>) {
        self.queues.insert(cq, Queue { id, signal });
    }

    pub(crate) fn remove_queue(&mut self, cq: Cq) {
        self.queues.remove(&cq);
    }

    pub(crate) fn add_queue_pair(&mut self, qpn: Qpn) {
        self.queue_pairs.insert(qpn);
    }

    pub(crate) fn remove_queue_pair(&mut self, qpn: Qpn) {
        self.queue_pairs.remove(&qpn);
    }

    pub(crate) const fn watch(&self) -> Option<&Watch> {
        self.watch.as_ref()
    }

    /// One round of the loop. Whatever goes wrong in it becomes an event, never a panic of the caller.
    /// `awoken`: the driver has slept since the last one.
    pub(crate) fn round(&mut self, now: Instant, awoken: bool, pace: Pace, events: &Events) -> Round {
        self.now = now;
        while let Some(change) = self.watch.as_mut().and_then(|watch| watch.look(now, awoken)) {
            self.note(change, now, events);
        }
        if let Some(addresses) = self.watch.as_mut().and_then(Watch::new_addresses) {
            self.engine.set_addresses(&addresses);
        }
        let frames = match catch_unwind(AssertUnwindSafe(|| self.run(now, pace))) {
            Ok(Ok(frames)) => frames,
            Ok(Err(error)) => self.fail(&error.to_string(), events),
            Err(panic) => self.fail(message(&*panic), events),
        };
        self.collect_events(events);
        Round { now, frames }
    }

    /// The signals to fire once the lock is released.
    pub(crate) fn take_fired(&mut self) -> Vec<Arc<CqSignal>> {
        std::mem::take(&mut self.fired)
    }

    /// How long nothing will be due: `None` when there is something to do now.
    pub(crate) fn idle_for(&self, now: Instant) -> Option<Duration> {
        if self.more || self.unflushed || self.engine.has_work() {
            return None;
        }
        let manager = self.manager.as_ref().and_then(|manager| manager.next_deadline());
        let due = self.engine.next_deadline().into_iter().chain(manager).min();
        let due = due.map_or(Duration::MAX, |at| at.since(now));
        Some(due).filter(|due| !due.is_zero())
    }

    fn run(&mut self, now: Instant, pace: Pace) -> io::Result<usize> {
        let frames = match self.health {
            Health::Alive => self.exchange(now, pace)?,
            Health::Failed => self.flush_only(now),
            Health::Broken => return Ok(0),
        };
        if self.may_publish() {
            self.publish();
        }
        if let Some((manager, engine)) = self.manager() {
            manager.round(engine, now);
        }
        Ok(frames)
    }

    fn exchange(&mut self, now: Instant, pace: Pace) -> io::Result<usize> {
        let idle = !self.engine.has_work();
        let (engine, nic) = (&mut self.engine, &mut self.nic);
        let received = nic.rx(BUDGET, &mut |frame| engine.receive(now, frame.head, frame.rest))?;
        engine.expire(now);
        let sent = self.send(now)?;
        let alone = idle && sent == 1 && received > 0 && !self.engine.has_work();
        self.unflushed = pace == Pace::Lazy && alone && !self.unflushed;
        if !self.unflushed {
            self.nic.flush()?;
        }
        // What was sent may have been for ourselves, which no descriptor tells.
        self.more = received == BUDGET || sent > 0;
        Ok(received + sent)
    }

    fn send(&mut self, now: Instant) -> io::Result<usize> {
        let (engine, nic, mut nothing_left) = (&mut self.engine, &mut self.nic, false);
        let sent = nic.tx(BUDGET, &mut |frame| {
            let length = engine.transmit(now, frame);
            nothing_left = length.is_none();
            length
        })?;
        let Held { frames, rounds } = self.held;
        self.held = match nothing_left {
            true => Held::default(),
            false => Held { frames: frames + sent, rounds: rounds + 1 },
        };
        Ok(sent)
    }

    /// Whether the acknowledgements of all that was received have left. Queue pairs take turns, so they have
    /// when each has had its own.
    fn may_publish(&self) -> bool {
        let Held { frames, rounds } = self.held;
        rounds == 0 || frames > self.queue_pairs.len() * TURN || rounds > MAX_HELD
    }

    fn publish(&mut self) {
        self.held = Held::default();
        let (queues, fired) = (&self.queues, &mut self.fired);
        self.engine.publish(&mut |cq| fired.extend(queues.get(&cq).map(|queue| Arc::clone(&queue.signal))));
    }

    /// Without an interface, the engine still takes what is posted, to flush it.
    fn flush_only(&mut self, now: Instant) -> usize {
        self.engine.expire(now);
        let mut nowhere = vec![0; self.nic.max_frame()];
        (0..BUDGET).take_while(|_| self.engine.transmit(now, &mut nowhere).is_some()).count()
    }

    fn fail(&mut self, reason: &str, events: &Events) -> usize {
        tracing::error!(reason, mode = %self.nic.mode(), "the device failed; its queue pairs are in error");
        (self.more, self.unflushed, self.watch) = (false, false, None);
        self.held = Held::default();
        let flushed = self.is_alive() && catch_unwind(AssertUnwindSafe(|| self.engine.fail_all())).is_ok();
        self.health = if flushed { Health::Failed } else { Health::Broken };
        events.push(AsyncEvent::DeviceFatal);
        1
    }

    fn note(&mut self, change: Change, now: Instant, events: &Events) {
        match change {
            Change::Removed => {
                self.fail("the interface is gone", events);
            }
            Change::LinkDown => self.note_down(events),
            Change::LinkUp => events.push(AsyncEvent::PortActive),
            Change::AddressRemoved(address) => self.note_lost(address, now, events),
            Change::MtuChanged(mtu) => self.note_mtu(mtu),
        }
    }

    fn note_down(&mut self, events: &Events) {
        events.push(AsyncEvent::PortErr);
        if self.watch.as_ref().is_some_and(Watch::was_taken_down) {
            tracing::warn!("the interface was taken down; its queue pairs are in error");
            self.engine.fail_all();
        }
    }

    /// The queue pairs that used an address which is gone cannot be answered any more.
    fn note_lost(&mut self, address: IpAddr, now: Instant, events: &Events) {
        events.push(AsyncEvent::GidChange);
        let engine = &self.engine;
        let uses = |qpn: &&Qpn| {
            let path = engine.query_qp(**qpn).ok().and_then(|(attr, _)| attr.path);
            path.is_some_and(|path| path.source == address)
        };
        let lost: Vec<Qpn> = self.queue_pairs.iter().filter(uses).copied().collect();
        for qpn in lost {
            tracing::warn!(%qpn, %address, "the address of a queue pair was removed; it is in error");
            if self.engine.modify_qp(now, qpn, &QpAttr::to(QpState::Err)).is_ok() {
                events.push(AsyncEvent::QpFatal(qpn));
            }
        }
    }

    fn note_mtu(&self, mtu: u32) {
        if Mtu::for_link(mtu).is_none_or(|possible| possible < self.mtu) {
            let (link, path) = (mtu, self.mtu);
            let what_now = "open the device again";
            tracing::warn!(link, %path, what_now, "the interface's MTU has become too small for the path MTU");
        }
    }

    fn collect_events(&mut self, events: &Events) {
        if self.health == Health::Broken {
            return;
        }
        while let Some(event) = self.engine.next_event() {
            if let Some(event) = self.translate(event) {
                events.push(event);
            }
        }
    }

    fn translate(&mut self, event: uroce_stack::AsyncEvent) -> Option<AsyncEvent> {
        use uroce_stack::AsyncEvent as From;
        Some(match event {
            From::CqErr(cq) => {
                let queue = self.queues.get(&cq)?;
                // Who waits for a completion must learn that none will come.
                self.fired.push(Arc::clone(&queue.signal));
                AsyncEvent::CqErr(queue.id)
            }
            From::QpFatal(qpn) => AsyncEvent::QpFatal(qpn),
            From::QpReqErr(qpn) => AsyncEvent::QpReqErr(qpn),
            From::QpAccessErr(qpn) => AsyncEvent::QpAccessErr(qpn),
            From::CommEst(qpn) => {
                let now = self.now;
                if let Some((manager, engine)) = self.manager() {
                    manager.communication_established(engine, now, qpn);
                }
                AsyncEvent::CommEst(qpn)
            }
            From::SqDrained(qpn) => AsyncEvent::SqDrained(qpn),
            From::QpLastWqeReached(qpn) => AsyncEvent::QpLastWqeReached(qpn),
            From::SrqLimitReached(srq) => AsyncEvent::SrqLimitReached(SrqId(srq)),
        })
    }
}

/// What a panic said.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without a message")
}
