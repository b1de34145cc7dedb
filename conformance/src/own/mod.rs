//! uRoCE as a peer, through the API that applications use.

mod attributes;
mod device;
mod link;
mod request;

use std::net::Ipv6Addr;
use std::time::{Duration, Instant};

use uroce::{
    AsyncEvent, Completion as OwnCompletion, Context, Gid, GidEntry, MwType, Qpn, RecvWr, SendWr, WcStatus,
};

use crate::peer::{
    Binding, Completion, Datagram, Endpoint, Part, Peer, Request, Result, Route, Setup, State, WindowKind,
    event,
};

pub use device::Device;
use link::Link;

/// uRoCE on one device.
#[derive(Debug)]
pub struct Own {
    device: Device,
    psn: u32,
    link: Option<Link>,
}

impl Own {
    /// Uses a device. `first_psn` seeds the sequence numbers of the queue pairs.
    pub fn new(device: Device, first_psn: u32) -> Self {
        Self { device, psn: first_psn, link: None }
    }

    fn link(&self) -> Result<&Link> {
        self.link.as_ref().ok_or_else(|| "no connection is open".into())
    }

    fn link_mut(&mut self) -> Result<&mut Link> {
        self.link.as_mut().ok_or_else(|| "no connection is open".into())
    }

    /// A datagram is sent along a way, which is found anew for each.
    fn addressed(&self, request: SendWr, to: Option<Datagram>) -> Result<SendWr> {
        let Some(to) = to else { return Ok(request) };
        let link = self.link()?;
        let way = link.pd.create_ah(&attributes::address(link.gid_index, to.gid))?;
        Ok(request.to(&way, Qpn::new(to.qp_num), to.qkey))
    }
}

/// The entry of the GID table for a route.
fn entry(context: &Context, route: Route) -> Result<GidEntry> {
    let gids = context.query_port().gids;
    let found = gids.into_iter().find(|entry| route.family.has(entry.gid.bytes().into()));
    found.ok_or_else(|| format!("our interface has no {:?} address", route.family).into())
}

impl Peer for Own {
    fn name(&self) -> &str {
        "uRoCE"
    }

    fn is_rxe(&self) -> bool {
        false
    }

    fn open(&mut self, setup: &Setup) -> Result<Vec<Endpoint>> {
        self.close()?;
        let context = self.device.context(setup.demands.flush)?;
        let entry = entry(&context, setup.route)?;
        let link = Link::open(&context, setup, entry.index, &mut self.psn)?;
        let endpoints = link.endpoints(entry.gid.bytes().into());
        self.link = Some(link);
        while context.async_event().is_some() {} // events of what was open before
        Ok(endpoints)
    }

    fn connect(&mut self, others: &[Endpoint]) -> Result<()> {
        let link = self.link()?;
        for (joined, other) in link.queue_pairs.iter().zip(others) {
            for step in attributes::to_rts(&link.setup, link.gid_index, joined.psn, other)? {
                joined.qp.modify(&step)?;
            }
        }
        Ok(())
    }

    fn write(&mut self, offset: usize, data: &[u8]) -> Result<()> {
        Ok(self.link()?.region.write_at(offset, data)?)
    }

    fn read(&mut self, part: Part) -> Result<Vec<u8>> {
        Ok(self.link()?.region.to_vec(part.offset..part.offset + part.length)?)
    }

    fn post_recv(&mut self, wr_id: u64, part: Part) -> Result<()> {
        let link = self.link()?;
        let receive = [RecvWr::new(wr_id, link.sge(part)?)];
        match &link.srq {
            Some(srq) => Ok(srq.post_recv(&receive)?),
            None => Ok(link.queue_pair(0)?.post_recv(&receive)?),
        }
    }

    fn post_send(&mut self, request: &Request) -> Result<()> {
        let link = self.link()?;
        let translated = request::translate(request, link.sge(request.part)?).signaled();
        let translated = self.addressed(translated, request.to)?;
        Ok(link.queue_pair(request.queue_pair)?.post_send(&[translated])?)
    }

    fn completions(&mut self, count: usize, limit: Duration) -> Result<Vec<Completion>> {
        let (link, end) = (self.link()?, Instant::now() + limit);
        let mut found = Vec::new();
        while found.len() < count {
            let left = end.saturating_duration_since(Instant::now());
            let mut batch = vec![OwnCompletion::default(); count - found.len()];
            let number = link.cq.wait(&mut batch, Some(left))?;
            found.extend_from_slice(&batch[..number]);
            if number == 0 {
                break;
            }
        }
        if found.iter().any(|done| done.status == WcStatus::MwBindErr) {
            link.forget_binding();
        }
        Ok(found.iter().map(request::completion).collect())
    }

    fn allocate_window(&mut self, kind: WindowKind) -> Result<u32> {
        let link = self.link_mut()?;
        let kind = if kind == WindowKind::One { MwType::Type1 } else { MwType::Type2 };
        let window = link.pd.alloc_mw(kind)?;
        let rkey = window.rkey();
        link.window = Some((window, rkey));
        Ok(rkey)
    }

    fn bind(&mut self, binding: &Binding) -> Result<u32> {
        self.link()?.bind(binding)
    }

    fn arm_limit(&mut self, limit: u32) -> Result<()> {
        let srq = self.link()?.srq.as_ref().ok_or("there is no shared receive queue")?;
        Ok(srq.set_limit(limit)?)
    }

    fn event(&mut self, limit: Duration) -> Result<Option<u32>> {
        let (context, end) = (self.link()?.pd.context(), Instant::now() + limit);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let Some(found) = context.wait_async_event(Some(left))? else { return Ok(None) };
            if let Some(code) = event_code(found) {
                return Ok(Some(code));
            }
        }
    }

    fn change(&mut self, state: State) -> Result<()> {
        Ok(self.link()?.queue_pair(0)?.modify(&attributes::to_state(state))?)
    }

    fn join(&mut self, group: Ipv6Addr) -> Result<()> {
        Ok(self.link()?.queue_pair(0)?.attach_multicast(Gid::from(group))?)
    }

    fn destroy(&mut self) -> Result<()> {
        let link = self.link_mut()?;
        if link.queue_pairs.is_empty() {
            return Err("the queue pair was destroyed".into());
        }
        drop(link.queue_pairs.remove(0));
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        self.link = None;
        Ok(())
    }
}

/// Its `ibv_event_type`, if it is about a queue pair or a shared receive queue.
const fn event_code(found: AsyncEvent) -> Option<u32> {
    match found {
        AsyncEvent::QpReqErr(_) => Some(event::QP_REQ_ERR),
        AsyncEvent::QpAccessErr(_) => Some(event::QP_ACCESS_ERR),
        AsyncEvent::SqDrained(_) => Some(event::SQ_DRAINED),
        AsyncEvent::SrqLimitReached(_) => Some(event::SRQ_LIMIT_REACHED),
        AsyncEvent::QpLastWqeReached(_) => Some(event::QP_LAST_WQE_REACHED),
        _ => None,
    }
}
