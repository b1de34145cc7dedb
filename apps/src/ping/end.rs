//! What both ends have: memory, a queue pair, and the advertisements.

use uroce::{
    Access, Completion, CompletionQueue, Context, MemoryRegion, PreparedQueuePair, ProtectionDomain, QpType,
    RecvWr, RemoteMr, SendWr,
};

use super::advert;
use crate::cm::{Link, NAP};
use crate::device::{check, checked};
use crate::error::{Failure, Result};
use crate::interrupt;

/// Work requests on their way at most, in each direction.
const DEPTH: u32 = 16;
/// What completions are of.
const RECEIVE: u64 = 1;
const SEND: u64 = 2;
const TRANSFER: u64 = 3;

/// An end before it is connected.
pub(super) struct Prepared {
    pub(super) pd: ProtectionDomain,
    cq: CompletionQueue,
    qp: PreparedQueuePair,
    inbox: MemoryRegion,
}

/// A connected end.
pub(super) struct End {
    link: Link,
    cq: CompletionQueue,
    inbox: MemoryRegion,
    /// An advertisement that has come and was not looked at.
    heard: Option<RemoteMr>,
    /// A READ or WRITE of ours is done.
    transferred: bool,
}

impl Prepared {
    pub(super) fn new(ctx: &Context) -> Result<Self> {
        let (pd, cq) = (ctx.alloc_pd()?, ctx.create_cq(2 * DEPTH).build()?);
        let qp = pd.create_qp(QpType::Rc, &cq, &cq).max_send_wr(DEPTH).max_recv_wr(DEPTH);
        let qp = qp.max_inline_data(advert::BYTES as u32).build()?;
        let inbox = pd.alloc_mr(advert::BYTES, Access::LOCAL_WRITE)?;
        qp.post_recv(&[RecvWr::new(RECEIVE, inbox.sge(..))])?;
        Ok(Self { pd, cq, qp, inbox })
    }

    /// The end, once `connect` has connected its queue pair.
    pub(super) fn connect(self, connect: impl FnOnce(PreparedQueuePair) -> Result<Link>) -> Result<End> {
        let Self { cq, qp, inbox, .. } = self;
        Ok(End { link: connect(qp)?, cq, inbox, heard: None, transferred: false })
    }
}

impl End {
    /// Tells the peer about memory.
    pub(super) fn tell(&self, memory: RemoteMr) -> Result<()> {
        Ok(self.link.qp.post_send(&[SendWr::send_inline(SEND, &advert::encode(memory)).signaled()])?)
    }

    /// What the peer tells next; nothing if it ends the connection instead.
    pub(super) fn hear(&mut self) -> Result<Option<RemoteMr>> {
        loop {
            if let Some(memory) = self.heard.take() {
                return Ok(Some(memory));
            }
            if !self.step()? {
                return Ok(None);
            }
        }
    }

    /// Does a READ or WRITE; false if the peer ends the connection meanwhile.
    pub(super) fn transfer(&mut self, make: impl FnOnce(u64) -> SendWr) -> Result<bool> {
        self.link.qp.post_send(&[make(TRANSFER).signaled()])?;
        while !std::mem::take(&mut self.transferred) {
            if !self.step()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Ends the connection.
    pub(super) fn disconnect(self) -> Result<()> {
        self.link.disconnect()
    }

    /// Waits a while for completions; false if nothing comes and the peer has ended the connection.
    fn step(&mut self) -> Result<bool> {
        interrupt::check()?;
        let mut completions = [Completion::default(); 4];
        let found = self.cq.wait(&mut completions, Some(NAP))?;
        if found > 0 {
            completions[..found].iter().try_for_each(|completion| self.handle(completion))?;
            return Ok(true);
        }
        check(self.cq.context())?;
        Ok(!self.link.has_ended())
    }

    fn handle(&mut self, completion: &Completion) -> Result<()> {
        let completion = checked(self.cq.context(), completion)?;
        match completion.wr_id {
            RECEIVE => self.receive(completion.byte_len as usize),
            TRANSFER => {
                self.transferred = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn receive(&mut self, length: usize) -> Result<()> {
        if length != advert::BYTES {
            return Err(Failure::new(format!(
                "the peer sent {length} bytes where rping sends {}: is it `rping` or `uroce ping`?",
                advert::BYTES
            )));
        }
        let mut bytes = [0; advert::BYTES];
        self.inbox.read_at(0, &mut bytes)?;
        self.heard = Some(advert::decode(&bytes));
        Ok(self.link.qp.post_recv(&[RecvWr::new(RECEIVE, self.inbox.sge(..))])?)
    }

    /// Its queue pair, to be shown.
    pub(super) fn link(&self) -> &Link {
        &self.link
    }
}
