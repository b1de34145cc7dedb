//! FLUSH, in the form of the specification and in that of rdma_rxe.

use super::common::{SEND_ID, SIZE, write};
use crate::deviation::FLUSH_ICRC;
use crate::peer::{
    FlushForm, Operation, Patience, Placement, Remote, Request, Result, access, opcode, status,
};
use crate::scenario::{Pair, Scenario, check_memory, check_status, check_success, pattern, place};

const FLUSHABLE: u32 = access::ALL | access::FLUSH_GLOBAL;

type Run = fn(&mut Pair<'_>) -> Result<()>;

/// All of them.
pub(super) fn all() -> Vec<Scenario> {
    let specified = Scenario::message("flush/specified", SIZE, specified_form)
        .with(|demands| (demands.access, demands.rights) = (FLUSHABLE, FLUSHABLE))
        .with(|demands| demands.patience = Patience::SHORT);
    let runs: [(&str, u32, Run); 5] = [
        ("flush-rxe/range", FLUSHABLE, |pair| flushed(pair, Placement::Range(SIZE as u32))),
        ("flush-rxe/region", FLUSHABLE, |pair| flushed(pair, Placement::Region)),
        ("flush-rxe/bad-rkey", FLUSHABLE, bad_rkey),
        ("flush-rxe/no-access", access::ALL, no_access),
        ("flush-rxe/out-of-bounds", FLUSHABLE, out_of_bounds),
    ];
    let doubled = runs.map(|(name, access, run)| {
        Scenario::message(name, SIZE, run).with(|demands| {
            (demands.access, demands.rights, demands.flush) = (access, FLUSHABLE, FlushForm::Doubled);
        })
    });
    [specified].into_iter().chain(doubled).collect()
}

const fn flush(remote: Remote, placement: Placement) -> Request {
    Request::new(SEND_ID, Operation::Flush { remote, placement }, place(0))
}

/// Who sums once is not understood by rdma_rxe, and is answered by everybody else; we understand both.
fn specified_form(pair: &mut Pair<'_>) -> Result<()> {
    let request = flush(pair.remote(place(SIZE).offset), Placement::Range(SIZE as u32));
    let expected = pair.toward_rxe(status::SUCCESS, &FLUSH_ICRC, status::RETRY_EXC_ERR);
    check_status(&pair.request(&request)?, SEND_ID, expected)
}

/// A WRITE, and a FLUSH of what it wrote.
fn flushed(pair: &mut Pair<'_>, placement: Placement) -> Result<()> {
    let (data, write) = (pattern(SIZE, 6), write(pair));
    pair.active.write(write.part.offset, &data)?;
    check_success(&pair.request(&write)?, SEND_ID, opcode::WRITE)?;
    // Of a whole region the address means nothing.
    let remote = pair.remote(write.part.offset);
    check_success(&pair.request(&flush(remote, placement))?, SEND_ID, opcode::FLUSH)?;
    check_memory(pair.passive, write.part.offset, &data)?;
    check_success(&pair.request(&write)?, SEND_ID, opcode::WRITE)
}

fn bad_rkey(pair: &mut Pair<'_>) -> Result<()> {
    let right = pair.remote(place(SIZE).offset);
    refused(pair, Remote { rkey: right.rkey ^ 0x0055_0000, ..right })
}

fn no_access(pair: &mut Pair<'_>) -> Result<()> {
    let remote = pair.remote(place(SIZE).offset);
    refused(pair, remote)
}

fn out_of_bounds(pair: &mut Pair<'_>) -> Result<()> {
    let right = pair.remote(place(SIZE).offset);
    refused(pair, Remote { addr: right.addr + 4 * 64, ..right })
}

fn refused(pair: &mut Pair<'_>, remote: Remote) -> Result<()> {
    let request = flush(remote, Placement::Range(SIZE as u32));
    check_status(&pair.request(&request)?, SEND_ID, status::REM_ACCESS_ERR)
}
