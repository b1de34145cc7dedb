//! What is open for one scenario.

use std::net::Ipv6Addr;

use uroce::{
    Access, BindInfo, CompletionQueue, Context, MemoryRegion, MemoryWindow, MwType, ProtectionDomain, Psn,
    QpType, QueuePair, SendWr, Sge, SharedReceiveQueue, SrqAttr,
};

use crate::peer::{Binding, Endpoint, Part, Result, Service, Setup};

/// From one queue pair's first sequence number to the next one's.
const PSN_STEP: u32 = 0x01_2345;

/// Everything of one scenario. Fields are dropped in this order: users before what they use.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) setup: Setup,
    pub(super) gid_index: u32,
    /// The window, and the key it was allocated with.
    pub(super) window: Option<(MemoryWindow, u32)>,
    pub(super) queue_pairs: Vec<Joined>,
    pub(super) srq: Option<SharedReceiveQueue>,
    pub(super) region: MemoryRegion,
    pub(super) cq: CompletionQueue,
    pub(super) pd: ProtectionDomain,
}

/// A queue pair and its first sequence number.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) qp: QueuePair,
    pub(super) psn: Psn,
}

impl Link {
    /// Creates what the setup asks for.
    pub(super) fn open(context: &Context, setup: &Setup, gid_index: u32, psn: &mut u32) -> Result<Self> {
        let demands = &setup.demands;
        let (pd, cq) = (context.alloc_pd()?, context.create_cq(Setup::COMPLETIONS).build()?);
        let region = pd.alloc_mr(demands.memory, Access::from_bits_truncate(demands.access))?;
        region.write_at(0, &vec![Setup::FILL; demands.memory])?;
        let attr = SrqAttr { max_wr: Setup::DEPTH, ..SrqAttr::default() };
        let srq = demands.shared.then(|| pd.create_srq(attr)).transpose()?;
        let queue_pairs = (0..demands.queue_pairs).map(|_| {
            *psn = psn.wrapping_add(PSN_STEP);
            let qp = create_queue_pair(&pd, &cq, srq.as_ref(), demands.service)?;
            Ok(Joined { qp, psn: Psn::new(*psn) })
        });
        let queue_pairs = queue_pairs.collect::<Result<_>>()?;
        Ok(Self { setup: *setup, gid_index, window: None, queue_pairs, srq, region, cq, pd })
    }

    /// What the other side must know of each queue pair.
    pub(super) fn endpoints(&self, gid: Ipv6Addr) -> Vec<Endpoint> {
        let endpoint = |joined: &Joined| Endpoint {
            gid,
            qp_num: joined.qp.qpn().get(),
            psn: joined.psn.get(),
            addr: self.region.addr(),
            rkey: self.region.rkey(),
        };
        self.queue_pairs.iter().map(endpoint).collect()
    }

    /// A queue pair by its index.
    pub(super) fn queue_pair(&self, index: usize) -> Result<&QueuePair> {
        let found = self.queue_pairs.get(index).map(|joined| &joined.qp);
        found.ok_or_else(|| "there is no such queue pair".into())
    }

    /// A part of the region, which may lie outside.
    pub(super) fn sge(&self, part: Part) -> Result<Sge> {
        let addr = self.region.addr() + part.offset as u64;
        Ok(Sge { addr, length: u32::try_from(part.length)?, lkey: self.region.lkey() })
    }

    /// Has the window bound in the way of its type; returns its next key.
    pub(super) fn bind(&self, binding: &Binding) -> Result<u32> {
        let (window, _) = self.window.as_ref().ok_or("no window is allocated")?;
        let info = BindInfo {
            mr: &self.region,
            addr: self.region.addr() + binding.part.offset as u64,
            len: binding.part.length as u64,
            access: Access::from_bits_truncate(binding.access),
        };
        let qp = self.queue_pair(0)?;
        match window.kind() {
            MwType::Type1 => window.bind(qp, binding.wr_id, info)?,
            MwType::Type2 => qp.post_send(&[SendWr::bind_mw(binding.wr_id, window, info).signaled()])?,
        }
        Ok(window.rkey())
    }

    /// The binding that was asked for has failed: the window still has the key that it was allocated with.
    pub(super) fn forget_binding(&self) {
        if let Some((window, rkey)) = &self.window {
            window.set_rkey(*rkey);
        }
    }
}

fn create_queue_pair(
    pd: &ProtectionDomain,
    cq: &CompletionQueue,
    srq: Option<&SharedReceiveQueue>,
    service: Service,
) -> Result<QueuePair> {
    let kind = match service {
        Service::Rc => QpType::Rc,
        Service::Uc => QpType::Uc,
        Service::Ud => QpType::Ud,
    };
    let builder = pd.create_qp(kind, cq, cq).max_send_wr(Setup::DEPTH).max_recv_wr(Setup::DEPTH);
    let builder = if let Some(srq) = srq { builder.srq(srq) } else { builder };
    Ok(builder.build_reset()?)
}
