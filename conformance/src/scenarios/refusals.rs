//! Requests of a reliable connection that must be refused, with the right status at both ends, the right event, and
//! without a byte moved.

use std::time::Duration;

use super::common::{RECV_ID, SEND_ID, SIZE, check_received, read, send, write};
use crate::deviation::{MISALIGNED, NO_EVENTS, SHORT_RECEIVE};
use crate::peer::{Operation, Patience, Remote, Request, Result, access, event, opcode, status};
use crate::scenario::{
    Pair, Routes, SILENCE, Scenario, check_equal, check_memory, check_status, check_success, pattern, place,
    untouched,
};

/// Where a request reaches for, given the right place.
type Reach = fn(Remote) -> Remote;

/// All of them.
pub(super) fn all(mtu: usize) -> Vec<Scenario> {
    let mut list = reaching("bad-rkey", bad_rkey, mtu);
    list.extend(reaching("out-of-bounds", out_of_bounds, mtu));
    list.extend(rights());
    list.push(Scenario::message("no-receive/send", SIZE, no_receive).with(|demands| {
        demands.patience = Patience { rnr_retries: 1, ..Patience::LONG };
    }));
    list.push(Scenario::message("late-receive/send", SIZE, late_receive));
    list.push(Scenario::message("short-receive/send", SIZE, short_receive));
    list.push(Scenario::message("misaligned/fetch-add", SIZE, |pair| misaligned(pair, fetch_add)));
    list.push(Scenario::message("misaligned/atomic-write", SIZE, |pair| misaligned(pair, atomic_write)));
    list.into_iter().map(|scenario| scenario.over(Routes::OnePerFamily)).collect()
}

/// Every operation toward memory that is not there.
fn reaching(name: &str, reach: Reach, mtu: usize) -> Vec<Scenario> {
    let long = 2 * mtu;
    vec![
        Scenario::message(format!("{name}/write"), SIZE, move |pair| refused_write(pair, reach, SIZE)),
        Scenario::message(format!("{name}/write-long"), long, move |pair| refused_write(pair, reach, long)),
        Scenario::message(format!("{name}/read"), SIZE, move |pair| refused_read(pair, reach)),
        Scenario::message(format!("{name}/fetch-add"), SIZE, move |pair| {
            refused_word(pair, reach, fetch_add)
        }),
        Scenario::message(format!("{name}/atomic-write"), SIZE, move |pair| {
            refused_word(pair, reach, atomic_write)
        }),
    ]
}

/// A right that the queue pair lacks makes a request invalid, one that the memory lacks makes the access an error.
fn rights() -> Vec<Scenario> {
    let write = |pair: &mut Pair<'_>, status| {
        let request = write(pair);
        refused(pair, &request, status)
    };
    let read = |pair: &mut Pair<'_>, status| {
        let request = read(pair);
        refused(pair, &request, status)
    };
    let (invalid, forbidden) = (status::REM_INV_REQ_ERR, status::REM_ACCESS_ERR);
    let no_right = |scenario: Scenario| scenario.with(|demands| demands.rights = access::LOCAL_WRITE);
    let no_access = |scenario: Scenario| scenario.with(|demands| demands.access = access::LOCAL_WRITE);
    vec![
        no_right(Scenario::message("no-right/write", SIZE, move |pair| write(pair, invalid))),
        no_right(Scenario::message("no-right/read", SIZE, move |pair| read(pair, invalid))),
        no_access(Scenario::message("no-access/write", SIZE, move |pair| write(pair, forbidden))),
        no_access(Scenario::message("no-access/read", SIZE, move |pair| read(pair, forbidden))),
    ]
}

fn bad_rkey(right: Remote) -> Remote {
    Remote { rkey: right.rkey ^ 0x0055_0000, ..right }
}

/// Starts inside the region and ends behind it.
fn out_of_bounds(right: Remote) -> Remote {
    Remote { addr: right.addr + 4 * 64 - 4, ..right }
}

fn refused_write(pair: &mut Pair<'_>, reach: Reach, size: usize) -> Result<()> {
    let part = place(size);
    pair.active.write(part.offset, &pattern(size, 4))?;
    let remote = reach(pair.remote(part.offset));
    let request = Request::new(SEND_ID, Operation::Write { remote, immediate: None }, part);
    refused(pair, &request, status::REM_ACCESS_ERR)
}

