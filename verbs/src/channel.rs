//! Completion channels: one descriptor for the events of many completion queues.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};

use crate::context::Context;
use crate::cq::CqId;
use crate::driver::lock;
use crate::error::Error;
use crate::os::{EventFd, wait_readable};

/// Receives an event when a completion queue that was made with it, and armed with
/// [`req_notify`](crate::CompletionQueue::req_notify), gets a completion (`ibv_comp_channel`).
///
/// Its descriptor polls readable while events wait, for `poll`, `epoll` and asynchronous runtimes. Take the
/// event with [`try_get_event`](Self::try_get_event) then. On a device that is driven inline a foreign event
/// loop must also call [`Context::progress`].
///
/// ```
/// # use uroce::*;
/// # let (a, _b) = uroce::testing::loopback_pair(Default::default())?;
/// let channel = a.create_comp_channel()?;
/// let cq = a.create_cq(16).channel(&channel).token(7).build()?;
/// cq.req_notify(false)?;
/// assert_eq!(channel.try_get_event()?, None);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
pub struct CompletionChannel {
    ctx: Context,
    queue: Arc<ChannelQueue>,
}

/// A completion queue has something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CqEvent {
    /// Which queue.
    pub cq: CqId,
    /// What it was given when it was made: [`CqBuilder::token`](crate::CqBuilder::token).
    pub token: u64,
}

impl CompletionChannel {
    pub(crate) fn new(ctx: &Context) -> Result<Self, Error> {
        let count =
            EventFd::semaphore().map_err(Error::system("cannot make the eventfd of a completion channel"))?;
        let queue = Arc::new(ChannelQueue { queue: Mutex::default(), count });
        Ok(Self { ctx: ctx.clone(), queue })
    }

    /// Waits for an event and takes it.
    ///
    /// Nothing has to be acknowledged. After it, arm the queue again and then poll it until it is empty: in
    /// this order no completion goes unnoticed.
    ///
    /// # Errors
    /// [`Error::System`] when the thread cannot sleep.
    pub fn get_event(&self) -> Result<CqEvent, Error> {
        loop {
            match self.try_get_event()? {
                Some(event) => return Ok(event),
                None => self.sleep().map_err(Error::system("cannot wait for a completion event"))?,
            }
        }
    }

    /// Takes an event if there is one. Never blocks.
    ///
    /// # Errors
    /// None at present.
    pub fn try_get_event(&self) -> Result<Option<CqEvent>, Error> {
        self.ctx.drive_inline();
        Ok(self.queue.pop())
    }

    pub(crate) fn membership(&self, cq: CqId, token: u64) -> Membership {
        Membership { queue: Arc::clone(&self.queue), event: CqEvent { cq, token } }
    }

    fn sleep(&self) -> std::io::Result<()> {
        let core = self.ctx.core();
        if core.inline { core.sleep(Some(self.as_fd()), None) } else { wait_readable(&[self.as_fd()], None) }
    }
}

impl AsFd for CompletionChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.count.as_fd()
    }
}

impl std::fmt::Debug for CompletionChannel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompletionChannel")
            .field("events", &lock(&self.queue.queue).len())
            .finish_non_exhaustive()
    }
}

/// Events in order, each queue's once.
#[derive(Debug)]
struct ChannelQueue {
    queue: Mutex<VecDeque<CqEvent>>,
    /// Counts what is in the queue; changed only while that is locked.
    count: EventFd,
}

impl ChannelQueue {
    fn push(&self, event: CqEvent) {
        let mut queue = lock(&self.queue);
        // An event that was not taken yet says all that another one would.
        if !queue.contains(&event) {
            queue.push_back(event);
            self.count.add();
        }
    }

    fn pop(&self) -> Option<CqEvent> {
        let mut queue = lock(&self.queue);
        let event = queue.pop_front()?;
        self.count.take();
        Some(event)
    }

    fn retract(&self, cq: CqId) {
        let mut queue = lock(&self.queue);
        let before = queue.len();
        queue.retain(|event| event.cq != cq);
        self.count.take_many(before - queue.len());
    }
}

/// A completion queue's place at a channel.
#[derive(Clone, Debug)]
pub(crate) struct Membership {
    queue: Arc<ChannelQueue>,
    event: CqEvent,
}

impl Membership {
    pub(crate) fn raise(&self) {
        self.queue.push(self.event);
    }

    /// Takes back what was raised: the queue is going away.
    pub(crate) fn retract(&self) {
        self.queue.retract(self.event.cq);
    }
}
