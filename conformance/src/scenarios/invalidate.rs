//! Keys that a message or a local request makes invalid.

use super::common::{RECV_ID, SEND_ID, SIZE, check_received};
use super::windows::{bound, write, writes_and_reads};
use crate::deviation::{BAD_INVALIDATE, INVALIDATE_FLAG, LOCAL_FAILURE};
use crate::peer::{Operation, Request, Result, WindowKind, access, flag, opcode, status};
use crate::scenario::{
    Pair, Scenario, check_equal, check_memory, check_status, check_success, pattern, place,
};

/// All of them.
pub(super) fn all() -> Vec<Scenario> {
    let list = [
        Scenario::message("send-inv/window", SIZE, window),
        Scenario::message("send-inv/bad-key", SIZE, bad_key),
        Scenario::message("send-inv/region-key", SIZE, region_key),
        Scenario::message("local-inv/bad-key", SIZE, local_bad_key),
    ];
    list.map(|scenario| scenario.with(|demands| demands.access = access::ALL | access::MW_BIND)).into()
}

fn invalidate(rkey: u32) -> Request {
    Request::new(SEND_ID, Operation::SendInvalidate { rkey }, place(SIZE))
}

/// The message arrives, says which key is gone, and the window is shut.
fn window(pair: &mut Pair<'_>) -> Result<()> {
    let (part, rights) = (place(SIZE), access::REMOTE_READ | access::REMOTE_WRITE);
    let window = bound(pair, WindowKind::Two, part, rights)?;
    writes_and_reads(pair, window, part, 1)?;
    let data = pattern(SIZE, 2);
    pair.active.write(part.offset, &data)?;
    pair.passive.post_recv(RECV_ID, part)?;
    check_success(&pair.request(&invalidate(window.rkey))?, SEND_ID, opcode::SEND)?;
    let received = pair.passive_completion()?;
    check_received(&received, RECV_ID, SIZE)?;
    check_equal("invalidated key", received.invalidated, Some(window.rkey))?;
    let mark = pair.of_passive(flag::WITH_INV, &INVALIDATE_FLAG, flag::KERNEL_WITH_INV);
    check_equal("completion flags", received.flags, flag::GRH | mark)?;
    check_memory(pair.passive, part.offset, &data)?;
    check_status(&pair.request(&write(window, part))?, SEND_ID, status::REM_ACCESS_ERR)
}

fn bad_key(pair: &mut Pair<'_>) -> Result<()> {
    refused(pair, 0x00ab_cdef)
}

/// A region that a control call registered cannot be invalidated.
fn region_key(pair: &mut Pair<'_>) -> Result<()> {
    let rkey = pair.targets[0].rkey;
    refused(pair, rkey)
}

fn refused(pair: &mut Pair<'_>, rkey: u32) -> Result<()> {
    pair.passive.post_recv(RECV_ID, place(SIZE))?;
    let told = pair.of_passive(status::REM_OP_ERR, &BAD_INVALIDATE, status::SUCCESS);
    check_status(&pair.request(&invalidate(rkey))?, SEND_ID, told)?;
    check_status(&pair.passive_completion()?, RECV_ID, status::REM_INV_REQ_ERR)
}

fn local_bad_key(pair: &mut Pair<'_>) -> Result<()> {
    let request = Request::new(SEND_ID, Operation::LocalInvalidate { rkey: 0x00ab_cdef }, place(0));
    let expected = pair.of_active(status::LOC_QP_OP_ERR, &LOCAL_FAILURE, status::WR_FLUSH_ERR);
    check_status(&pair.request(&request)?, SEND_ID, expected)
}
