//! The rdma_rxe of the guest as a peer.

use std::time::Duration;

use crate::agent::{
    Agent, Attributes, Capacity, Device, Gid, Handle, Path, QueuePair, Region, Remote as AgentRemote,
    SendRequest, WorkCompletion,
};
use crate::peer::{Completion, Endpoint, Operation, Part, Peer, Remote, Request, Result, Route, Setup};

/// `ibv_qp_state`.
const INIT: u8 = 1;
const RTR: u8 = 2;
const RTS: u8 = 3;
/// `ibv_send_flags`.
const SIGNALED: u32 = 2;
/// `ibv_wr_opcode`, without immediate; with it is one more for WRITE and SEND.
const WR_WRITE: u32 = 0;
const WR_SEND: u32 = 2;
const WR_READ: u32 = 4;
const WR_COMPARE_SWAP: u32 = 5;
const WR_FETCH_ADD: u32 = 6;
/// Acknowledgement timeout 2^16 * 4.096 us = 268 ms: an emulated kernel is slow. Retries stay below 7, which
/// rdma_rxe takes as "for ever".
const TIMEOUT: u8 = 16;
const RETRIES: u8 = 6;
/// 5.12 ms between tries when no receive is posted.
const RNR_TIMER: u8 = 18;
const READS_IN_FLIGHT: u8 = 4;

/// The rdma_rxe of the guest.
#[derive(Debug)]
pub struct Rxe {
    agent: Agent,
    device: Device,
    first_psn: u32,
    link: Option<Link>,
}

/// What is open.
#[derive(Debug)]
struct Link {
    setup: Setup,
    gid_index: u8,
    psn: u32,
    region: Region,
    cq: Handle,
    qp: QueuePair,
    /// Everything that must be closed, in the order of creation.
    handles: Vec<Handle>,
}

impl Rxe {
    /// Uses a connection to the agent. `first_psn` seeds the sequence numbers of the queue pairs.
    ///
    /// # Errors
    /// When the guest's device does not answer.
    pub fn new(mut agent: Agent, first_psn: u32) -> Result<Self> {
        let device = agent.device()?;
        Ok(Self { agent, device, first_psn, link: None })
    }

    fn gid(&self, route: Route) -> Result<Gid> {
        let found = self.device.gids.iter().find(|entry| route.family.has(entry.gid));
        found.cloned().ok_or_else(|| format!("rdma_rxe has no {:?} address", route.family).into())
    }

    fn link(&self) -> Result<&Link> {
        self.link.as_ref().ok_or_else(|| "no connection is open".into())
    }

    fn create(&mut self, setup: &Setup, gid_index: u8, psn: u32) -> Result<Link> {
        let pd = self.agent.alloc_pd()?;
        let cq = self.agent.create_cq(128)?;
        let region = self.agent.register_mr(pd, setup.region as u64, setup.access, Some(&[Setup::FILL]))?;
        let qp = self.agent.create_qp(pd, cq, cq, Capacity::default(), false)?;
        let handles = vec![pd, cq, region.handle, qp.handle];
        Ok(Link { setup: *setup, gid_index, psn, region, cq, qp, handles })
    }

    fn modify(&mut self, attributes: &Attributes) -> Result<()> {
        let qp = self.link()?.qp;
        Ok(self.agent.modify_qp(&qp, attributes)?)
    }
}

impl Peer for Rxe {
    fn name(&self) -> &str {
        "rxe"
    }

    fn open(&mut self, setup: &Setup) -> Result<Endpoint> {
        self.close()?;
        let gid = self.gid(setup.route)?;
        self.first_psn = (self.first_psn + 0x01_2345) & 0xff_ffff;
        let link = self.create(setup, gid.index, self.first_psn)?;
        let endpoint = Endpoint {
            gid: gid.gid,
            qp_num: link.qp.qp_num,
            psn: link.psn,
            addr: link.region.addr,
            rkey: link.region.rkey,
        };
        self.link = Some(link);
        Ok(endpoint)
    }

    fn connect(&mut self, other: &Endpoint) -> Result<()> {
        let link = self.link()?;
        let steps = [to_init(link), to_rtr(link, other), to_rts(link)];
        steps.iter().try_for_each(|step| self.modify(step))
    }

    fn write(&mut self, offset: usize, data: &[u8]) -> Result<()> {
        let region = self.link()?.region;
        Ok(self.agent.write_memory(&region, offset as u64, data)?)
    }

    fn read(&mut self, part: Part) -> Result<Vec<u8>> {
        let region = self.link()?.region;
        Ok(self.agent.read_memory(&region, part.offset as u64, part.length as u64)?)
    }

