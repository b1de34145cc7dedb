//! One end goes away in the middle: the other ends by itself, with every request accounted for.

use super::common::{RECV_ID, SEND_ID, SIZE, send};
use crate::peer::{Patience, Peer, Request, Result, status};
use crate::scenario::{LIMIT, Pair, Scenario, check_equal, check_status, place};

/// Requests on the way when it happens.
const POSTED: u64 = 16;

/// All of them.
pub(super) fn all() -> Vec<Scenario> {
    let list = [
        Scenario::message("destroyed/receiver", SIZE, receiver),
        Scenario::message("destroyed/sender", SIZE, sender),
        Scenario::message("destroyed/both-sending", SIZE, both_sending),
    ];
    list.map(|scenario| {
        scenario.with(|demands| demands.patience = Patience { rnr_retries: 7, ..Patience::SHORT })
    })
    .into()
}

fn post_all(sender: &mut dyn Peer, receiver: &mut dyn Peer) -> Result<()> {
    for id in 0..POSTED {
        receiver.post_recv(RECV_ID + id, place(SIZE))?;
    }
    (0..POSTED).try_for_each(|id| sender.post_send(&Request { wr_id: SEND_ID + id, ..send() }))
}

/// The receiver vanishes: whatever it has not acknowledged ends with the retries of the oldest request.
fn receiver(pair: &mut Pair<'_>) -> Result<()> {
    post_all(pair.active, pair.passive)?;
    pair.passive.destroy()?;
    pair.active.post_send(&Request { wr_id: SEND_ID + POSTED, ..send() })?;
    ends_by_itself(pair.active, SEND_ID, POSTED as usize + 1)
}

/// Requests complete in order: some well, one with its retries used up, the rest flushed.
fn ends_by_itself(peer: &mut dyn Peer, first: u64, count: usize) -> Result<()> {
    let found = peer.completions(count, LIMIT)?;
    check_equal("completions", found.len(), count)?;
    let mut expected = status::SUCCESS;
    for (done, id) in found.iter().zip(first..) {
        expected = match (expected, done.status) {
            (status::SUCCESS, status::RETRY_EXC_ERR) => status::RETRY_EXC_ERR,
            (status::RETRY_EXC_ERR, _) => status::WR_FLUSH_ERR,
            (before, _) => before,
        };
        check_status(done, id, expected)?;
    }
    let failed = found.iter().any(|done| done.status == status::RETRY_EXC_ERR);
    check_equal("whether one request failed with its retries used up", failed, true)
}

/// The sender vanishes: the receiver keeps what has arrived, and hears nothing any more.
fn sender(pair: &mut Pair<'_>) -> Result<()> {
    post_all(pair.active, pair.passive)?;
    pair.active.destroy()?;
    let arrived = pair.passive.completions(POSTED as usize, LIMIT / 20)?;
    for (done, id) in arrived.iter().zip(RECV_ID..) {
        check_status(done, id, status::SUCCESS)?;
    }
    pair.passive_stays_silent()
}

/// Both send when one is destroyed: the other one's sends end by themselves, its receives are flushed.
fn both_sending(pair: &mut Pair<'_>) -> Result<()> {
    post_all(pair.active, pair.passive)?;
    post_all(pair.passive, pair.active)?;
    pair.active.destroy()?;
    pair.passive.post_send(&Request { wr_id: SEND_ID + POSTED, ..send() })?;
    let all = 2 * POSTED as usize + 1;
    let found = pair.passive.completions(all, LIMIT)?;
    check_equal("completions", found.len(), all)?;
    let failed = found.iter().filter(|done| done.status == status::RETRY_EXC_ERR).count();
    check_equal("requests with their retries used up", failed, 1)?;
    let known = [status::SUCCESS, status::RETRY_EXC_ERR, status::WR_FLUSH_ERR];
    let odd = found.iter().find(|done| !known.contains(&done.status));
    check_equal("completion of another status", odd, None)
}
