//! States of a queue pair under use: drained, reset, used again.

use super::common::{RECV_ID, SEND_ID, SIZE, check_received, send, works};
use crate::deviation::{SQD_RESUME, SQD_WAITING};
use crate::peer::{Patience, Request, Result, State, event, opcode, status};
use crate::scenario::{LIMIT, Pair, SILENCE, Scenario, check_equal, check_status, check_success, place};

/// All of them.
pub(super) fn all() -> Vec<Scenario> {
    vec![
        Scenario::message("sqd/drained", SIZE, drained),
        Scenario::message("sqd/pending", SIZE, pending),
        Scenario::message("reset/reuse", SIZE, reuse),
        Scenario::message("reset/after-error", SIZE, reuse_after_error)
            .with(|demands| demands.patience = Patience::SHORT),
        Scenario::message("drain/beacon", SIZE, beacon),
    ]
}

/// An idle queue is drained at once; what is posted then waits until the queue pair runs again.
fn drained(pair: &mut Pair<'_>) -> Result<()> {
    works(pair, 1)?;
    pair.active.change(State::Draining)?;
    check_equal("event", pair.active.event(LIMIT)?, Some(event::SQ_DRAINED))?;
    pair.passive.post_recv(RECV_ID, place(SIZE))?;
    pair.active.post_send(&send())?;
    check_equal("completions in SQD", pair.active.completions(1, SILENCE)?, vec![])?;
    pair.passive_stays_silent()?;
    pair.active.change(State::Running)?;
    if !pair.of_active(true, &SQD_RESUME, false) {
        pair.passive_stays_silent()?;
        return resumes_with_the_next(pair);
    }
    check_success(&pair.active_completion()?, SEND_ID, opcode::SEND)?;
    check_received(&pair.passive_completion()?, RECV_ID, SIZE)
}

fn resumes_with_the_next(pair: &mut Pair<'_>) -> Result<()> {
    pair.passive.post_recv(RECV_ID + 1, place(SIZE))?;
    pair.active.post_send(&Request { wr_id: SEND_ID + 1, ..send() })?;
    for next in 0..2 {
        check_success(&pair.active_completion()?, SEND_ID + next, opcode::SEND)?;
        check_received(&pair.passive_completion()?, RECV_ID + next, SIZE)?;
    }
    Ok(())
}

/// What was started before finishes first: the message that waits for a receive.
fn pending(pair: &mut Pair<'_>) -> Result<()> {
    pair.active.post_send(&send())?;
    std::thread::sleep(SILENCE);
    pair.active.change(State::Draining)?;
    let early = pair.of_active(None, &SQD_WAITING, Some(event::SQ_DRAINED));
    check_equal("event while a message is under way", pair.active.event(SILENCE)?, early)?;
    pair.passive.post_recv(RECV_ID, place(SIZE))?;
    if early.is_some() {
        pair.passive_stays_silent()?;
        pair.active.change(State::Running)?;
        return resumes_with_the_next(pair);
    }
    check_success(&pair.active_completion()?, SEND_ID, opcode::SEND)?;
    check_received(&pair.passive_completion()?, RECV_ID, SIZE)?;
    check_equal("event", pair.active.event(LIMIT)?, Some(event::SQ_DRAINED))
}

/// A reset forgets what was posted, without completions; then everything begins anew.
fn reuse(pair: &mut Pair<'_>) -> Result<()> {
    works(pair, 1)?;
    pair.active.post_recv(RECV_ID, place(SIZE))?;
    pair.passive.post_recv(RECV_ID + 1, place(SIZE))?;
    again(pair)?;
    works(pair, 2)
}

fn again(pair: &mut Pair<'_>) -> Result<()> {
    pair.active.change(State::Reset)?;
    pair.passive.change(State::Reset)?;
    pair.passive_stays_silent()?;
    check_equal("completions after a reset", pair.active.completions(1, SILENCE)?, vec![])?;
    pair.connect()
}

fn reuse_after_error(pair: &mut Pair<'_>) -> Result<()> {
    check_status(&pair.request(&send())?, SEND_ID, status::RNR_RETRY_EXC_ERR)?;
    again(pair)?;
    works(pair, 3)
}

/// The last request posted before all others are known to be done completes last, on both queues.
fn beacon(pair: &mut Pair<'_>) -> Result<()> {
    const POSTED: u64 = 4;
    for id in 0..POSTED {
        pair.passive.post_recv(RECV_ID + id, place(SIZE))?;
        pair.passive.post_send(&Request { wr_id: SEND_ID + id, ..send() })?;
    }
    pair.passive.change(State::Failed)?;
    pair.passive.post_recv(RECV_ID + POSTED, place(SIZE))?;
    pair.passive.post_send(&Request { wr_id: SEND_ID + POSTED, ..send() })?;
    let all = 2 * (POSTED as usize + 1);
    let found = pair.passive.completions(all, LIMIT)?;
    check_equal("completions", found.len(), all)?;
    for first in [RECV_ID, SEND_ID] {
        let queue: Vec<_> = found.iter().filter(|done| done.wr_id.wrapping_sub(first) <= POSTED).collect();
        let order: Vec<u64> = queue.iter().map(|done| done.wr_id - first).collect();
        check_equal("order", order, (0..=POSTED).collect())?;
        let last = queue.last().map(|done| done.status);
        check_equal("status of the beacon", last, Some(status::WR_FLUSH_ERR))?;
    }
    Ok(())
}
