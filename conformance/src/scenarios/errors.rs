//! Errors of one end: the status of what failed, of what was posted behind it, and what the other end sees.

use super::common::{RECV_ID, SEND_ID, SIZE, send, send_part};
use crate::deviation::{BAD_RECEIVE, LOCAL_FAILURE};
use crate::peer::{Operation, Part, Patience, Request, Result, State, status};
use crate::scenario::{Pair, Scenario, check_status, place, untouched};

/// Starts in the region and ends behind it.
const BEYOND: Part = Part { offset: 64, length: 100_000 };
/// Lies behind the region.
const BEHIND: Part = Part { offset: 10_000, length: SIZE };

/// All of them.
pub(super) fn all() -> Vec<Scenario> {
    vec![
        Scenario::message("local-protection/send", SIZE, bad_send),
        Scenario::message("local-protection/write", SIZE, bad_write),
        Scenario::message("local-protection/read", SIZE, bad_read),
        Scenario::message("local-protection/recv", SIZE, bad_receive),
        Scenario::message("wr-flush/sender", SIZE, flush_of_sender),
        Scenario::message("wr-flush/receiver", SIZE, flush_of_receiver)
            .with(|demands| demands.patience = Patience::SHORT),
    ]
}

/// The request fails with nothing sent, and what is posted behind it is flushed, as are receives.
fn fails_alone(pair: &mut Pair<'_>, request: &Request) -> Result<()> {
    pair.active.post_recv(RECV_ID, place(SIZE))?;
    pair.passive.post_recv(RECV_ID, place(SIZE))?;
    pair.active.post_send(request)?;
    let expected = pair.of_active(status::LOC_PROT_ERR, &LOCAL_FAILURE, status::WR_FLUSH_ERR);
    check_status(&pair.active_completion()?, SEND_ID, expected)?;
    pair.active.post_send(&Request { wr_id: SEND_ID + 1, ..send() })?;
    flushed(pair, &[RECV_ID, SEND_ID + 1])?;
    pair.passive_stays_silent()?;
    untouched(pair.passive, SIZE)
}

/// The acting end's next completions are these, flushed, in whatever order the two queues come.
fn flushed(pair: &mut Pair<'_>, ids: &[u64]) -> Result<()> {
    let mut found = Vec::new();
    for _ in ids {
        found.push(pair.active_completion()?);
    }
    found.sort_by_key(|completion| ids.iter().position(|id| *id == completion.wr_id));
    found.iter().zip(ids).try_for_each(|(found, id)| check_status(found, *id, status::WR_FLUSH_ERR))
}

fn bad_send(pair: &mut Pair<'_>) -> Result<()> {
    fails_alone(pair, &send_part(BEYOND))
}

fn bad_write(pair: &mut Pair<'_>) -> Result<()> {
    let operation = Operation::Write { remote: pair.remote(place(0).offset), immediate: None };
    fails_alone(pair, &Request::new(SEND_ID, operation, BEYOND))
}

/// A READ whose answer cannot be put anywhere.
fn bad_read(pair: &mut Pair<'_>) -> Result<()> {
    let operation = Operation::Read { remote: pair.remote(place(SIZE).offset) };
    check_status(&pair.request(&Request::new(SEND_ID, operation, BEHIND))?, SEND_ID, status::LOC_PROT_ERR)
}

/// A receive whose memory is not there: the sender learns that the far end failed.
fn bad_receive(pair: &mut Pair<'_>) -> Result<()> {
    pair.passive.post_recv(RECV_ID, BEHIND)?;
    pair.passive.post_recv(RECV_ID + 1, place(SIZE))?;
    check_status(&pair.request(&send())?, SEND_ID, status::REM_OP_ERR)?;
    let ended = pair.of_passive(status::LOC_PROT_ERR, &BAD_RECEIVE, status::LOC_QP_OP_ERR);
    check_status(&pair.passive_completion()?, RECV_ID, ended)?;
    check_status(&pair.passive_completion()?, RECV_ID + 1, status::WR_FLUSH_ERR)
}

/// Whatever is posted when the queue pair goes into error, and after, is flushed in order.
fn flush_of_sender(pair: &mut Pair<'_>) -> Result<()> {
    for id in [RECV_ID, RECV_ID + 1] {
        pair.active.post_recv(id, place(SIZE))?;
    }
    pair.active.change(State::Failed)?;
    pair.active.post_send(&send())?;
    flushed(pair, &[RECV_ID, RECV_ID + 1, SEND_ID])
}

/// The other end learns of it only by silence.
fn flush_of_receiver(pair: &mut Pair<'_>) -> Result<()> {
    for id in [RECV_ID, RECV_ID + 1] {
        pair.passive.post_recv(id, place(SIZE))?;
    }
    pair.passive.change(State::Failed)?;
    for id in [RECV_ID, RECV_ID + 1] {
        check_status(&pair.passive_completion()?, id, status::WR_FLUSH_ERR)?;
    }
    check_status(&pair.request(&send())?, SEND_ID, status::RETRY_EXC_ERR)?;
    pair.passive_stays_silent()
}
