//! The rdma_rxe of the guest as a peer.

mod attributes;
mod request;

use std::net::Ipv6Addr;
use std::time::Duration;

use crate::agent::{
    Agent, Bind, Capacity, Device, Gid, Handle, NewQueuePair, Path, QueuePair, Region, SendRequest, Window,
};
use crate::peer::{
    Binding, Completion, Endpoint, Part, Peer, Request, Result, Route, Service, Setup, State, WindowKind,
};

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
    pd: Handle,
    region: Region,
    cq: Handle,
    srq: Option<Handle>,
    queue_pairs: Vec<Joined>,
    window: Option<(WindowKind, Window)>,
    /// Everything that must be closed, in the order of creation.
    handles: Vec<Handle>,
}

/// A queue pair and its sequence number.
#[derive(Clone, Copy, Debug)]
struct Joined {
    qp: QueuePair,
    psn: u32,
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

    fn first(&self) -> Result<QueuePair> {
        let found = self.link()?.queue_pairs.first().map(|joined| joined.qp);
        found.ok_or_else(|| "the queue pair was destroyed".into())
    }

    /// Keeps a handle to be closed with everything else.
    fn keep(&mut self, handle: Handle) {
        if let Some(link) = &mut self.link {
            link.handles.push(handle);
        }
    }

    fn create(&mut self, setup: &Setup, gid_index: u8) -> Result<Link> {
        let demands = &setup.demands;
        let pd = self.agent.alloc_pd()?;
        let cq = self.agent.create_cq(Setup::COMPLETIONS)?;
        let length = demands.memory as u64;
        let region = self.agent.register_mr(pd, length, demands.access, Some(&[Setup::FILL]))?;
        let srq = demands.shared.then(|| self.agent.create_srq(pd, Setup::DEPTH, 1)).transpose()?;
        let mut handles = vec![pd, cq, region.handle];
        handles.extend(srq);
        let mut queue_pairs = Vec::new();
        for _ in 0..demands.queue_pairs {
            queue_pairs.push(self.create_queue_pair(demands.service, pd, cq, srq)?);
        }
        handles.extend(queue_pairs.iter().map(|joined| joined.qp.handle));
        Ok(Link { setup: *setup, gid_index, pd, region, cq, srq, queue_pairs, window: None, handles })
    }

    fn create_queue_pair(
        &mut self,
        service: Service,
        pd: Handle,
        cq: Handle,
        srq: Option<Handle>,
    ) -> Result<Joined> {
        let cap = Capacity { max_send_wr: Setup::DEPTH, max_recv_wr: Setup::DEPTH, ..Capacity::default() };
        let new = NewQueuePair { pd, send_cq: cq, recv_cq: cq, cap, qp_type: service.code(), srq };
        self.first_psn = (self.first_psn + 0x01_2345) & 0xff_ffff;
        Ok(Joined { qp: self.agent.create_qp(&new)?, psn: self.first_psn })
    }

    fn datagram(&mut self, request: &Request) -> Result<Option<crate::agent::Datagram>> {
        let Some(to) = request.to else { return Ok(None) };
        let (pd, sgid_index) = (self.link()?.pd, self.link()?.gid_index);
        let ah = self.agent.create_ah(pd, &Path::new(to.gid, sgid_index))?;
        self.keep(ah);
        Ok(Some(crate::agent::Datagram { ah, qp_num: to.qp_num, qkey: to.qkey }))
    }

    /// What `bind` asks for, in the agent's words.
    fn bind_request(&self, binding: &Binding, rkey: Option<u32>) -> Result<Bind> {
        let link = self.link()?;
        let (_, window) = link.window.ok_or("no window is allocated")?;
        Ok(Bind {
            mw: window.handle,
            rkey,
            mr: link.region.handle,
            addr: link.region.addr + binding.part.offset as u64,
            length: binding.part.length as u64,
            access: binding.access,
        })
    }

    fn bind_type_two(&mut self, binding: &Binding, key: u32) -> Result<u32> {
        let (qp, rkey) = (self.first()?, next_key(key));
        let bind = self.bind_request(binding, Some(rkey))?;
        self.agent.post_send(&qp, &SendRequest { bind: Some(bind), ..request::binding(binding.wr_id) })?;
        if let Some((_, window)) = self.link.as_mut().and_then(|link| link.window.as_mut()) {
            window.rkey = rkey;
        }
        Ok(rkey)
    }
}

/// The key after this one: the low 8 bits are the consumer's to choose.
fn next_key(key: u32) -> u32 {
    key & !0xff | key.wrapping_add(1) & 0xff
}