fn refused_read(pair: &mut Pair<'_>, reach: Reach) -> Result<()> {
    let part = place(SIZE);
    let remote = reach(pair.remote(part.offset));
    refused(pair, &Request::new(SEND_ID, Operation::Read { remote }, part), status::REM_ACCESS_ERR)?;
    untouched(pair.active, SIZE)
}

const fn fetch_add(remote: Remote) -> Operation {
    Operation::FetchAdd { remote, add: 1 }
}

const fn atomic_write(remote: Remote) -> Operation {
    Operation::AtomicWrite { remote, value: [0x5a; 8] }
}

fn refused_word(pair: &mut Pair<'_>, reach: Reach, operation: fn(Remote) -> Operation) -> Result<()> {
    let part = place(8);
    let right = reach(pair.remote(part.offset));
    // One byte past the end would be misaligned as well, which is another mistake: reach past it by whole words.
    let remote = Remote { addr: right.addr.next_multiple_of(8) + SIZE.next_multiple_of(8) as u64, ..right };
    refused(pair, &Request::new(SEND_ID, operation(remote), part), status::REM_ACCESS_ERR)
}

fn misaligned(pair: &mut Pair<'_>, operation: fn(Remote) -> Operation) -> Result<()> {
    let part = place(8);
    let remote = pair.remote(part.offset + 4);
    let request = Request::new(SEND_ID, operation(remote), part);
    let is_sent = matches!(request.operation, Operation::AtomicWrite { .. });
    if !is_sent && !pair.of_active(true, &MISALIGNED, false) {
        let refused = pair.active.post_send(&request).is_err();
        return check_equal("whether posting is refused", refused, true);
    }
    refused(pair, &request, status::REM_INV_REQ_ERR)
}

/// Posts a request that must come back refused, end the connection at the far end with an event and a flushed receive,
/// and leave the far memory as it was.
fn refused(pair: &mut Pair<'_>, request: &Request, status: u32) -> Result<()> {
    pair.passive.post_recv(RECV_ID, place(SIZE))?;
    check_status(&pair.request(request)?, SEND_ID, status)?;
    check_status(&pair.passive_completion()?, RECV_ID, status::WR_FLUSH_ERR)?;
    let event = if status == status::REM_INV_REQ_ERR { event::QP_REQ_ERR } else { event::QP_ACCESS_ERR };
    let expected = pair.of_passive(Some(event), &NO_EVENTS, None);
    check_equal("event at the responder", pair.passive.event(SILENCE)?, expected)?;
    untouched(pair.passive, request.part.length)
}

fn no_receive(pair: &mut Pair<'_>) -> Result<()> {
    check_status(&pair.request(&send())?, SEND_ID, status::RNR_RETRY_EXC_ERR)?;
    untouched(pair.passive, SIZE)
}

/// A receive posted after the first try must still get the message.
fn late_receive(pair: &mut Pair<'_>) -> Result<()> {
    let data = pattern(SIZE, 5);
    pair.active.write(place(SIZE).offset, &data)?;
    pair.active.post_send(&send())?;
    std::thread::sleep(Duration::from_millis(50));
    pair.passive.post_recv(RECV_ID, place(SIZE))?;
    check_success(&pair.active_completion()?, SEND_ID, opcode::SEND)?;
    check_received(&pair.passive_completion()?, RECV_ID, SIZE)?;
    check_memory(pair.passive, place(SIZE).offset, &data)
}

/// A message longer than the receive posted for it fails on both sides.
fn short_receive(pair: &mut Pair<'_>) -> Result<()> {
    pair.passive.post_recv(RECV_ID, place(SIZE / 2))?;
    let told = pair.of_passive(status::REM_INV_REQ_ERR, &SHORT_RECEIVE, status::REM_OP_ERR);
    check_status(&pair.request(&send())?, SEND_ID, told)?;
    let ended = pair.of_passive(status::LOC_LEN_ERR, &SHORT_RECEIVE, status::LOC_QP_OP_ERR);
    check_status(&pair.passive_completion()?, RECV_ID, ended)
}
