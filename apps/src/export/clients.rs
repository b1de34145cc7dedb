//! The clients of a server.

use std::net::IpAddr;

use serde::Serialize;
use uroce::{
    CmId, Completion, CompletionQueue, Context, Counter, QpType, QueuePair, RemoteMr, SendWr, WcStatus,
};

use super::allow::Network;
use super::memory::{Memory, Registered};
use crate::clock::Stopwatch;
use crate::cm::Asking;
use crate::error::Result;

/// Who is let in.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// Nobody is left out if there are none.
    pub(super) allowed: Vec<Network>,
    pub(super) most: usize,
}

/// All clients, each with a protection domain of its own.
pub(super) struct Clients<'m> {
    memory: &'m Memory,
    rules: Rules,
    /// Where their probes complete.
    cq: CompletionQueue,
    all: Vec<Client<'m>>,
}

/// One of them. The id goes first: it tells the client.
struct Client<'m> {
    id: CmId,
    qp: std::sync::Arc<QueuePair>,
    _memory: Registered<'m>,
    since: Stopwatch,
    /// A probe is on its way.
    probed: bool,
}

/// What is told about a client.
#[derive(Debug, Serialize)]
pub(super) struct News {
    pub(super) event: &'static str,
    pub(super) client: String,
    /// How many there are now.
    pub(super) clients: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    #[serde(flatten)]
    pub(super) work: Option<Work>,
}

/// What a client has done.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Work {
    pub(super) seconds: f64,
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) atomics: u64,
    /// Requests that were refused.
    pub(super) refused: u64,
}

impl<'m> Clients<'m> {
    pub(super) fn new(ctx: &Context, memory: &'m Memory, rules: Rules) -> Result<Self> {
        let cq = ctx.create_cq(rules.most.max(1) as u32 + 1).build()?;
        Ok(Self { memory, rules, cq, all: Vec::new() })
    }

    /// Lets a client in, or refuses it with a word.
    pub(super) fn admit(&mut self, asking: Asking) -> Result<News> {
        let peer = asking.peer();
        let admitted = match self.refusal(peer.ip()) {
            Some(reason) => {
                asking.id.reject(reason.as_bytes())?;
                Err(reason)
            }
            None => self.add(asking).map_err(|failure| failure.to_string()),
        };
        let reason = admitted.err();
        let event = if reason.is_some() { "refused" } else { "connected" };
        Ok(News { event, client: peer.to_string(), clients: self.all.len(), reason, work: None })
    }

    /// Forgets a client that has gone.
    pub(super) fn remove(&mut self, id: &CmId) -> Option<News> {
        let index = self.all.iter().position(|client| client.id == *id)?;
        let client = self.all.swap_remove(index);
        // The answer to a client that said goodbye. One that vanished needs none.
        let _ = client.id.disconnect();
        Some(client.news("left", self.all.len()))
    }

    /// Sends each client an empty WRITE, unless one is on its way: whoever does not acknowledge it has vanished, which
    /// nothing else would tell.
    pub(super) fn probe(&mut self) {
        for client in self.all.iter_mut().filter(|client| !client.probed) {
            let empty = SendWr::rdma_write_inline(0, &[], RemoteMr::default()).signaled();
            client.probed = client.qp.post_send(&[empty]).is_ok();
        }
    }

    /// Forgets the clients that have vanished.
    pub(super) fn bury(&mut self) -> Vec<News> {
        let mut completions = [Completion::default(); 16];
        let found = self.cq.poll(&mut completions);
        let mut news = Vec::new();
        for completion in &completions[..found] {
            let Some(index) = self.all.iter().position(|client| client.qp.qpn() == completion.qp_num) else {
                continue;
            };
            self.all[index].probed = false;
            if completion.status != WcStatus::Success {
                let client = self.all.swap_remove(index);
                news.push(client.news("vanished", self.all.len()));
            }
        }
        news
    }

    fn refusal(&self, address: IpAddr) -> Option<String> {
        let Rules { allowed, most } = &self.rules;
        if !allowed.is_empty() && !allowed.iter().any(|network| network.contains(address)) {
            return Some(format!("{address} is not among the addresses that --allow names there"));
        }
        (self.all.len() >= *most)
            .then(|| format!("all {most} places of the server are taken: try again later"))
    }

    fn add(&mut self, asking: Asking) -> Result<()> {
        let ctx = asking.id.context();
        let pd = ctx.alloc_pd()?;
        let memory = self.memory.register(&pd)?;
        let prepared = pd.create_qp(QpType::Rc, &self.cq, &self.cq).max_send_wr(1).max_recv_wr(1).build()?;
        let qp = asking.id.create_qp(prepared)?;
        asking.id.accept(&asking.grant(&memory.card().encode()))?;
        self.all.push(Client {
            id: asking.id,
            qp,
            _memory: memory,
            since: Stopwatch::start(),
            probed: false,
        });
        Ok(())
    }
}

impl Client<'_> {
    fn news(&self, event: &'static str, clients: usize) -> News {
        let client = self.id.peer_addr().map_or_else(|| "?".to_owned(), |peer| peer.to_string());
        News { event, client, clients, reason: None, work: Some(self.work()) }
    }

    fn work(&self) -> Work {
        let counters = self.qp.counters();
        let count = |wanted: Counter| counters.get(wanted);
        Work {
            seconds: crate::stats::rounded(self.since.seconds()),
            reads: count(Counter::RxReadRequests),
            writes: count(Counter::RxWriteRequests),
            atomics: count(Counter::RxAtomicRequests),
            refused: count(Counter::RespRemoteAccessErrors) + count(Counter::RespInvalidRequest),
        }
    }
}
