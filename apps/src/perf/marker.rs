//! How WRITE goes there and back: each end watches the last byte of its memory.

use uroce::{RemoteMr, SendWr};

use super::side::{Card, INLINE, Side};
use crate::error::Result;

/// How often a completion is asked for; none is waited for.
const CQ_MOD: u32 = 32;

/// The last byte of a message that was written: bytes land in order, so once it has changed all others are there.
#[derive(Debug)]
pub(crate) struct Marker {
    size: u32,
    remote: RemoteMr,
    /// For messages that are not inline, without and with a completion.
    requests: [SendWr; 2],
    /// What the byte was when we last looked.
    seen: u8,
    written: u8,
    count: u32,
}

impl Marker {
    pub(crate) fn new(side: &Side, peer: &Card, size: u32) -> Result<Self> {
        let remote = peer.incoming(0);
        let requests = requests(side, remote, size);
        Ok(Self { size, remote, requests, seen: 0, written: 0, count: 0 })
    }

    /// From now on messages have `size` bytes. Both ends must have done so before the first one leaves.
    pub(crate) fn begin(&mut self, side: &Side, size: u32) -> Result<()> {
        self.size = size;
        self.requests = requests(side, self.remote, size);
        (self.seen, self.written) = (0, 0);
        Ok(side.memory.write_at(self.place(side), &[0])?)
    }

    /// The value after the last one written; never 0.
    pub(crate) const fn next(&self) -> u8 {
        self.written % u8::MAX + 1
    }

    /// Writes a message that ends with `value` to the peer.
    pub(crate) fn write(&mut self, side: &Side, value: u8) -> Result<()> {
        self.written = value;
        self.count = self.count.wrapping_add(1);
        let signaled = self.count.is_multiple_of(CQ_MOD);
        if self.size <= INLINE {
            let bytes = [value; INLINE as usize];
            let write = SendWr::rdma_write_inline(0, &bytes[..self.size as usize], self.remote);
            let write = if signaled { write.signaled() } else { write };
            return Ok(side.qps[0].post_send(std::slice::from_ref(&write))?);
        }
        side.memory.write_at(side.outgoing_at(0) + self.size as usize - 1, &[value])?;
        Ok(side.qps[0].post_send(std::slice::from_ref(&self.requests[usize::from(signaled)]))?)
    }

    /// The value of a message that has come since the last look.
    pub(crate) fn arrived(&mut self, side: &Side) -> Result<Option<u8>> {
        let mut byte = [0];
        side.memory.read_at(self.place(side), &mut byte)?;
        if byte[0] == self.seen {
            return Ok(None);
        }
        self.seen = byte[0];
        Ok(Some(self.seen))
    }

    const fn place(&self, side: &Side) -> usize {
        side.incoming_at(0) + self.size as usize - 1
    }
}

fn requests(side: &Side, remote: RemoteMr, size: u32) -> [SendWr; 2] {
    let write = SendWr::rdma_write(0, side.outgoing(0, size), remote);
    [write.clone(), write.signaled()]
}
