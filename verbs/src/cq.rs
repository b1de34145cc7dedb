//! Completion queues.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use uroce_stack::{Completion, CompletionReader, Cq};

use crate::channel::{CompletionChannel, Membership};
use crate::context::Context;
use crate::driver::{CqSignal, Pace, lock};
use crate::error::Error;
use crate::os::EventFd;

/// Names a completion queue in events. No two queues of a process share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CqId(u64);

impl CqId {
    fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Makes a completion queue; from [`Context::create_cq`].
#[derive(Debug)]
#[must_use = "nothing is made before `build`"]
pub struct CqBuilder<'a> {
    ctx: &'a Context,
    cqe: u32,
    channel: Option<&'a CompletionChannel>,
    token: u64,
}

impl<'a> CqBuilder<'a> {
    pub(crate) const fn new(ctx: &'a Context, cqe: u32) -> Self {
        Self { ctx, cqe, channel: None, token: 0 }
    }

    /// Events of the queue arrive at `channel`.
    pub const fn channel(mut self, channel: &'a CompletionChannel) -> Self {
        self.channel = Some(channel);
        self
    }

    /// Comes back in every event of the queue (`cq_context`). 0 unless set.
    pub const fn token(mut self, token: u64) -> Self {
        self.token = token;
        self
    }

    /// Makes it.
    ///
    /// # Errors
    /// [`Error::Refused`] when the number of entries is out of range or the device has no queue left.
    pub fn build(self) -> Result<CompletionQueue, Error> {
        let id = CqId::next();
        let membership = self.channel.map(|channel| channel.membership(id, self.token));
        let core = self.ctx.core();
        let event = core.inline.then(EventFd::new).transpose();
        let event = event.map_err(Error::system("cannot make the eventfd of a completion queue"))?;
        let signal = CqSignal::new(membership.clone(), event);
        let (cq, reader) = core.control(|port, _| {
            let (cq, reader) = port.engine.create_cq(self.cqe)?;
            port.add_queue(cq, id, Arc::clone(&signal));
            Ok::<_, Error>((cq, reader))
        })?;
        let inner = Inner { ctx: self.ctx.clone(), cq, id, reader: Mutex::new(reader), signal, membership };
        Ok(CompletionQueue(Arc::new(inner)))
    }
}

/// Where work requests complete (`ibv_cq`). A cheap handle: clones name the same queue.
///
/// Many threads may poll one queue; each completion goes to one of them. The queue lives until its last
/// handle and the last queue pair that uses it are gone.
#[derive(Clone)]
pub struct CompletionQueue(Arc<Inner>);

struct Inner {
    ctx: Context,
    cq: Cq,
    id: CqId,
    reader: Mutex<CompletionReader>,
    signal: Arc<CqSignal>,
    membership: Option<Membership>,
}

impl CompletionQueue {
    /// Takes up to `out.len()` completions, oldest first, and says how many. 0 means that there are none now.
    ///
    /// On a device that is driven inline this also runs the engine. Errors of work requests are in their
    /// completions; that completions were lost is reported as
    /// [`AsyncEvent::CqErr`](crate::AsyncEvent::CqErr).
    pub fn poll(&self, out: &mut [Completion]) -> usize {
        let found = self.take(out);
        if found == out.len() || !self.core().inline {
            return found;
        }
        self.core().try_round(Pace::Lazy);
        found + self.take(&mut out[found..])
    }

    /// Takes up to `out.len()` completions, waiting for the first one; 0 when `timeout` passed without any.
    /// `None` waits for ever.
    ///
    /// It looks for a short while, then arms the queue, looks again, and sleeps.
    ///
    /// # Errors
    /// [`Error::CqOverrun`] when completions were lost and no others are left, [`Error::System`] when the
    /// thread cannot sleep.
    pub fn wait(&self, out: &mut [Completion], timeout: Option<Duration>) -> Result<usize, Error> {
        super::wait::wait(self, out, timeout)
    }

    /// Waits for one completion, however long it takes.
    ///
    /// # Errors
    /// As [`wait`](Self::wait). A work request that failed is no error here: see
    /// [`CompletionExt::result`](crate::CompletionExt::result).
    pub fn wait_one(&self) -> Result<Completion, Error> {
        let mut one = [Completion::default()];
        while self.wait(&mut one, None)? == 0 {}
        Ok(one[0])
    }

