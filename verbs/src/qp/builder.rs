//! Making queue pairs.

use std::sync::Mutex;

use uroce_stack::{Access, NewQp, QpInit, QpState, QpType};

use super::multicast::Groups;
use super::{PreparedQueuePair, QpAttr, QpInitAttr, QueuePair};
use crate::cq::CompletionQueue;
use crate::error::Error;
use crate::pd::ProtectionDomain;
use crate::srq::SharedReceiveQueue;
use crate::xrc::XrcDomain;

/// Makes a queue pair; from [`ProtectionDomain::create_qp`].
///
/// Unless set otherwise it holds 128 sends and 128 receives of one entry each, carries 64 bytes inline, and
/// lets the peer do nothing with its memory but send to it.
#[derive(Debug)]
#[must_use = "nothing is made before `build`"]
pub struct QpBuilder<'a> {
    pd: &'a ProtectionDomain,
    send_cq: &'a CompletionQueue,
    recv_cq: &'a CompletionQueue,
    init: QpInitAttr,
    access: Access,
    qkey: u32,
    srq: Option<&'a SharedReceiveQueue>,
    xrcd: Option<&'a XrcDomain>,
}

impl<'a> QpBuilder<'a> {
    pub(crate) fn new(
        pd: &'a ProtectionDomain,
        qp_type: QpType,
        send_cq: &'a CompletionQueue,
        recv_cq: &'a CompletionQueue,
    ) -> Self {
        let init = QpInitAttr { qp_type, ..QpInitAttr::default() };
        Self { pd, send_cq, recv_cq, init, access: Access::empty(), qkey: 0, srq: None, xrcd: None }
    }

    /// Send work requests outstanding at most.
    pub const fn max_send_wr(mut self, count: u32) -> Self {
        self.init.max_send_wr = count;
        self
    }

    /// Receives outstanding at most.
    pub const fn max_recv_wr(mut self, count: u32) -> Self {
        self.init.max_recv_wr = count;
        self
    }

    /// Scatter/gather entries of one send work request, at most 32.
    pub const fn max_send_sge(mut self, count: u32) -> Self {
        self.init.max_send_sge = count;
        self
    }

    /// Scatter/gather entries of one receive, at most 32.
    pub const fn max_recv_sge(mut self, count: u32) -> Self {
        self.init.max_recv_sge = count;
        self
    }

    /// Bytes that a send work request may carry inline.
    pub const fn max_inline_data(mut self, bytes: u32) -> Self {
        self.init.max_inline_data = bytes;
        self
    }

    /// Every send work request brings a completion, signaled or not.
    pub const fn sq_sig_all(mut self, all: bool) -> Self {
        self.init.sq_sig_all = all;
        self
    }

    /// Takes receives from there instead of from a queue of its own.
    pub const fn srq(mut self, srq: &'a SharedReceiveQueue) -> Self {
        self.srq = Some(srq);
        self
    }

    /// The domain of an XRC target, which needs one, and which completes at the queues of the shared receive queues that
    /// its peer names, not at its own.
    pub const fn xrcd(mut self, xrcd: &'a XrcDomain) -> Self {
        self.xrcd = Some(xrcd);
        self
    }

    /// Multicast datagrams of its own do not come back to it.
    pub const fn block_multicast_loopback(mut self) -> Self {
        self.init.block_multicast_loopback = true;
        self
    }

    /// The Q_Key that datagrams to it must have until [`activate`](PreparedQueuePair::activate) says another. UD only; 0
    /// unless set.
    pub const fn qkey(mut self, qkey: u32) -> Self {
        self.qkey = qkey;
        self
    }

    /// What the peer may do with memory of the protection domain, as far as each region allows it too:
    /// [`Access::REMOTE_WRITE`], [`Access::REMOTE_READ`], [`Access::REMOTE_ATOMIC`], [`Access::FLUSH_GLOBAL`].
    pub const fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Makes it and brings it to INIT: receives may be posted, and it may be connected.
    ///
    /// # Errors
    /// [`Error::Refused`] when a number is out of range, an object does not fit the type or the device has no queue pair
    /// left; [`Error::OtherDevice`]; [`Error::Modify`] when the Q_Key is a controlled one.
    pub fn build(self) -> Result<PreparedQueuePair, Error> {
        let init = QpAttr { pkey_index: Some(0), port: Some(1), ..QpAttr::to(QpState::Init) };
        let init = if self.init.qp_type == QpType::Ud {
            QpAttr { qkey: Some(self.qkey), ..init }
        } else {
            QpAttr { access: Some(self.access), ..init }
        };
        let qp = self.build_reset()?;
        qp.modify(&init)?;
        Ok(PreparedQueuePair::new(qp))
    }

    /// Makes it in RESET, for callers that go through the states by themselves with [`QueuePair::modify`].
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_reset(self) -> Result<QueuePair, Error> {
        self.check()?;
        let core = self.pd.context().core();
        let NewQp { qpn, send, recv } = core.control(|port, _| {
            let created = port.engine.create_qp(self.pd.handle(), &self.to_stack())?;
            port.add_queue_pair(created.qpn);
            Ok::<_, Error>(created)
        })?;
        let init = QpInitAttr { max_send_wr: send.capacity(), max_recv_wr: recv.capacity(), ..self.init };
        Ok(QueuePair {
            pd: self.pd.clone(),
            qpn,
            send: Mutex::new(send),
            recv: Mutex::new(recv),
            send_cq: self.send_cq.clone(),
            recv_cq: self.recv_cq.clone(),
            srq: self.srq.cloned(),
            xrcd: self.xrcd.cloned(),
            groups: Groups::default(),
            init,
            av: Mutex::default(),
        })
    }

    fn check(&self) -> Result<(), Error> {
        if self.init.qp_type == QpType::Gsi {
            return Err(Error::Config(
                "queue pair 1 is the connection manager's: make an event channel instead",
            ));
        }
        let srq = self.srq.map(|srq| srq.pd().context());
        let others = [
            Some(self.send_cq.context()),
            Some(self.recv_cq.context()),
            srq,
            self.xrcd.map(XrcDomain::context),
        ];
        others.into_iter().flatten().try_for_each(|other| self.pd.context().check_same(other))
    }

    fn to_stack(&self) -> QpInit {
        let init = &self.init;
        QpInit {
            max_send_wr: init.max_send_wr,
            max_recv_wr: init.max_recv_wr,
            max_send_sge: init.max_send_sge,
            max_recv_sge: init.max_recv_sge,
            max_inline_data: init.max_inline_data,
            sq_sig_all: init.sq_sig_all,
            srq: self.srq.map(SharedReceiveQueue::handle),
            xrcd: self.xrcd.map(XrcDomain::handle),
            block_multicast_loopback: init.block_multicast_loopback,
            ..QpInit::new(init.qp_type, self.send_cq.handle(), self.recv_cq.handle())
        }
    }
}
