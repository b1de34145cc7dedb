//! Control calls: shared receive queues and XRC domains.

use super::control::check_range;
use super::{Engine, Pd, Srq, SrqAttr, SrqInit, Xrcd};
use crate::error::Error;
use crate::event::AsyncEvent;
use crate::queue::SharedRecvQueue;

impl Engine {
    /// A new shared receive queue, and the application's half of it.
    ///
    /// # Errors
    /// When a size is above its limit, when an object it names does not exist, or when there are as many shared receive
    /// queues as the limits allow.
    pub fn create_srq(&mut self, pd: Pd, init: &SrqInit) -> Result<(Srq, SharedRecvQueue), Error> {
        self.check_pd(pd)?;
        check_range("max_wr", init.max_wr, 1, self.config.limits.max_srq_wr)?;
        check_range("max_sge", init.max_sge, 0, self.config.limits.max_srq_sge)?;
        if let Some((xrcd, cq)) = init.xrc {
            self.xrcds.check(xrcd.0)?;
            if !self.cqs.contains(cq) {
                return Err(Error::NotFound("completion queue"));
            }
        }
        self.srqs.create(&mut self.rng, pd, init)
    }

    /// Asks for [`AsyncEvent::SrqLimitReached`] when fewer than `limit` receives are left; 0 takes that back. It is
    /// raised once, as a receive is taken; then the limit is 0.
    ///
    /// # Errors
    /// When there is no such queue, or it holds fewer receives than `limit`.
    pub fn set_srq_limit(&mut self, srq: Srq, limit: u32) -> Result<(), Error> {
        self.srqs.set_limit(srq, limit)
    }

    /// Gives a shared receive queue room for at least `max_wr` receives, also while messages take them. `posting` is the
    /// application's half of it.
    ///
    /// # Errors
    /// When `max_wr` is 0, above the limit of the device, below the limit of the queue or below what is posted; the
    /// queue is as it was then.
    pub fn resize_srq(&mut self, srq: Srq, posting: &mut SharedRecvQueue, max_wr: u32) -> Result<(), Error> {
        check_range("max_wr", max_wr, 1, self.config.limits.max_srq_wr)?;
        self.srqs.resize(srq, posting, max_wr)
    }

    /// The attributes of a shared receive queue as they stand.
    ///
    /// # Errors
    /// When there is no such queue.
    pub fn query_srq(&self, srq: Srq) -> Result<SrqAttr, Error> {
        self.srqs.query(srq)
    }

    /// The number that XRC requests name the queue by.
    ///
    /// # Errors
    /// When there is no such queue.
    pub fn srq_number(&self, srq: Srq) -> Result<u32, Error> {
        self.srqs.number(srq)
    }

    /// Ends a shared receive queue. What is posted to it ends without completions.
    ///
    /// # Errors
    /// [`Error::Busy`] while queue pairs take receives from it.
    pub fn destroy_srq(&mut self, srq: Srq) -> Result<(), Error> {
        if self.qps.iter().any(|qp| qp.init().srq == Some(srq)) {
            return Err(Error::Busy("shared receive queue"));
        }
        self.srqs.destroy(srq)?;
        self.events.forget(|event| *event == AsyncEvent::SrqLimitReached(srq));
        Ok(())
    }

    /// A new XRC domain.
    ///
    /// # Errors
    /// When there are as many as the limits allow.
    pub fn open_xrcd(&mut self) -> Result<Xrcd, Error> {
        self.xrcds.take().map(Xrcd)
    }

    /// Ends an XRC domain.
    ///
    /// # Errors
    /// [`Error::Busy`] while targets or shared receive queues belong to it.
    pub fn close_xrcd(&mut self, xrcd: Xrcd) -> Result<(), Error> {
        self.xrcds.check(xrcd.0)?;
        if self.srqs.uses_xrcd(xrcd) || self.qps.iter().any(|qp| qp.init().xrcd == Some(xrcd)) {
            return Err(Error::Busy("XRC domain"));
        }
        self.xrcds.release(xrcd.0);
        Ok(())
    }
}
