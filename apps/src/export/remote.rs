//! A client's view of what a server shows.

use uroce::{
    Access, Completion, CompletionQueue, ConnParam, Context, MemoryRegion, QpType, RemoteMr, SendWr, WcStatus,
};

use super::ServerArgs;
use super::card::Card;
use crate::cm::{self, Link, NAP};
use crate::device::{self, Device, check};
use crate::error::{Failure, Result};
use crate::interrupt;

/// Bytes of one READ or WRITE.
pub(super) const CHUNK: usize = 256 << 10;
/// How many of them are on their way: enough for a fast link, few enough for the window of READs.
pub(super) const SLOTS: usize = 8;

/// A connection to a server.
pub(super) struct Remote {
    link: Link,
    cq: CompletionQueue,
    /// Where data is on this side, in [`SLOTS`] pieces of [`CHUNK`].
    pub(super) room: MemoryRegion,
    pub(super) card: Card,
}

impl Remote {
    /// Connects to the server, and hears what it shows.
    pub(super) fn open(args: &ServerArgs) -> Result<(Device, Self)> {
        let ctx = device::open(&args.iface, &args.device, uroce::Drive::default())?;
        let remote = Self::connect(&ctx, &args.host, args.port)?;
        ctx.show(std::slice::from_ref(&remote.link.qp));
        Ok((ctx, remote))
    }

    pub(super) fn connect(ctx: &Context, host: &str, port: u16) -> Result<Self> {
        let resolved = cm::resolve(ctx, host, port)?;
        let (pd, cq) = (ctx.alloc_pd()?, ctx.create_cq(4 * SLOTS as u32).build()?);
        let room = pd.alloc_mr(SLOTS * CHUNK, Access::LOCAL_WRITE)?;
        let qp = pd.create_qp(QpType::Rc, &cq, &cq).max_send_wr(2 * SLOTS as u32).max_recv_wr(1).build()?;
        let link = resolved.connect(qp, &ConnParam::default())?;
        let card = Card::decode(&link.said)?;
        Ok(Self { link, cq, room, card })
    }

    /// The part of the server's memory that is meant, once it is known to be there.
    pub(super) fn part(&self, offset: u64, length: Option<u64>) -> Result<RemoteMr> {
        let all = self.card.memory;
        let length = length.unwrap_or(all.len.saturating_sub(offset));
        let end = offset.checked_add(length).filter(|end| *end <= all.len);
        if end.is_none() || (offset > 0 && offset >= all.len) {
            return Err(beyond(offset, length, all.len));
        }
        Ok(RemoteMr { len: length, ..all.at(offset) })
    }

    /// Refuses to change what may only be read. The server would, too.
    pub(super) fn check_writable(&self) -> Result<()> {
        if self.card.writable {
            return Ok(());
        }
        Err(Failure::new(
            "the server shows this for reading only: start it there with --write if it may be changed",
        ))
    }

    pub(super) fn post(&self, request: SendWr) -> Result<()> {
        Ok(self.link.qp.post_send(&[request.signaled()])?)
    }

    /// How many more of what was posted are done; waits for at least one.
    pub(super) fn wait(&mut self) -> Result<usize> {
        let mut completions = [Completion::default(); SLOTS];
        loop {
            interrupt::check()?;
            let found = self.cq.wait(&mut completions, Some(NAP))?;
            if let Some(failed) = completions[..found].iter().find(|one| one.status != WcStatus::Success) {
                return Err(self.explained(failed));
            }
            if found > 0 {
                return Ok(found);
            }
            check(self.cq.context())?;
            if self.link.has_ended() {
                return Err(ended());
            }
        }
    }

    /// Says goodbye.
    pub(super) fn close(self) -> Result<()> {
        self.link.disconnect()
    }

    fn explained(&mut self, completion: &Completion) -> Failure {
        match completion.status {
            WcStatus::RemAccessErr => Failure::new(
                "the server refused the access: what it shows is not what it said; start it again, and then this",
            ),
            WcStatus::RemInvReqErr => Failure::new(
                "the server refused the request as invalid: an atomic operation needs an offset that is a multiple of 8",
            ),
            _ if self.link.has_ended() => ended(),
            _ => device::checked(self.cq.context(), completion).err().unwrap_or_else(ended),
        }
    }
}

fn ended() -> Failure {
    Failure::new(
        "the server ended the connection: it was stopped, or took us for gone; the transfer is not complete",
    )
}

fn beyond(offset: u64, length: u64, len: u64) -> Failure {
    Failure::new(format!(
        "{length} bytes from offset {offset} on are out of bounds: the server shows {len} bytes, from 0 to {}",
        len.saturating_sub(1)
    ))
}
