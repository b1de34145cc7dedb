//! Unreliable connections: what arrives, and what is lost without a word.

use super::common::{RECV_ID, SEND_ID, SIZE, delivers, send, send_part, works, write};
use super::transfers;
use crate::deviation::LONG_UC_MESSAGE;
use crate::peer::{Operation, Remote, Request, Result, Service, access, opcode, status};
use crate::scenario::{
    Pair, Routes, SILENCE, Scenario, check_status, check_success, pattern, place, untouched,
};

/// All of them.
pub(super) fn all(mtu: usize) -> Vec<Scenario> {
    let sizes = transfers::sizes(mtu);
    let kinds = transfers::PUSHING.iter();
    let transfers = kinds.flat_map(|&(name, run)| {
        sizes.map(|size| transfers::scenario(&format!("uc/{name}"), size, run).over(Routes::OnePerFamily))
    });
    let others = [
        Scenario::message("uc/no-receive", SIZE, no_receive),
        Scenario::message("uc/bad-rkey", SIZE, bad_rkey),
        Scenario::message("uc/no-right", SIZE, no_right).with(|demands| demands.rights = access::LOCAL_WRITE),
        Scenario::message("uc/short-receive", SIZE, short_receive),
    ];
    transfers.chain(others).map(|scenario| scenario.with(|demands| demands.service = Service::Uc)).collect()
}

/// A message that finds no receive is gone; the next one arrives.
fn no_receive(pair: &mut Pair<'_>) -> Result<()> {
    pair.active.write(place(SIZE).offset, &pattern(SIZE, 1))?;
    check_success(&pair.request(&send())?, SEND_ID, opcode::SEND)?;
    pair.passive_stays_silent()?;
    pair.passive.post_recv(RECV_ID, place(SIZE))?;
    pair.passive_stays_silent()?;
    delivers(pair, &send(), 2)
}

fn bad_rkey(pair: &mut Pair<'_>) -> Result<()> {
    let part = place(SIZE);
    let right = pair.remote(part.offset);
    let remote = Remote { rkey: right.rkey ^ 0x0055_0000, ..right };
    let request = Request::new(SEND_ID, Operation::Write { remote, immediate: None }, part);
    refused_in_silence(pair, &request)
}

fn no_right(pair: &mut Pair<'_>) -> Result<()> {
    let request = write(pair);
    refused_in_silence(pair, &request)
}

/// The sender sees success, no byte moves, and the connection goes on.
fn refused_in_silence(pair: &mut Pair<'_>, request: &Request) -> Result<()> {
    pair.active.write(request.part.offset, &pattern(SIZE, 3))?;
    check_success(&pair.request(request)?, SEND_ID, opcode::WRITE)?;
    std::thread::sleep(SILENCE);
    untouched(pair.passive, SIZE)?;
    works(pair, 4)
}

/// A message that does not fit its receive is gone, and the receive waits for one that does.
fn short_receive(pair: &mut Pair<'_>) -> Result<()> {
    pair.passive.post_recv(RECV_ID, place(SIZE / 2))?;
    pair.passive.post_recv(RECV_ID + 1, place(SIZE))?;
    check_success(&pair.request(&send())?, SEND_ID, opcode::SEND)?;
    if !pair.of_passive(true, &LONG_UC_MESSAGE, false) {
        check_status(&pair.passive_completion()?, RECV_ID, status::LOC_QP_OP_ERR)?;
        return check_status(&pair.passive_completion()?, RECV_ID + 1, status::WR_FLUSH_ERR);
    }
    pair.passive_stays_silent()?;
    delivers(pair, &send_part(place(SIZE / 2)), 2)
}
