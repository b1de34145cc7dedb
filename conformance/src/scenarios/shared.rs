//! Shared receive queues: two connections and a datagram queue pair take from one.

use std::time::Duration;

use super::common::{RECV_ID, SEND_ID, SIZE, check_received, send_part};
use super::datagrams;
use crate::peer::{Part, Patience, Result, State, event, opcode, status};
use crate::scenario::{
    FIRST_PLACE, LIMIT, Pair, SILENCE, Scenario, check_equal, check_memory, check_status, check_success,
    pattern, untouched,
};

/// Receives of the shared queue: their places and their numbers.
const PLACES: usize = 6;
/// From one place to the next: what lies between is checked as well.
const STEP: usize = SIZE + 64;

/// All of them.
pub(super) fn all() -> Vec<Scenario> {
    let list = vec![
        Scenario::message("srq/two-connections", PLACES * STEP, two_connections),
        Scenario::message("srq/limit", PLACES * STEP, limit),
        Scenario::message("srq/empty", PLACES * STEP, empty),
        Scenario::message("srq/exhausted", PLACES * STEP, exhausted)
            .with(|demands| demands.patience = Patience { rnr_retries: 1, ..Patience::LONG }),
        Scenario::message("srq/last-receive", PLACES * STEP, last_receive),
    ];
    let connections = list.into_iter().map(|scenario| scenario.with(|demands| demands.queue_pairs = 2));
    let datagrams = datagrams::datagram("srq/datagrams".into(), SIZE, datagram);
    connections.chain([datagrams]).map(|scenario| scenario.with(|demands| demands.shared = true)).collect()
}

const fn spot(index: usize) -> Part {
    Part { offset: FIRST_PLACE + index * STEP, length: SIZE }
}

fn post(pair: &mut Pair<'_>, indexes: std::ops::Range<usize>) -> Result<()> {
    indexes.into_iter().try_for_each(|index| pair.passive.post_recv(RECV_ID + index as u64, spot(index)))
}

/// Sends through a connection; the message must land in the receive of this index.
fn lands(pair: &mut Pair<'_>, connection: usize, index: usize) -> Result<()> {
    let data = pattern(SIZE, index as u32 + 1);
    pair.active.write(FIRST_PLACE, &data)?;
    let request = send_part(Part { offset: FIRST_PLACE, length: SIZE }).on(connection);
    check_success(&pair.request(&request)?, SEND_ID, opcode::SEND)?;
    let received = pair.passive_completion()?;
    check_received(&received, RECV_ID + index as u64, SIZE)?;
    check_equal("local queue pair", received.qp_num, pair.targets[connection].qp_num)?;
    check_memory(pair.passive, spot(index).offset, &data)
}

/// Receives are used in the order they were posted, by whoever comes first.
fn two_connections(pair: &mut Pair<'_>) -> Result<()> {
    post(pair, 0..PLACES)?;
    [0, 1, 1, 0, 1, 0].into_iter().enumerate().try_for_each(|(index, who)| lands(pair, who, index))
}

/// The event comes once, when fewer are left than the limit, and again when asked for again.
fn limit(pair: &mut Pair<'_>) -> Result<()> {
    post(pair, 0..3)?;
    pair.passive.arm_limit(2)?;
    lands(pair, 0, 0)?;
    check_equal("event at the limit", pair.passive.event(SILENCE)?, None)?;
    lands(pair, 1, 1)?;
    check_equal("event below the limit", pair.passive.event(LIMIT)?, Some(event::SRQ_LIMIT_REACHED))?;
    lands(pair, 0, 2)?;
    check_equal("event once more", pair.passive.event(SILENCE)?, None)?;
    post(pair, 3..5)?;
    pair.passive.arm_limit(2)?;
    lands(pair, 1, 3)?;
    check_equal("event after arming again", pair.passive.event(LIMIT)?, Some(event::SRQ_LIMIT_REACHED))
}

/// A sender that finds no receive tries again until there is one.
fn empty(pair: &mut Pair<'_>) -> Result<()> {
    let data = pattern(SIZE, 9);
    pair.active.write(FIRST_PLACE, &data)?;
    pair.active.post_send(&send_part(spot(0)).on(1))?;
    std::thread::sleep(Duration::from_millis(50));
    post(pair, 0..1)?;
    check_success(&pair.active_completion()?, SEND_ID, opcode::SEND)?;
    check_received(&pair.passive_completion()?, RECV_ID, SIZE)?;
    check_memory(pair.passive, FIRST_PLACE, &data)?;
    post(pair, 1..2)?;
    lands(pair, 0, 1)
}

/// A sender that gives up harms nobody else.
fn exhausted(pair: &mut Pair<'_>) -> Result<()> {
    check_status(&pair.request(&send_part(spot(0)))?, SEND_ID, status::RNR_RETRY_EXC_ERR)?;
    untouched(pair.passive, SIZE)?;
    post(pair, 0..1)?;
    lands(pair, 1, 0)
}

/// A queue pair in error leaves the receives to the others and says that it takes no more.
fn last_receive(pair: &mut Pair<'_>) -> Result<()> {
    post(pair, 0..2)?;
    pair.passive.change(State::Failed)?;
    check_equal("event", pair.passive.event(LIMIT)?, Some(event::QP_LAST_WQE_REACHED))?;
    pair.passive_stays_silent()?;
    lands(pair, 1, 0)?;
    lands(pair, 1, 1)
}

fn datagram(pair: &mut Pair<'_>) -> Result<()> {
    let request = datagrams::request(SIZE, None, pair.datagram());
    pair.passive.post_recv(RECV_ID, datagrams::room(SIZE))?;
    datagrams::delivers(pair, &request, 1)?;
    datagrams::push(pair, &request, 2)?;
    pair.passive_stays_silent()?;
    pair.passive.post_recv(RECV_ID, datagrams::room(SIZE))?;
    datagrams::delivers(pair, &request, 3)
}
