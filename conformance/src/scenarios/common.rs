//! Requests and checks that many scenarios share.

use crate::peer::{Completion, Operation, Part, Request, Result, opcode};
use crate::scenario::{Pair, check_equal, check_memory, check_success, pattern, place};

/// Numbers of work requests: all eight bytes of the receive's matter.
pub(super) const SEND_ID: u64 = 0x5e4d;
pub(super) const RECV_ID: u64 = 0xffff_ffff_0000_0001;
/// All four bytes differ, so that a wrong byte order shows.
pub(super) const IMMEDIATE: u32 = 0x0102_a3f4;
/// Bytes of a message whose size does not matter.
pub(super) const SIZE: usize = 100;

/// A SEND of the usual size.
pub(super) fn send() -> Request {
    send_part(place(SIZE))
}

/// A SEND of a part.
pub(super) const fn send_part(part: Part) -> Request {
    Request::new(SEND_ID, Operation::Send { immediate: None }, part)
}

/// A WRITE of the usual size to the same place of the serving end.
pub(super) fn write(pair: &Pair<'_>) -> Request {
    let part = place(SIZE);
    let remote = pair.remote(part.offset);
    Request::new(SEND_ID, Operation::Write { remote, immediate: None }, part)
}

/// A READ of the usual size from the same place of the serving end.
pub(super) fn read(pair: &Pair<'_>) -> Request {
    let part = place(SIZE);
    Request::new(SEND_ID, Operation::Read { remote: pair.remote(part.offset) }, part)
}

/// Sends a message of the usual size into a receive posted now: the connection works.
pub(super) fn works(pair: &mut Pair<'_>, seed: u32) -> Result<()> {
    pair.passive.post_recv(RECV_ID, place(SIZE))?;
    delivers(pair, &send(), seed)
}

/// Sends a message with fresh data into the receive that is posted.
pub(super) fn delivers(pair: &mut Pair<'_>, request: &Request, seed: u32) -> Result<()> {
    let (part, data) = (request.part, pattern(request.part.length, seed));
    pair.active.write(part.offset, &data)?;
    check_success(&pair.request(request)?, request.wr_id, opcode::SEND)?;
    let received = pair.passive_completion()?;
    check_received(&received, RECV_ID, part.length)?;
    check_memory(pair.passive, part.offset, &data)
}

/// Checks a receive that a SEND filled.
pub(super) fn check_received(received: &Completion, wr_id: u64, length: usize) -> Result<()> {
    check_success(received, wr_id, opcode::RECV)?;
    check_equal("received length", received.byte_len as usize, length)
}
