//! One end of a measurement: a device, memory, and queue pairs.
//!
//! The region holds two slots for each queue pair: what it sends from, and what its peer sends to.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uroce::{
    Access, AddressHandle, AddressVector, CompletionQueue, ConnectionParams, Context, Endpoint, MemoryRegion,
    PreparedQueuePair, ProtectionDomain, QueuePair, RecvWr, RemoteMr, SendWr, Sge, SharedReceiveQueue,
    SrqAttr,
};

use super::connection::Connection;
use super::plan::Plan;
use crate::cm::Link;
use crate::device;
use crate::error::{Failure, Result};

/// Bytes that `lat` sends inline: what a work request holds in place.
pub(crate) const INLINE: u32 = 64;
/// Slots start at multiples of this, so that queue pairs share no cache line.
const ALIGNMENT: usize = 64;
/// READ and atomic operations outstanding, as perftest asks of most devices.
pub(super) const RD_ATOMIC: u8 = 16;
/// The Q_Key of datagrams between the two ends; that of perftest and of the pingpong programs.
const QKEY: u32 = 0x1111_1111;

/// A connected end.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) ctx: Context,
    pub(crate) cq: CompletionQueue,
    pub(crate) qps: Vec<Arc<QueuePair>>,
    pub(crate) memory: MemoryRegion,
    srq: Option<SharedReceiveQueue>,
    /// What the connection manager keeps, if it connected the queue pairs.
    _links: Vec<Link>,
    /// Where datagrams go, for each queue pair; empty if they have peers of their own.
    ways: Vec<(AddressHandle, Endpoint)>,
    slot: usize,
}

/// An end before it knows its peer.
#[derive(Debug)]
pub(crate) struct Prepared {
    pd: ProtectionDomain,
    cq: CompletionQueue,
    qps: Vec<PreparedQueuePair>,
    memory: MemoryRegion,
    srq: Option<SharedReceiveQueue>,
    slot: usize,
}

/// What the peer has to know of an end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Card {
    /// Endpoints, in text.
    pub(crate) endpoints: Vec<String>,
    pub(crate) addr: u64,
    pub(crate) len: u64,
    pub(crate) rkey: u32,
    /// Bytes of a slot.
    pub(crate) slot: u64,
}

impl Side {
    /// Everything that an end needs before it is connected.
    pub(crate) fn prepare(ctx: &Context, plan: &Plan) -> Result<Prepared> {
        let (pd, cq) = (ctx.alloc_pd()?, ctx.create_cq(plan.entries()).build()?);
        let slot = (plan.connection.headroom() + plan.largest() as usize).next_multiple_of(ALIGNMENT);
        let remote = Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
        let memory = pd.alloc_mr(slot * 2 * plan.qps as usize, Access::LOCAL_WRITE | remote)?;
        let attr = SrqAttr { max_wr: plan.rx_depth, ..SrqAttr::default() };
        let srq = plan.srq.then(|| pd.create_srq(attr)).transpose()?;
        let build = |_| {
            let qp = pd.create_qp(plan.connection.qp_type(), &cq, &cq).max_send_wr(plan.tx_depth);
            let qp = qp.max_recv_wr(plan.rx_depth).max_inline_data(INLINE).access(remote).qkey(QKEY);
            match &srq {
                Some(srq) => qp.srq(srq).build(),
                None => qp.build(),
            }
        };
        let qps = (0..plan.qps).map(build).collect::<Result<Vec<_>, _>>()?;
        Ok(Prepared { pd, cq, qps, memory, srq, slot })
    }

    /// What queue pair `index` sends from.
    pub(crate) fn outgoing(&self, index: usize, size: u32) -> Sge {
        let start = self.outgoing_at(index);
        self.memory.sge(start..start + size as usize)
    }

    /// Where in the memory that is.
    pub(crate) const fn outgoing_at(&self, index: usize) -> usize {
        2 * index * self.slot
    }

    /// Where in the memory the peer of queue pair `index` writes.
    pub(crate) const fn incoming_at(&self, index: usize) -> usize {
        (2 * index + 1) * self.slot
    }

    /// A receive into what the peer of queue pair `index` sends to.
    pub(crate) fn receive(&self, index: usize) -> RecvWr {
        let start = self.incoming_at(index);
        RecvWr::new(index as u64, self.memory.sge(start..start + self.slot))
    }

    /// A message from queue pair `index` to its peer.
    pub(crate) fn send(&self, index: usize, size: u32) -> SendWr {
        let send = SendWr::send(0, self.outgoing(index, size));
        match self.ways.get(index) {
            Some((way, peer)) => send.to(way, peer.qpn, QKEY),
            None => send,
        }
    }

