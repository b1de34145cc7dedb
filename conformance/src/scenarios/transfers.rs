//! SEND, WRITE and READ of a reliable connection at the sizes where packets begin and end.

use super::common::{IMMEDIATE, RECV_ID, SEND_ID, check_received};
use crate::peer::{Operation, Request, Result, opcode};
use crate::scenario::{
    Pair, Routes, Scenario, check_equal, check_memory, check_success, eventually_memory, pattern, place,
};

/// Something to do with a message of a size.
pub(super) type Run = fn(&mut Pair<'_>, usize) -> Result<()>;

/// What any connection can do.
pub(super) const PUSHING: &[(&str, Run)] = &[
    ("send", |pair, size| send(pair, size, None)),
    ("send-imm", |pair, size| send(pair, size, Some(IMMEDIATE))),
    ("write", write),
    ("write-imm", write_with_immediate),
];

/// All transfers at all sizes.
pub(super) fn all(mtu: usize) -> Vec<Scenario> {
    let kinds = PUSHING.iter().chain(&[("read", read as Run)]);
    let list = kinds.flat_map(|&(name, run)| sizes(mtu).map(|size| scenario(name, size, run)));
    list.map(|scenario| scenario.over(Routes::Every)).collect()
}

/// Sizes around which packets begin and end.
pub(super) fn sizes(mtu: usize) -> [usize; 6] {
    [0, 1, 3, mtu, mtu + 1, 10 * mtu + 5]
}

/// A transfer of one size.
pub(super) fn scenario(name: &str, size: usize, run: Run) -> Scenario {
    Scenario::message(format!("{name}/{size}"), size, move |pair| run(pair, size))
}

fn send(pair: &mut Pair<'_>, size: usize, immediate: Option<u32>) -> Result<()> {
    let (data, part) = (pattern(size, 1), place(size));
    pair.active.write(part.offset, &data)?;
    pair.passive.post_recv(RECV_ID, part)?;
    let sent = pair.request(&Request::new(SEND_ID, Operation::Send { immediate }, part))?;
    check_success(&sent, SEND_ID, opcode::SEND)?;
    let received = pair.passive_completion()?;
    check_received(&received, RECV_ID, size)?;
    check_equal("immediate data", received.immediate, immediate)?;
    check_memory(pair.passive, part.offset, &data)
}

fn write(pair: &mut Pair<'_>, size: usize) -> Result<()> {
    write_request(pair, size, None)
}

fn write_with_immediate(pair: &mut Pair<'_>, size: usize) -> Result<()> {
    pair.passive.post_recv(RECV_ID, place(0))?;
    write_request(pair, size, Some(IMMEDIATE))?;
    let received = pair.passive_completion()?;
    check_success(&received, RECV_ID, opcode::RECV_WRITE_WITH_IMM)?;
    check_equal("received length", received.byte_len as usize, size)?;
    check_equal("immediate data", received.immediate, Some(IMMEDIATE))
}

fn write_request(pair: &mut Pair<'_>, size: usize, immediate: Option<u32>) -> Result<()> {
    let (data, part) = (pattern(size, 2), place(size));
    pair.active.write(part.offset, &data)?;
    let operation = Operation::Write { remote: pair.remote(part.offset), immediate };
    let written = pair.request(&Request::new(SEND_ID, operation, part))?;
    check_success(&written, SEND_ID, opcode::WRITE)?;
    // An unreliable WRITE is complete when it has left; a reliable one has arrived.
    eventually_memory(pair.passive, part.offset, &data)
}

fn read(pair: &mut Pair<'_>, size: usize) -> Result<()> {
    let (data, part) = (pattern(size, 3), place(size));
    pair.passive.write(part.offset, &data)?;
    let operation = Operation::Read { remote: pair.remote(part.offset) };
    let read = pair.request(&Request::new(SEND_ID, operation, part))?;
    check_success(&read, SEND_ID, opcode::READ)?;
    check_memory(pair.active, part.offset, &data)?;
    check_memory(pair.passive, part.offset, &data)
}
