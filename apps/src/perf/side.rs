//! One end of a measurement: a device, memory, and queue pairs.
//!
//! The region holds two slots for each queue pair: what it sends from, and what its peer sends to.

use serde::{Deserialize, Serialize};
use uroce::{
    Access, CompletionQueue, ConnectionParams, Context, Endpoint, MemoryRegion, PreparedQueuePair, QpType,
    QueuePair, RecvWr, RemoteMr, Sge,
};

use super::plan::Plan;
use crate::device;
use crate::error::{Failure, Result};

/// Bytes that `lat` sends inline: what a work request holds in place.
pub(crate) const INLINE: u32 = 64;
/// Slots start at multiples of this, so that queue pairs share no cache line.
const ALIGNMENT: usize = 64;
/// READ and atomic operations outstanding, as perftest asks of most devices.
const RD_ATOMIC: u8 = 16;

/// A connected end.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) ctx: Context,
    pub(crate) cq: CompletionQueue,
    pub(crate) qps: Vec<QueuePair>,
    pub(crate) memory: MemoryRegion,
    slot: usize,
}

/// An end before it knows its peer.
#[derive(Debug)]
pub(crate) struct Prepared {
    ctx: Context,
    cq: CompletionQueue,
    qps: Vec<PreparedQueuePair>,
    memory: MemoryRegion,
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
        let slot = (plan.largest() as usize).next_multiple_of(ALIGNMENT);
        let remote = Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC;
        let memory = pd.alloc_mr(slot * 2 * plan.qps as usize, Access::LOCAL_WRITE | remote)?;
        let build = |_| {
            let qp = pd.create_qp(QpType::Rc, &cq, &cq).max_send_wr(plan.tx_depth).max_recv_wr(plan.rx_depth);
            qp.max_inline_data(INLINE).access(remote).build()
        };
        let qps = (0..plan.qps).map(build).collect::<Result<Vec<_>, _>>()?;
        Ok(Prepared { ctx: ctx.clone(), cq, qps, memory, slot })
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

    /// Connects every queue pair to its peer. Receives are posted first, if the test needs any.
    pub(crate) fn connect(self, plan: &Plan, peer: &Card) -> Result<Side> {
        let endpoints = peer.endpoints()?;
        endpoints.iter().try_for_each(|endpoint| device::check_family(self.ctx.gid(), endpoint.gid))?;
        if endpoints.len() != self.qps.len() {
            return Err(Failure::new(
                "the peer has another number of queue pairs: give the same -q at both ends",
            ));
        }
        let Self { ctx, cq, qps, memory, slot } = self;
        let mut side = Side { ctx, cq, qps: Vec::new(), memory, slot };
        for (qp, endpoint) in qps.into_iter().zip(endpoints) {
            if plan.test.receives() {
                let receive = side.receive(side.qps.len());
                qp.post_recv(&vec![receive; plan.rx_depth as usize])?;
            }
            side.qps.push(qp.params(params(plan)).connect(endpoint)?);
        }
        Ok(side)
    }
}

impl Card {
    /// The memory that queue pair `index` of the peer may be written to, or read from.
    pub(crate) fn incoming(&self, index: usize) -> RemoteMr {
        let whole = RemoteMr { addr: self.addr, len: self.len, rkey: self.rkey };
        whole.at((2 * index as u64 + 1).saturating_mul(self.slot))
    }

    fn endpoints(&self) -> Result<Vec<Endpoint>> {
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