    /// Posts receives that queue pair `index` has taken again.
    pub(crate) fn post_recv(&self, index: usize, requests: &[RecvWr]) -> Result<()> {
        match &self.srq {
            Some(srq) => Ok(srq.post_recv(requests)?),
            None => Ok(self.qps[index].post_recv(requests)?),
        }
    }

    /// Posts all receives, if the test needs any.
    pub(super) fn fill(&self, plan: &Plan) -> Result<()> {
        let queues = if self.srq.is_some() { 1 } else { self.qps.len() };
        let queues = if plan.test.receives() { queues } else { 0 };
        (0..queues)
            .try_for_each(|index| self.post_recv(index, &vec![self.receive(index); plan.rx_depth as usize]))
    }

    /// Which of the queue pairs has this number.
    pub(crate) fn index_of(&self, qpn: uroce::Qpn) -> Option<usize> {
        self.qps.iter().position(|qp| qp.qpn() == qpn)
    }
}

impl Prepared {
    /// What the peer has to know.
    pub(crate) fn card(&self) -> Card {
        let RemoteMr { addr, len, rkey } = self.memory.remote();
        let endpoints = self.qps.iter().map(|qp| qp.endpoint().to_string()).collect();
        Card { endpoints, addr, len, rkey, slot: self.slot as u64 }
    }

    /// Connects every queue pair to its peer, and posts the receives: the peer sends only when it is told to.
    pub(crate) fn connect(self, plan: &Plan, peer: &Card) -> Result<Side> {
        let endpoints = peer.endpoints()?;
        let ctx = self.check(&endpoints)?;
        let Self { pd, cq, qps, memory, srq, slot } = self;
        let mut side =
            Side { ctx, cq, qps: Vec::new(), memory, srq, _links: Vec::new(), ways: Vec::new(), slot };
        for (qp, endpoint) in qps.into_iter().zip(endpoints) {
            let qp = match plan.connection {
                Connection::Ud => {
                    side.ways.push((pd.create_ah(&AddressVector::new(endpoint.gid))?, endpoint));
                    qp.activate(QKEY)?
                }
                Connection::Rc | Connection::Uc => qp.params(params(plan)).connect(endpoint)?,
            };
            side.qps.push(Arc::new(qp));
        }
        side.fill(plan).map(|()| side)
    }

    /// The same with queue pairs that `link` connects. Receives are left to [`Side::fill`].
    pub(super) fn linked(
        self,
        peers: &[Endpoint],
        mut link: impl FnMut(PreparedQueuePair, &Endpoint) -> Result<Link>,
    ) -> Result<Side> {
        let ctx = self.check(peers)?;
        let Self { cq, qps, memory, srq, slot, .. } = self;
        let links =
            qps.into_iter().zip(peers).map(|(qp, peer)| link(qp, peer)).collect::<Result<Vec<_>>>()?;
        let qps = links.iter().map(|link| Arc::clone(&link.qp)).collect();
        Ok(Side { ctx, cq, qps, memory, srq, _links: links, ways: Vec::new(), slot })
    }

    /// Refuses peers that cannot be connected; otherwise the device.
    fn check(&self, peers: &[Endpoint]) -> Result<Context> {
        let ctx = self.pd.context().clone();
        peers.iter().try_for_each(|peer| device::check_family(ctx.gid(), peer.gid))?;
        if peers.len() == self.qps.len() {
            return Ok(ctx);
        }
        Err(Failure::new("the peer has another number of queue pairs: give the same -q at both ends"))
    }
}

impl Card {
    /// The memory that queue pair `index` of the peer may be written to, or read from.
    pub(crate) fn incoming(&self, index: usize) -> RemoteMr {
        let whole = RemoteMr { addr: self.addr, len: self.len, rkey: self.rkey };
        whole.at((2 * index as u64 + 1).saturating_mul(self.slot))
    }

    pub(super) fn endpoints(&self) -> Result<Vec<Endpoint>> {
        let parsed = self.endpoints.iter().map(|text| text.parse::<Endpoint>());
        parsed
            .collect::<Result<_, _>>()
            .map_err(|error| Failure::new(format!("the peer sent nonsense: {error}")))
    }
}

fn params(plan: &Plan) -> ConnectionParams {
    ConnectionParams {
        path_mtu: plan.mtu,
        // For ever: whoever measures SENDs outruns the receiver at times. A receiver that is gone answers nothing.
        rnr_retry: 7,
        max_rd_atomic: RD_ATOMIC,
        max_dest_rd_atomic: RD_ATOMIC,
        ..ConnectionParams::default()
    }
}
