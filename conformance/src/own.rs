//! uRoCE as a peer, through the API that applications use.

use std::time::{Duration, Instant};

use uroce::{
    Access, AddressVector, Completion as OwnCompletion, CompletionQueue, Context, Gid, GidEntry,
    MemoryRegion, Mtu, ProtectionDomain, Psn, QpAttr, QpState, QpType, Qpn, QueuePair, RecvWr, RemoteMr,
    SendWr, Sge,
};

use crate::peer::{Completion, Endpoint, Operation, Part, Peer, Remote, Request, Result, Route, Setup};

/// Acknowledgement timeout 2^16 * 4.096 us = 268 ms: an emulated kernel on the other side is slow.
const TIMEOUT: u8 = 16;
const RETRIES: u8 = 6;
/// 5.12 ms between tries when no receive is posted.
const RNR_TIMER: u8 = 18;
const READS_IN_FLIGHT: u8 = 4;

/// uRoCE on one device.
#[derive(Debug)]
pub struct Own {
    context: Context,
    first_psn: u32,
    link: Option<Link>,
}

/// What is open.
#[derive(Debug)]
struct Link {
    setup: Setup,
    entry: GidEntry,
    psn: Psn,
    region: MemoryRegion,
    cq: CompletionQueue,
    qp: QueuePair,
}

impl Own {
    /// Uses an open device. `first_psn` seeds the sequence numbers of the queue pairs.
    pub fn new(context: Context, first_psn: u32) -> Self {
        Self { context, first_psn, link: None }
    }

    fn entry(&self, route: Route) -> Result<GidEntry> {
        let gids = self.context.query_port().gids;
        let found = gids.into_iter().find(|entry| route.family.has(entry.gid.bytes().into()));
        found.ok_or_else(|| format!("our interface has no {:?} address", route.family).into())
    }

    fn link(&self) -> Result<&Link> {
        self.link.as_ref().ok_or_else(|| "no connection is open".into())
    }

    fn create(&self, setup: &Setup, entry: GidEntry, psn: Psn) -> Result<Link> {
        let pd = self.context.alloc_pd()?;
        let cq = self.context.create_cq(128).build()?;
        let access = Access::from_bits_truncate(setup.access);
        let region = pd.alloc_mr(setup.region, access)?;
        region.write_at(0, &vec![Setup::FILL; setup.region])?;
        let qp = queue_pair(&pd, &cq, access)?;
        Ok(Link { setup: *setup, entry, psn, region, cq, qp })
    }
}

fn queue_pair(pd: &ProtectionDomain, cq: &CompletionQueue, access: Access) -> Result<QueuePair> {
    Ok(pd.create_qp(QpType::Rc, cq, cq).access(access).build()?.into_queue_pair())
}

impl Peer for Own {
    fn name(&self) -> &str {
        "uRoCE"
    }

    fn open(&mut self, setup: &Setup) -> Result<Endpoint> {
        self.close()?;
        let entry = self.entry(setup.route)?;
        self.first_psn = self.first_psn.wrapping_add(0x01_2345);
        let link = self.create(setup, entry, Psn::new(self.first_psn))?;
        let endpoint = Endpoint {
            gid: entry.gid.bytes().into(),
            qp_num: link.qp.qpn().get(),
            psn: link.psn.get(),
            addr: link.region.addr(),
            rkey: link.region.rkey(),
        };
        self.link = Some(link);
        Ok(endpoint)
    }

    fn connect(&mut self, other: &Endpoint) -> Result<()> {
        let link = self.link()?;
        link.qp.modify(&to_rtr(link, other)?)?;
        Ok(link.qp.modify(&to_rts(link))?)
    }

    fn write(&mut self, offset: usize, data: &[u8]) -> Result<()> {
        Ok(self.link()?.region.write_at(offset, data)?)
    }

    fn read(&mut self, part: Part) -> Result<Vec<u8>> {
        Ok(self.link()?.region.to_vec(part.offset..part.offset + part.length)?)
    }

    fn post_recv(&mut self, wr_id: u64, part: Part) -> Result<()> {
        let link = self.link()?;
        Ok(link.qp.post_recv(&[RecvWr::new(wr_id, sge(&link.region, part))])?)
    }

    fn post_send(&mut self, request: &Request) -> Result<()> {
        let link = self.link()?;
        Ok(link.qp.post_send(&[translate(request, sge(&link.region, request.part)).signaled()])?)
    }

    fn completions(&mut self, count: usize, limit: Duration) -> Result<Vec<Completion>> {
        let (cq, end) = (&self.link()?.cq, Instant::now() + limit);
        let mut found = Vec::new();
        while found.len() < count {
            let left = end.saturating_duration_since(Instant::now());
            let mut batch = vec![OwnCompletion::default(); count - found.len()];
            let number = cq.wait(&mut batch, Some(left))?;
            found.extend(batch[..number].iter().map(completion));
            if number == 0 {
                break;
            }
        }
        Ok(found)
    }

    fn close(&mut self) -> Result<()> {
        self.link = None;
        Ok(())
    }
}

fn sge(region: &MemoryRegion, part: Part) -> Sge {
    region.sge(part.offset..part.offset + part.length)
}

fn to_rtr(link: &Link, other: &Endpoint) -> Result<QpAttr> {
    let mtu = link.setup.route.mtu;
    let av = AddressVector { sgid_index: Some(link.entry.index), ..AddressVector::new(Gid::from(other.gid)) };
    Ok(QpAttr {
        av: Some(av),
        path_mtu: Some(Mtu::from_bytes(mtu as usize).ok_or_else(|| format!("{mtu} is no path MTU"))?),
        dest_qpn: Some(Qpn::new(other.qp_num)),
        rq_psn: Some(Psn::new(other.psn)),
        max_dest_rd_atomic: Some(READS_IN_FLIGHT),
        min_rnr_timer: Some(RNR_TIMER),
        ..QpAttr::to(QpState::Rtr)
    })
}

fn to_rts(link: &Link) -> QpAttr {
    QpAttr {
        timeout: Some(TIMEOUT),
        retry_cnt: Some(RETRIES),
        rnr_retry: Some(link.setup.rnr_retry),
        sq_psn: Some(link.psn),
        max_rd_atomic: Some(READS_IN_FLIGHT),
        ..QpAttr::to(QpState::Rts)
    }
}

fn translate(request: &Request, sge: Sge) -> SendWr {
    let id = request.wr_id;
    match request.operation {
        Operation::Send { immediate } => with_immediate(SendWr::send(id, sge), immediate),
        Operation::Write { remote, immediate } => {
            with_immediate(SendWr::rdma_write(id, sge, far(remote)), immediate)
        }
        Operation::Read { remote } => SendWr::rdma_read(id, sge, far(remote)),
        Operation::CompareSwap { remote, compare, swap } => {
            SendWr::cmp_and_swp(id, sge, far(remote), compare, swap)
        }
        Operation::FetchAdd { remote, add } => SendWr::fetch_and_add(id, sge, far(remote), add),
    }
}

fn with_immediate(request: SendWr, immediate: Option<u32>) -> SendWr {
    match immediate {
        Some(value) => request.imm(value),
        None => request,
    }
}

fn far(remote: Remote) -> RemoteMr {
    RemoteMr { addr: remote.addr, rkey: remote.rkey, ..RemoteMr::default() }
}

fn completion(entry: &OwnCompletion) -> Completion {
    Completion {
        wr_id: entry.wr_id,
        status: entry.status as u32,
        opcode: entry.opcode as u32,
        byte_len: entry.byte_len,
        immediate: entry.immediate,
    }
}
