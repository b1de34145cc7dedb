//! Event channels.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use super::event::{CmEvent, CmEventType};
use super::id::CmId;
use super::shared::{EventQueue, Queued};
use crate::context::Context;
use crate::error::Error;
use crate::os::wait_readable;

/// Where the events of ids arrive (`rdma_event_channel`). Its descriptor polls readable while there are any.
///
/// A cheap handle: clones name the same channel. Requests that nobody has fetched when the last handle goes are refused
/// by dropping them.
#[derive(Clone)]
pub struct EventChannel(Arc<Inner>);

struct Inner {
    ctx: Context,
    queue: Arc<EventQueue>,
}

impl EventChannel {
    pub(crate) fn new(ctx: &Context) -> Result<Self, Error> {
        ctx.start_connection_manager()?;
        let queue =
            EventQueue::new().map_err(Error::system("cannot make the eventfd of an event channel"))?;
        Ok(Self(Arc::new(Inner { ctx: ctx.clone(), queue })))
    }

    /// The device it belongs to.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.ctx
    }

    /// Takes the oldest event if there is one. Never blocks.
    #[must_use]
    pub fn try_get_event(&self) -> Option<CmEvent> {
        self.0.ctx.drive_inline();
        std::iter::from_fn(|| self.0.queue.pop()).find_map(|queued| self.finish(queued))
    }

    /// Waits for an event and takes it; `None` when `timeout` has passed without any.
    ///
    /// # Errors
    /// [`Error::System`] when the thread cannot sleep.
    pub fn get_event(&self, timeout: Option<Duration>) -> Result<Option<CmEvent>, Error> {
        let core = self.0.ctx.core();
        let start = core.now();
        loop {
            if let Some(event) = self.try_get_event() {
                return Ok(Some(event));
            }
            let left = timeout.map(|timeout| timeout.saturating_sub(core.now().since(start)));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            let fd = self.as_fd();
            let slept = if core.inline { core.sleep(Some(fd), left) } else { wait_readable(&[fd], left) };
            slept.map_err(Error::system("cannot wait for an event of the connection manager"))?;
        }
    }

    pub(super) fn queue(&self) -> &Arc<EventQueue> {
        &self.0.queue
    }

    /// The event with its ids. Those of an id that was dropped are dropped with it.
    fn finish(&self, queued: Queued) -> Option<CmEvent> {
        let news = queued.news;
        let id = if news.event == CmEventType::ConnectRequest {
            CmId::adopt(self, queued.id)
        } else {
            CmId::existing(&queued.id)?
        };
        let listener = news.listener.as_ref().and_then(CmId::existing);
        Some(CmEvent { id, listener, event: news.event, status: news.status, conn: news.conn, ud: news.ud })
    }
}

impl AsFd for EventChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.queue.as_fd()
    }
}

impl std::fmt::Debug for EventChannel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventChannel").finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        for queued in std::iter::from_fn(|| self.queue.pop()) {
            if queued.news.event == CmEventType::ConnectRequest {
                self.ctx.retire(&queued.id);
            }
        }
    }
}