    fn post_recv(&mut self, wr_id: u64, part: Part) -> Result<()> {
        let (qp, sge) =
            (self.link()?.qp, self.link()?.region.sge(part.offset as u64, u32::try_from(part.length)?));
        Ok(self.agent.post_recv(&qp, wr_id, &[sge])?)
    }

    fn post_send(&mut self, request: &Request) -> Result<()> {
        let link = self.link()?;
        let (qp, translated) = (link.qp, translate(request, &link.region)?);
        self.agent.post_send(&qp, &translated)?;
        Ok(())
    }

    fn completions(&mut self, count: usize, limit: Duration) -> Result<Vec<Completion>> {
        let cq = self.link()?.cq;
        Ok(self.agent.poll_cq(cq, count, limit)?.iter().map(completion).collect())
    }

    fn close(&mut self) -> Result<()> {
        let Some(link) = self.link.take() else { return Ok(()) };
        for handle in link.handles.into_iter().rev() {
            self.agent.close(handle)?;
        }
        Ok(())
    }
}

fn to_init(link: &Link) -> Attributes {
    Attributes {
        qp_state: Some(INIT),
        pkey_index: Some(0),
        port_num: Some(1),
        qp_access_flags: Some(link.setup.access),
        ..Attributes::default()
    }
}

fn to_rtr(link: &Link, other: &Endpoint) -> Attributes {
    let path =
        Path { dgid: other.gid, sgid_index: link.gid_index, hop_limit: 64, traffic_class: 0, flow_label: 0 };
    Attributes {
        qp_state: Some(RTR),
        ah_attr: Some(path),
        path_mtu: Some(mtu_code(link.setup.route.mtu)),
        dest_qp_num: Some(other.qp_num),
        rq_psn: Some(other.psn),
        max_dest_rd_atomic: Some(READS_IN_FLIGHT),
        min_rnr_timer: Some(RNR_TIMER),
        ..Attributes::default()
    }
}

fn to_rts(link: &Link) -> Attributes {
    Attributes {
        qp_state: Some(RTS),
        sq_psn: Some(link.psn),
        timeout: Some(TIMEOUT),
        retry_cnt: Some(RETRIES),
        rnr_retry: Some(link.setup.rnr_retry),
        max_rd_atomic: Some(READS_IN_FLIGHT),
        ..Attributes::default()
    }
}

/// `ibv_mtu` of a path MTU in bytes: 256 is 1, and each doubling one more.
fn mtu_code(bytes: u32) -> u8 {
    bytes.trailing_zeros().saturating_sub(7) as u8
}

fn translate(request: &Request, region: &Region) -> Result<SendRequest> {
    let sge = region.sge(request.part.offset as u64, u32::try_from(request.part.length)?);
    let base =
        SendRequest { wr_id: request.wr_id, flags: SIGNALED, sges: vec![sge], ..SendRequest::default() };
    Ok(match request.operation {
        Operation::Send { immediate } => with_immediate(SendRequest { opcode: WR_SEND, ..base }, immediate),
        Operation::Write { remote, immediate } => {
            with_immediate(SendRequest { opcode: WR_WRITE, remote: Some(far(remote)), ..base }, immediate)
        }
        Operation::Read { remote } => SendRequest { opcode: WR_READ, remote: Some(far(remote)), ..base },
        Operation::CompareSwap { remote, compare, swap } => SendRequest {
            opcode: WR_COMPARE_SWAP,
            remote: Some(far(remote)),
            compare_add: compare,
            swap,
            ..base
        },
        Operation::FetchAdd { remote, add } => {
            SendRequest { opcode: WR_FETCH_ADD, remote: Some(far(remote)), compare_add: add, ..base }
        }
    })
}

fn with_immediate(request: SendRequest, immediate: Option<u32>) -> SendRequest {
    match immediate {
        Some(value) => SendRequest { opcode: request.opcode + 1, imm: value, ..request },
        None => request,
    }
}

fn far(remote: Remote) -> AgentRemote {
    AgentRemote { addr: remote.addr, rkey: remote.rkey }
}

fn completion(entry: &WorkCompletion) -> Completion {
    Completion {
        wr_id: entry.wr_id,
        status: entry.status,
        opcode: entry.opcode,
        byte_len: entry.byte_len,
        immediate: entry.imm,
    }
}

#[cfg(test)]
mod tests {
    use super::mtu_code;

    #[test]
    fn mtu_codes_are_those_of_verbs() {
        assert_eq!([256, 512, 1024, 2048, 4096].map(mtu_code), [1, 2, 3, 4, 5]);
    }
}
