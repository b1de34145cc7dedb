//! Shared receive queues.

use std::sync::{Arc, Mutex};

use uroce_stack::{SharedRecvQueue, Srq, SrqInit};

use crate::cq::CompletionQueue;
use crate::driver::lock;
use crate::error::{Error, PostError};
use crate::event::AsyncEvent;
use crate::pd::ProtectionDomain;
use crate::wr::RecvWr;
use crate::xrc::XrcDomain;

/// Names a shared receive queue in events. No two queues of a device share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SrqId(pub(crate) Srq);

/// How large a shared receive queue is (`ibv_srq_attr`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SrqAttr {
    /// Receives outstanding at most.
    pub max_wr: u32,
    /// Scatter/gather entries of one receive.
    pub max_sge: u32,
    /// [`AsyncEvent::SrqLimitReached`](crate::AsyncEvent::SrqLimitReached) is raised when fewer receives than this are
    /// left; 0 when it is not armed. Meaningless when the queue is made.
    pub srq_limit: u32,
}

impl Default for SrqAttr {
    /// 128 receives of one entry.
    fn default() -> Self {
        Self { max_wr: 128, max_sge: 1, srq_limit: 0 }
    }
}

/// Receives that many queue pairs take, each message the oldest (`ibv_srq`). A cheap handle: clones name the same queue,
/// which lives until its last handle and the last queue pair that uses it are gone.
///
/// One made for XRC serves the XRC targets of a domain instead: their peers name it by its [number](Self::number), and
/// its receives complete at a queue of its own.
///
/// ```
/// # use uroce::*;
/// # let (ctx, _other) = uroce::testing::loopback_pair(Default::default())?;
/// # let (pd, cq) = (ctx.alloc_pd()?, ctx.create_cq(64).build()?);
/// let srq = pd.create_srq(SrqAttr { max_wr: 64, ..SrqAttr::default() })?;
/// let qp = pd.create_qp(QpType::Rc, &cq, &cq).srq(&srq).build()?;
/// let inbox = pd.alloc_mr(4096, Access::LOCAL_WRITE)?;
/// srq.post_recv(&[RecvWr::new(1, inbox.sge(..))])?;
/// srq.set_limit(1)?; // AsyncEvent::SrqLimitReached when the last one is taken
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct SharedReceiveQueue(Arc<Inner>);

struct Inner {
    pd: ProtectionDomain,
    srq: Srq,
    number: u32,
    posting: Mutex<SharedRecvQueue>,
    /// Of one for XRC: its domain, and where its receives complete. They live as long as this.
    xrc: Option<(XrcDomain, CompletionQueue)>,
}

impl SharedReceiveQueue {
    pub(crate) fn new(
        pd: &ProtectionDomain,
        attr: SrqAttr,
        xrc: Option<(XrcDomain, CompletionQueue)>,
    ) -> Result<Self, Error> {
        let handles = xrc.as_ref().map(|(domain, cq)| (domain.handle(), cq.handle()));
        let init = SrqInit { max_wr: attr.max_wr, max_sge: attr.max_sge, xrc: handles };
        let (srq, posting, number) = pd.context().core().control(|port, _| {
            let (srq, posting) = port.engine.create_srq(pd.handle(), &init)?;
            Ok::<_, Error>((srq, posting, port.engine.srq_number(srq)?))
        })?;
        Ok(Self(Arc::new(Inner { pd: pd.clone(), srq, number, posting: Mutex::new(posting), xrc })))
    }

    /// Posts receives, in this order (`ibv_post_srq_recv`). An empty list does nothing.
    ///
    /// # Errors
    /// [`PostError`] names the first one that was not accepted and why: the queue is full, or there are more entries than
    /// it was made for. Those before it are posted.
    pub fn post_recv(&self, requests: &[RecvWr]) -> Result<(), PostError> {
        let mut posting = lock(&self.0.posting);
        let posted = requests.iter().enumerate().try_for_each(|(index, request)| {
            let pushed = posting.push(request.wr_id, request.sges.as_slice());
            pushed.map_err(|kind| PostError { index, kind })
        });
        // The engine looks for receives by itself when a message comes.
        posting.ring_doorbell();
        posted
    }

    /// Asks for one [`AsyncEvent::SrqLimitReached`](crate::AsyncEvent::SrqLimitReached), when fewer than `limit` receives
    /// are left (`ibv_modify_srq`, `IBV_SRQ_LIMIT`); 0 takes that back.
    ///
    /// # Errors
    /// [`Error::Refused`] when the queue does not hold that many.
    pub fn set_limit(&self, limit: u32) -> Result<(), Error> {
        let core = self.0.pd.context().core();
        Ok(core.control(|port, _| port.engine.set_srq_limit(self.0.srq, limit))?)
    }

    /// Gives it room for at least `max_wr` receives, also while messages take them (`ibv_modify_srq`,
    /// `IBV_SRQ_MAX_WR`).
    ///
    /// # Errors
    /// [`Error::Refused`] when that is more than the device allows, or less than the limit or what is posted.
    pub fn resize(&self, max_wr: u32) -> Result<(), Error> {
        let core = self.0.pd.context().core();
        Ok(core.control(|port, _| port.engine.resize_srq(self.0.srq, &mut lock(&self.0.posting), max_wr))?)
    }

    /// Its size as it is, and its limit if that is armed (`ibv_query_srq`).
    #[must_use]
    pub fn query(&self) -> SrqAttr {
        let core = self.0.pd.context().core();
        let known = core.control(|port, _| port.engine.query_srq(self.0.srq));
        known.map_or_else(
            |_| unreachable!("the queue exists as long as its handle"),
            |attr| SrqAttr { max_wr: attr.max_wr, max_sge: attr.max_sge, srq_limit: attr.srq_limit },
        )
    }

    /// The number that peers address it by, if it was made for XRC (`ibv_get_srq_num`): see
    /// [`SendWr::to_srq`](crate::SendWr::to_srq).
    #[must_use]
    pub fn number(&self) -> u32 {
        self.0.number
    }

    /// Names it in events.
    #[must_use]
    pub fn id(&self) -> SrqId {
        SrqId(self.0.srq)
    }

    /// The domain whose memory its receives use.
    #[must_use]
    pub fn pd(&self) -> &ProtectionDomain {
        &self.0.pd
    }

    /// The XRC domain, if it was made for one.
    #[must_use]
    pub fn xrcd(&self) -> Option<&XrcDomain> {
        self.0.xrc.as_ref().map(|(domain, _)| domain)
    }

    /// Where its receives complete, if it was made for XRC; otherwise they complete where those of the queue pairs do.
    #[must_use]
    pub fn cq(&self) -> Option<&CompletionQueue> {
        self.0.xrc.as_ref().map(|(_, cq)| cq)
    }

    pub(crate) fn handle(&self) -> Srq {
        self.0.srq
    }
}

impl std::fmt::Debug for SharedReceiveQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedReceiveQueue").field("number", &self.0.number).finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let core = self.pd.context().core();
        let destroyed = core.control(|port, _| port.engine.destroy_srq(self.srq));
        let gone = AsyncEvent::SrqLimitReached(SrqId(self.srq));
        core.events.forget(|event| *event == gone);
        debug_assert_eq!(destroyed, Ok(()), "every queue pair on it holds a handle to it");
    }
}