    /// Waits for one completion until `timeout` has passed.
    ///
    /// # Errors
    /// [`Error::TimedOut`] when none came; otherwise as [`wait`](Self::wait).
    pub fn wait_one_for(&self, timeout: Duration) -> Result<Completion, Error> {
        let mut one = [Completion::default()];
        match self.wait(&mut one, Some(timeout))? {
            0 => Err(Error::TimedOut),
            _ => Ok(one[0]),
        }
    }

    /// Takes completions, or has the task woken when there are some: for `Future`s of any runtime.
    ///
    /// On a device that is driven inline nobody wakes the task unless something calls [`Context::progress`],
    /// at the latest when its descriptor is readable or its deadline has passed. A future that is dropped
    /// merely leaves its completions to others.
    ///
    /// # Errors
    /// [`Error::CqOverrun`] when completions were lost and no others are left.
    pub fn poll_ready(&self, cx: &mut TaskContext<'_>, out: &mut [Completion]) -> Poll<Result<usize, Error>> {
        if let found @ 1.. = self.poll(out) {
            return Poll::Ready(Ok(found));
        }
        self.0.signal.register(cx.waker());
        self.arm(false);
        match self.poll(out) {
            0 if self.overran() => Poll::Ready(Err(Error::CqOverrun)),
            0 => Poll::Pending,
            found => Poll::Ready(Ok(found)),
        }
    }

    /// Asks for one event at the channel: at the next completion, or with `solicited` at the next that failed
    /// or whose sender asked for it (`ibv_req_notify_cq`).
    ///
    /// Completions that are there already raise none: poll the queue after arming it, before sleeping.
    ///
    /// # Errors
    /// [`Error::CqOverrun`] when completions were lost: no more will come.
    pub fn req_notify(&self, solicited: bool) -> Result<(), Error> {
        self.0.signal.want_event();
        self.arm(solicited);
        if self.overran() { Err(Error::CqOverrun) } else { Ok(()) }
    }

    /// Gives it room for at least `cqe` completions (`ibv_resize_cq`), also while completions arrive and other threads
    /// poll it: none is lost, and their order stays.
    ///
    /// # Errors
    /// [`Error::Refused`] when `cqe` is out of range, or when more completions than that wait in it.
    pub fn resize(&self, cqe: u32) -> Result<(), Error> {
        Ok(self.core().control(|port, _| port.engine.resize_cq(self.0.cq, &mut lock(&self.0.reader), cqe))?)
    }

    /// Moderates its notifications (`ibv_modify_cq`): when it is armed, one comes once `count` completions have arrived
    /// since the last, or `period` after the first of them, whichever is earlier. Polling finds completions at once all
    /// the same. A `count` of 0 or 1 ends moderation.
    ///
    /// # Errors
    /// None at present.
    pub fn modify(&self, count: u16, period: Duration) -> Result<(), Error> {
        Ok(self.core().control(|port, _| port.engine.modify_cq(self.0.cq, count, period))?)
    }

    /// How many completions it holds: at least what was asked for.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        lock(&self.0.reader).capacity()
    }

    /// Names it in events.
    #[must_use]
    pub fn id(&self) -> CqId {
        self.0.id
    }

    /// The device that it belongs to.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.ctx
    }

    pub(crate) fn handle(&self) -> Cq {
        self.0.cq
    }

    pub(crate) fn signal(&self) -> &CqSignal {
        &self.0.signal
    }

    /// Whether completions are waiting; asks for a notification at the next one.
    pub(crate) fn arm(&self, solicited: bool) -> bool {
        lock(&self.0.reader).arm(solicited)
    }

    pub(crate) fn take(&self, out: &mut [Completion]) -> usize {
        lock(&self.0.reader).poll(out)
    }

    pub(crate) fn overran(&self) -> bool {
        lock(&self.0.reader).overrun()
    }

    fn core(&self) -> &crate::driver::Core {
        self.0.ctx.core()
    }
}

impl std::fmt::Debug for CompletionQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompletionQueue").field("id", &self.0.id).finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let destroyed = self.ctx.core().control(|port, _| {
            port.remove_queue(self.cq);
            port.engine.destroy_cq(self.cq)
        });
        if let Some(membership) = &self.membership {
            membership.retract();
        }
        debug_assert_eq!(destroyed, Ok(()), "every user of the queue holds a handle to it");
    }
}
