//! Queue pairs before and after the peer is known.

use std::sync::Arc;

use uroce::{
    Access, AddressVector, CompletionQueue, ConnectionParams, Context, Endpoint, MemoryRegion,
    PreparedQueuePair, ProtectionDomain, QueuePair, RecvWr, SendWr, SharedReceiveQueue, SrqAttr,
};

use super::service::{QKEY, Service};
use super::{FILL, PingpongArgs};
use crate::error::Result;

/// Everything before the peer is known. Receives are posted, so that its first message finds one.
pub(super) struct Prepared {
    service: Service,
    // Queue pairs go first: a message that comes late must find no queue pair, rather than one without memory.
    qps: Vec<PreparedQueuePair>,
    srq: Option<SharedReceiveQueue>,
    memory: MemoryRegion,
    cq: CompletionQueue,
    pd: ProtectionDomain,
}

/// Everything that a run needs.
pub(super) struct Linked {
    // As in `Prepared`: queue pairs go before their memory.
    pub(super) qps: Vec<Arc<QueuePair>>,
    pub(super) receives: Receives,
    /// What each queue pair sends.
    pub(super) requests: Vec<SendWr>,
    pub(super) memory: MemoryRegion,
    pub(super) cq: CompletionQueue,
}

/// Where receives are posted.
pub(super) enum Receives {
    Own(Arc<QueuePair>),
    Shared(SharedReceiveQueue),
}

impl Prepared {
    pub(super) fn new(ctx: &Context, args: &PingpongArgs) -> Result<Self> {
        let (service, depth, count) = (args.service(), args.rx_depth, args.qps());
        let (pd, cq) = (ctx.alloc_pd()?, ctx.create_cq(depth + count).build()?);
        let bytes = vec![FILL; service.headroom() + args.size() as usize];
        let memory = pd.alloc_mr_from(&bytes, Access::LOCAL_WRITE)?;
        let attr = SrqAttr { max_wr: depth, ..SrqAttr::default() };
        let srq = (service == Service::Srq).then(|| pd.create_srq(attr)).transpose()?;
        let build = |_| {
            let qp = pd.create_qp(service.qp_type(), &cq, &cq).max_send_wr(1).max_recv_wr(depth).qkey(QKEY);
            match &srq {
                Some(srq) => qp.srq(srq).build(),
                None => qp.build(),
            }
        };
        let qps = (0..count).map(build).collect::<Result<Vec<_>, _>>()?;
        let receives = receives(&memory, depth);
        match (&srq, qps.first()) {
            (Some(srq), _) => srq.post_recv(&receives)?,
            (None, Some(qp)) => qp.post_recv(&receives)?,
            (None, None) => {}
        }
        Ok(Self { service, pd, cq, memory, srq, qps })
    }

    /// What the peer has to know.
    pub(super) fn endpoints(&self) -> Vec<Endpoint> {
        self.qps.iter().map(PreparedQueuePair::endpoint).collect()
    }

    /// Ready for messages of these peers, in the order of our queue pairs.
    pub(super) fn connect(self, args: &PingpongArgs, peers: &[Endpoint]) -> Result<Linked> {
        let Self { service, pd, cq, memory, srq, qps } = self;
        let mut linked = Vec::new();
        let mut requests = Vec::new();
        for (qp, peer) in qps.into_iter().zip(peers) {
            let send = SendWr::send(0, memory.sge(service.headroom()..)).signaled();
            let (qp, send) = match service {
                Service::Ud => {
                    let ah = pd.create_ah(&AddressVector::new(peer.gid))?;
                    (qp.activate(QKEY)?, send.to(&ah, peer.qpn, QKEY))
                }
                _ => (qp.params(params(args)).connect(*peer)?, send),
            };
            linked.push(Arc::new(qp));
            requests.push(send);
        }
        let receives = match srq {
            Some(srq) => Receives::Shared(srq),
            None => Receives::Own(Arc::clone(&linked[0])),
        };
        Ok(Linked { cq, memory, receives, qps: linked, requests })
    }
}

impl Receives {
    pub(super) fn post(&self, requests: &[RecvWr]) -> Result<()> {
        match self {
            Self::Own(qp) => Ok(qp.post_recv(requests)?),
            Self::Shared(srq) => Ok(srq.post_recv(requests)?),
        }
    }
}

/// So many receives into the one buffer.
pub(super) fn receives(memory: &MemoryRegion, count: u32) -> Vec<RecvWr> {
    vec![RecvWr::new(1, memory.sge(..)); count as usize]
}

/// As the other programs have them: rnr_retry 7 waits for ever.
fn params(args: &PingpongArgs) -> ConnectionParams {
    ConnectionParams {
        path_mtu: args.path_mtu(),
        timeout: 14,
        retry_cnt: 7,
        rnr_retry: 7,
        min_rnr_timer: 12,
        max_rd_atomic: 1,
        max_dest_rd_atomic: 1,
        hop_limit: 64,
        ..ConnectionParams::default()
    }
}
