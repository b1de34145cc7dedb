//! Against `ucmatose` of rdma-core: its server sends messages, its client sends as many back from the same memory.

use std::time::{Duration, Instant};

use uroce::{
    Access, CompletionExt, ConnParam, Connection, Incoming, Listener, MemoryRegion, ProtectionDomain,
    QueuePair, RecvWr, SendWr,
};

use super::{Ends, PATIENCE, guest};
use crate::peer::Result;
use crate::scenario::{check_equal, pattern};

/// Messages each way, and the bytes of one: more than a packet.
const COUNT: u64 = 20;
const SIZE: usize = 5000;
/// The same for `ucmatose`.
const OPTIONS: [&str; 4] = ["-C", "20", "-S", "5000"];

/// The guest listens and sends first. What it sends is whatever its memory holds; it does not look at what we send.
pub(super) fn client(ends: &mut Ends<'_>) -> Result<()> {
    let (address, port) = (ends.guest.to_string(), ends.port.to_string());
    let words = ["ucmatose", "-b", &address, "-p", &port];
    let words: Vec<&str> = words.into_iter().chain(OPTIONS).collect();
    let program = guest::serve(ends.agent, &words, ends.port)?;
    let connection = ends.context.connect(ends.there(), &ConnParam::default())?;
    let (inbox, outbox) = memory(connection.pd())?;
    post_receives(connection.qp(), &inbox)?;
    complete(&connection, COUNT)?;
    send_all(&connection, &outbox)?;
    complete(&connection, COUNT)?;
    ends_there(&connection)?;
    connection.disconnect()?;
    guest::finish(ends.agent, program).map(drop)
}

/// We listen and send first; what comes back is what was sent.
pub(super) fn server(ends: &mut Ends<'_>) -> Result<()> {
    let listener = Listener::bind(ends.context, ends.here())?;
    let program = guest::ucmatose(ends.agent, ends.own, ends.port, &OPTIONS)?;
    let incoming = listener.accept_request_within(Some(PATIENCE))?;
    let incoming: Incoming = incoming.ok_or("the guest did not ask for a connection")?;
    let (inbox, outbox) = memory(incoming.pd())?;
    post_receives(incoming.qp(), &inbox)?;
    let connection = incoming.accept(&ConnParam::default())?;
    send_all(&connection, &outbox)?;
    complete(&connection, 2 * COUNT)?;
    connection.disconnect()?;
    guest::finish(ends.agent, program)?;
    check_equal("what came back", inbox.to_vec(..)? == outbox.to_vec(..)?, true)
}

/// Where messages arrive, and what is sent.
fn memory(pd: &ProtectionDomain) -> Result<(MemoryRegion, MemoryRegion)> {
    let inbox = pd.alloc_mr(SIZE, Access::LOCAL_WRITE)?;
    Ok((inbox, pd.alloc_mr_from(&pattern(SIZE, 77), Access::empty())?))
}

fn post_receives(qp: &QueuePair, inbox: &MemoryRegion) -> Result<()> {
    (0..COUNT).try_for_each(|id| Ok(qp.post_recv(&[RecvWr::new(id, inbox.sge(..))])?))
}

fn send_all(connection: &Connection, outbox: &MemoryRegion) -> Result<()> {
    (0..COUNT)
        .try_for_each(|id| Ok(connection.qp().post_send(&[SendWr::send(id, outbox.sge(..)).signaled()])?))
}

/// Waits for so many completions, which must be successes of whole messages.
fn complete(connection: &Connection, count: u64) -> Result<()> {
    for _ in 0..count {
        let done = connection.cq().wait_one_for(PATIENCE)?.result()?;
        check_equal("bytes of a message", done.byte_len as usize, SIZE)?;
    }
    Ok(())
}

/// Waits until the peer has ended the connection.
pub(super) fn ends_there(connection: &Connection) -> Result<()> {
    let limit = Instant::now() + PATIENCE;
    while !connection.is_disconnected() {
        if Instant::now() > limit {
            return Err("the guest did not end the connection".into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