impl Peer for Rxe {
    fn name(&self) -> &str {
        "rxe"
    }

    fn is_rxe(&self) -> bool {
        true
    }

    fn open(&mut self, setup: &Setup) -> Result<Vec<Endpoint>> {
        if self.agent.restore()? {
            self.link = None; // the agent has closed what the broken connection left open
        }
        self.close()?;
        let gid = self.gid(setup.route)?;
        let link = self.create(setup, gid.index)?;
        let region = link.region;
        let endpoint = |joined: &Joined| Endpoint {
            gid: gid.gid,
            qp_num: joined.qp.qp_num,
            psn: joined.psn,
            addr: region.addr,
            rkey: region.rkey,
        };
        let endpoints = link.queue_pairs.iter().map(endpoint).collect();
        self.link = Some(link);
        while self.agent.async_event(Duration::ZERO)?.is_some() {} // events of what was open before
        Ok(endpoints)
    }

    fn connect(&mut self, others: &[Endpoint]) -> Result<()> {
        let link = self.link()?;
        let (setup, gid_index) = (link.setup, link.gid_index);
        for (joined, other) in link.queue_pairs.clone().iter().zip(others) {
            for step in attributes::to_rts(&setup, gid_index, joined.psn, other) {
                self.agent.modify_qp(&joined.qp, &step)?;
            }
        }
        Ok(())
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
        let (srq, sge) = (self.link()?.srq, request::sge(&self.link()?.region, part)?);
        match srq {
            Some(srq) => Ok(self.agent.post_srq_recv(srq, wr_id, &[sge])?),
            None => {
                let qp = self.first()?;
                Ok(self.agent.post_recv(&qp, wr_id, &[sge])?)
            }
        }
    }

    fn post_send(&mut self, request: &Request) -> Result<()> {
        let datagram = self.datagram(request)?;
        let link = self.link()?;
        let joined =
            link.queue_pairs.get(request.queue_pair).copied().ok_or("there is no such queue pair")?;
        let translated = SendRequest { datagram, ..request::translate(request, &link.region)? };
        Ok(self.agent.post_send(&joined.qp, &translated)?)
    }

    fn completions(&mut self, count: usize, limit: Duration) -> Result<Vec<Completion>> {
        let cq = self.link()?.cq;
        Ok(self.agent.poll_cq(cq, count, limit)?.iter().map(request::completion).collect())
    }

    fn allocate_window(&mut self, kind: WindowKind) -> Result<u32> {
        let pd = self.link()?.pd;
        let window = self.agent.alloc_mw(pd, request::window_kind(kind))?;
        self.keep(window.handle);
        if let Some(link) = &mut self.link {
            link.window = Some((kind, window));
        }
        Ok(window.rkey)
    }

    fn bind(&mut self, binding: &Binding) -> Result<u32> {
        let (kind, window) = self.link()?.window.ok_or("no window is allocated")?;
        if kind == WindowKind::Two {
            return self.bind_type_two(binding, window.rkey);
        }
        let (qp, bind) = (self.first()?, self.bind_request(binding, None)?);
        Ok(self.agent.bind_mw(&qp, binding.wr_id, &bind)?)
    }

    fn arm_limit(&mut self, limit: u32) -> Result<()> {
        let srq = self.link()?.srq.ok_or("there is no shared receive queue")?;
        Ok(self.agent.arm_srq(srq, limit)?)
    }

    fn event(&mut self, limit: Duration) -> Result<Option<u32>> {
        Ok(self.agent.async_event(limit)?)
    }

    fn change(&mut self, state: State) -> Result<()> {
        let qp = self.first()?;
        Ok(self.agent.modify_qp(&qp, &attributes::to_state(state))?)
    }

    fn join(&mut self, group: Ipv6Addr) -> Result<()> {
        let qp = self.first()?;
        let membership = self.agent.attach(&qp, group)?;
        self.keep(membership);
        Ok(())
    }

    fn destroy(&mut self) -> Result<()> {
        let handle = self.first()?.handle;
        if let Some(link) = &mut self.link {
            link.queue_pairs.remove(0);
            link.handles.retain(|kept| *kept != handle);
        }
        Ok(self.agent.close(handle)?)
    }

    fn close(&mut self) -> Result<()> {
        let Some(link) = self.link.take() else { return Ok(()) };
        // Every object gets its turn: what one leaves open would be in the way of all scenarios that follow.
        let closed: Vec<_> = link.handles.into_iter().rev().map(|handle| self.agent.close(handle)).collect();
        Ok(closed.into_iter().collect::<std::result::Result<(), _>>()?)
    }
}
