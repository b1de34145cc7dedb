//! Queue pairs.

mod attr;
mod batch;
mod builder;
mod multicast;
mod prepared;

pub use attr::{AddressVector, QpAttr, QpInitAttr};
pub use batch::SendBatch;
pub use builder::QpBuilder;
pub use prepared::{ConnectionParams, PreparedQueuePair};

use std::sync::Mutex;

use uroce_stack::wire::Qpn;
use uroce_stack::{Counters, QpState, QpType, RecvQueue, SendQueue};

use crate::cq::CompletionQueue;
use crate::driver::lock;
use crate::error::{Error, ModifyError, PostError};
use crate::pd::ProtectionDomain;
use crate::srq::SharedReceiveQueue;
use crate::wr::{RecvWr, SendWr};
use crate::xrc::XrcDomain;
use multicast::Groups;

/// A queue pair (`ibv_qp`).
///
/// Posting takes `&self`; sends and receives have a lock each, so threads may post both at once. Dropping it
/// never waits for the peer: what is owed to it leaves, what is outstanding never completes. To have
/// everything complete, go to [`QpState::Err`] first and poll the flushed completions.
pub struct QueuePair {
    pd: ProtectionDomain,
    qpn: Qpn,
    send: Mutex<SendQueue>,
    recv: Mutex<RecvQueue>,
    send_cq: CompletionQueue,
    recv_cq: CompletionQueue,
    srq: Option<SharedReceiveQueue>,
    xrcd: Option<XrcDomain>,
    groups: Groups,
    init: QpInitAttr,
    /// The address vector as it was set: the engine knows it only resolved.
    av: Mutex<Option<AddressVector>>,
}

impl QueuePair {
    /// Its number, which the peer has to know.
    #[must_use]
    pub fn qpn(&self) -> Qpn {
        self.qpn
    }

    /// The state it is in. Errors change it at any time.
    #[must_use]
    pub fn state(&self) -> QpState {
        lock(&self.send).state()
    }

    /// Where its sends complete.
    #[must_use]
    pub fn send_cq(&self) -> &CompletionQueue {
        &self.send_cq
    }

    /// Where its receives complete.
    #[must_use]
    pub fn recv_cq(&self) -> &CompletionQueue {
        &self.recv_cq
    }

    /// Its transport service.
    #[must_use]
    pub const fn qp_type(&self) -> QpType {
        self.init.qp_type
    }

    /// The shared queue that it takes receives from, if there is one.
    #[must_use]
    pub const fn srq(&self) -> Option<&SharedReceiveQueue> {
        self.srq.as_ref()
    }

    /// The XRC domain of an XRC target.
    #[must_use]
    pub const fn xrcd(&self) -> Option<&XrcDomain> {
        self.xrcd.as_ref()
    }

    /// The domain whose memory it may use.
    #[must_use]
    pub fn pd(&self) -> &ProtectionDomain {
        &self.pd
    }

    /// Posts send work requests, in this order (`ibv_post_send`). An empty list does nothing.
    ///
    /// In [`QpState::Err`] they are accepted and flushed.
    ///
    /// # Errors
    /// [`PostError`] names the first one that was not accepted and why: the queue is full, the state is
    /// neither RTS nor SQD nor ERR, or the request does not fit the queue. Those before it are posted.
    pub fn post_send(&self, requests: &[SendWr]) -> Result<(), PostError> {
        let mut queue = lock(&self.send);
        let posted = requests.iter().enumerate().try_for_each(|(index, request)| {
            let pushed = request.as_stack().and_then(|wr| queue.push(&wr));
            pushed.map_err(|kind| PostError { index, kind })
        });
        if accepted(&posted, requests.len()) > 0 {
            queue.ring_doorbell();
            drop(queue);
            self.pd.context().core().ring();
        }
        posted
    }

    /// Posts receives, in this order (`ibv_post_recv`). An empty list does nothing.
    ///
    /// Allowed in every state but RESET; in [`QpState::Err`] they are flushed.
    ///
    /// # Errors
    /// [`PostError`] names the first one that was not accepted and why. Those before it are posted.
    pub fn post_recv(&self, requests: &[RecvWr]) -> Result<(), PostError> {
        let mut queue = lock(&self.recv);
        let posted = requests.iter().enumerate().try_for_each(|(index, request)| {
            let pushed = queue.push(request.wr_id, request.sges.as_slice());
            pushed.map_err(|kind| PostError { index, kind })
        });
        if accepted(&posted, requests.len()) > 0 {
            queue.ring_doorbell();
            // The engine looks for receives by itself when a message comes; only flushing needs it now.
            let flush = queue.state() == QpState::Err;
            drop(queue);
            if flush {
                self.pd.context().core().ring();
            }
        }
        posted
    }

    /// Collects send work requests that are posted together or not at all (`ibv_wr_start`). Other threads
    /// that post sends wait meanwhile.
    #[must_use = "nothing is posted before `submit`"]
    pub fn start_send(&self) -> SendBatch<'_> {
        SendBatch::new(lock(&self.send), self.pd.context().core())
    }

    /// Changes its state or attributes (`ibv_modify_qp`).
    ///
    /// An address vector is resolved to a path first, which may take a second while the kernel asks for a
    /// neighbour.
    ///
    /// # Errors
    /// [`ModifyError`] names missing and disallowed attributes, values out of range, or why the peer's
    /// address cannot be reached. Nothing was changed.
    pub fn modify(&self, attr: &QpAttr) -> Result<(), ModifyError> {
        let context = self.pd.context();
        let path = attr.av.as_ref().map(|av| context.resolve(av, self.qpn, attr.dest_qpn)).transpose()?;
        let change = attr.to_stack(path);
        context.core().control(|port, now| {
            let ends = matches!(attr.state, Some(QpState::Reset | QpState::Err));
            if !port.is_alive() && !ends {
                return Err(ModifyError::DeviceGone);
            }
            port.engine.modify_qp(now, self.qpn, &change).map_err(ModifyError::from)
        })?;
        if let Some(av) = &attr.av {
            *lock(&self.av) = Some(av.clone());
        }
        Ok(())
    }

    /// Its attributes and what it was made with (`ibv_query_qp`).
    ///
    /// # Errors
    /// [`Error::Refused`] when the engine does not know it, which cannot happen while the handle lives.
    pub fn query(&self) -> Result<(QpAttr, QpInitAttr), Error> {
        let (attr, _) = self.pd.context().core().control(|port, _| port.engine.query_qp(self.qpn))?;
        Ok((QpAttr::from_stack(&attr, lock(&self.av).clone()), self.init))
    }

    /// What was counted for it since it was made; those of the device are at
    /// [`Context::counters`](crate::Context::counters).
    #[must_use]
    pub fn counters(&self) -> Counters {
        let core = self.pd.context().core();
        core.control(|port, _| port.engine.qp_counters(self.qpn).cloned()).unwrap_or_default()
    }
}

/// How many requests were accepted.
fn accepted(posted: &Result<(), PostError>, all: usize) -> usize {
    posted.as_ref().err().map_or(all, |error| error.index)
}

impl std::fmt::Debug for QueuePair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueuePair")
            .field("qpn", &self.qpn)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        let core = self.pd.context().core();
        core.settle();
        let destroyed = core.control(|port, _| {
            port.remove_queue_pair(self.qpn);
            port.engine.destroy_qp(self.qpn)
        });
        core.events.forget(|event| event.qpn() == Some(self.qpn));
        debug_assert_eq!(destroyed, Ok(()), "a queue pair is destroyed once");
    }
}
