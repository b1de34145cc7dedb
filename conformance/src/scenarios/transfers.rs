//! SEND, WRITE and READ at the sizes where packets begin and end.

use crate::peer::{Operation, Request, Result, opcode};
use crate::scenario::{Demands, Pair, Scenario, check_equal, check_memory, check_success, pattern, place};

const SEND_ID: u64 = 0x5e4d;
const RECV_ID: u64 = 0xffff_ffff_0000_0001;
/// All four bytes differ, so that a wrong byte order shows.
const IMMEDIATE: u32 = 0x0102_a3f4;

type Run = fn(&mut Pair<'_>, usize) -> Result<()>;

const KINDS: &[(&str, Run)] = &[
    ("send", |pair, size| send(pair, size, None)),
    ("send-imm", |pair, size| send(pair, size, Some(IMMEDIATE))),
    ("write", write),
    ("write-imm", write_with_immediate),
    ("read", read),
];

/// All transfers at all sizes.
pub(super) fn all(mtu: usize) -> Vec<Scenario> {
    let sizes = [0, 1, 3, mtu, mtu + 1, 10 * mtu + 5];
    KINDS.iter().flat_map(|&(name, run)| sizes.map(|size| scenario(name, size, run))).collect()
}

fn scenario(name: &str, size: usize, run: Run) -> Scenario {
    Scenario {
        name: format!("{name}/{size}"),
        demands: Demands::message(size),
        run: Box::new(move |pair| run(pair, size)),
    }
}

fn send(pair: &mut Pair<'_>, size: usize, immediate: Option<u32>) -> Result<()> {
    let data = pattern(size, 1);
    let part = place(size);
    pair.active.write(part.offset, &data)?;
    pair.passive.post_recv(RECV_ID, part)?;
    let sent = pair.request(&Request { wr_id: SEND_ID, operation: Operation::Send { immediate }, part })?;
    check_success(&sent, SEND_ID, opcode::SEND)?;
    let received = pair.passive_completion()?;
    check_success(&received, RECV_ID, opcode::RECV)?;
    check_equal("received length", received.byte_len as usize, size)?;
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
    let data = pattern(size, 2);
    let part = place(size);
    pair.active.write(part.offset, &data)?;
    let operation = Operation::Write { remote: pair.remote(part.offset), immediate };
    let written = pair.request(&Request { wr_id: SEND_ID, operation, part })?;
    check_success(&written, SEND_ID, opcode::WRITE)?;
    check_memory(pair.passive, part.offset, &data)
}

fn read(pair: &mut Pair<'_>, size: usize) -> Result<()> {
    let data = pattern(size, 3);
    let part = place(size);
    pair.passive.write(part.offset, &data)?;
    let operation = Operation::Read { remote: pair.remote(part.offset) };
    let read = pair.request(&Request { wr_id: SEND_ID, operation, part })?;
    check_success(&read, SEND_ID, opcode::READ)?;
    check_memory(pair.active, part.offset, &data)?;
    check_memory(pair.passive, part.offset, &data)
}
