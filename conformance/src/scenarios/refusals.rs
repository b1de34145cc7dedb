//! Requests that must be refused, with the right status and without a byte moved.

use std::time::Duration;

use crate::peer::{Operation, Peer, Remote, Request, Result, Setup, access, opcode, status};
use crate::scenario::{
    Demands, Pair, Run, Scenario, check_memory, check_status, check_success, pattern, place,
};

const ID: u64 = 0xbad;
const RECV_ID: u64 = 0x4ec;
const SIZE: usize = 100;
/// What a far key violation may come back as: rdma_rxe reports a missing right as an invalid request.
const ACCESS_REFUSED: &[u32] = &[status::REM_ACCESS_ERR, status::REM_INV_REQ_ERR];

/// Where a request reaches for, given the right place.
type Reach = fn(Remote) -> Remote;

/// All of them.
pub(super) fn all(mtu: usize) -> Vec<Scenario> {
    let mut list = Vec::new();
    let reaches: [(&str, Reach); 2] = [("bad-rkey", bad_rkey), ("out-of-bounds", out_of_bounds)];
    for (name, reach) in reaches {
        list.push(scenario(
            format!("{name}/write"),
            usual(),
            Box::new(move |pair| refused_write(pair, reach, SIZE)),
        ));
        let long = 2 * mtu;
        let demands = Demands::message(long);
        list.push(scenario(
            format!("{name}/write-long"),
            demands,
            Box::new(move |pair| refused_write(pair, reach, long)),
        ));
        list.push(scenario(format!("{name}/read"), usual(), Box::new(move |pair| refused_read(pair, reach))));
        list.push(scenario(
            format!("{name}/fetch-add"),
            usual(),
            Box::new(move |pair| refused_atomic(pair, reach)),
        ));
    }
    let local = Demands { access: access::LOCAL_WRITE, ..usual() };
    list.push(scenario(
        "no-right/write".into(),
        local,
        Box::new(|pair| refused_write(pair, |right| right, SIZE)),
    ));
    list.push(scenario("no-right/read".into(), local, Box::new(|pair| refused_read(pair, |right| right))));
    list.push(scenario("no-receive/send".into(), Demands { rnr_retry: 1, ..usual() }, Box::new(no_receive)));
    list.push(scenario("late-receive/send".into(), usual(), Box::new(late_receive)));
    list.push(scenario("short-receive/send".into(), usual(), Box::new(short_receive)));
    list
}

fn scenario(name: String, demands: Demands, run: Run) -> Scenario {
    Scenario { name, demands, run }
}

fn usual() -> Demands {
    Demands::message(SIZE)
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
    refused(pair, &Request { wr_id: ID, operation: Operation::Write { remote, immediate: None }, part })
}

fn refused_read(pair: &mut Pair<'_>, reach: Reach) -> Result<()> {
    let part = place(SIZE);
    let remote = reach(pair.remote(part.offset));
    refused(pair, &Request { wr_id: ID, operation: Operation::Read { remote }, part })?;
    untouched(pair.active, SIZE)
}

fn refused_atomic(pair: &mut Pair<'_>, reach: Reach) -> Result<()> {
    let part = place(8);
    let right = reach(pair.remote(part.offset));
    // One byte past the end would be misaligned as well, which is another mistake: reach past it by whole words.
    let remote = Remote { addr: right.addr.next_multiple_of(8) + 64, ..right };
    refused(pair, &Request { wr_id: ID, operation: Operation::FetchAdd { remote, add: 1 }, part })
}

/// Posts a request that must come back refused and leave the far memory as it was.
fn refused(pair: &mut Pair<'_>, request: &Request) -> Result<()> {
    let done = pair.request(request)?;
    check_status(&done, ID, ACCESS_REFUSED)?;
    untouched(pair.passive, request.part.length)
}

/// Checks that a region made for messages of `size` bytes still holds what it started with.
fn untouched(peer: &mut dyn Peer, size: usize) -> Result<()> {
    check_memory(peer, place(size).offset, &vec![Setup::FILL; size])
}

fn send(size: usize) -> Request {
    Request { wr_id: ID, operation: Operation::Send { immediate: None }, part: place(size) }
}

fn no_receive(pair: &mut Pair<'_>) -> Result<()> {
    let done = pair.request(&send(SIZE))?;
    check_status(&done, ID, &[status::RNR_RETRY_EXC_ERR])?;
    untouched(pair.passive, SIZE)
}

/// A receive posted after the first try must still get the message.
fn late_receive(pair: &mut Pair<'_>) -> Result<()> {
    let data = pattern(SIZE, 5);
    pair.active.write(place(SIZE).offset, &data)?;
    pair.active.post_send(&send(SIZE))?;
    std::thread::sleep(Duration::from_millis(50));
    pair.passive.post_recv(RECV_ID, place(SIZE))?;
    check_success(&pair.active_completion()?, ID, opcode::SEND)?;
    check_success(&pair.passive_completion()?, RECV_ID, opcode::RECV)?;
    check_memory(pair.passive, place(SIZE).offset, &data)
}

/// A message longer than the receive posted for it fails on both sides.
fn short_receive(pair: &mut Pair<'_>) -> Result<()> {
    pair.passive.post_recv(RECV_ID, place(SIZE / 2))?;
    let done = pair.request(&send(SIZE))?;
    check_status(&done, ID, &[status::REM_INV_REQ_ERR, status::REM_OP_ERR])?;
    let received = pair.passive_completion()?;
    check_status(&received, RECV_ID, &[status::LOC_LEN_ERR, status::LOC_QP_OP_ERR])
}
