//! The end that serves: it prepares each case, and checks what arrived.

use std::io::{Read, Write};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uroce::{Completion, CompletionQueue, MemoryRegion, QueuePair, RecvWr};

use super::case::{Case, MOST, Operation};
use super::{client, pattern};
use crate::control::Control;
use crate::device::{Device, checked};
use crate::error::{Failure, Result};

/// How long the last completions may take after the client has seen its own.
const LATE: Duration = Duration::from_secs(5);

/// What the two ends say to each other.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Message {
    /// How to reach an end: its endpoint in text, and its memory.
    Hello { endpoint: String, addr: u64, len: u64, rkey: u32 },
    /// The client is about to do this.
    Case(Case),
    /// The server is ready for it.
    Ready,
    /// The client has done it.
    Check,
    /// So many messages were found right.
    Verified(u32),
    /// There is nothing more to do.
    Bye,
}

/// Serves one client until it is done.
pub(crate) fn serve<S: Read + Write>(ctx: &Device, mut control: Control<S>) -> Result<()> {
    let prepared = client::Prepared::new(ctx)?;
    let Message::Hello { endpoint, .. } = control.wait()? else { return Err(out_of_turn()) };
    let ours = prepared.hello();
    let end = prepared.connect(&endpoint)?;
    ctx.show(std::slice::from_ref(&end.qp));
    control.send(&ours)?;
    loop {
        match control.wait()? {
            Message::Case(case) if case.is_sane() => {
                prepare(&case, &end.memory, &end.qp)?;
                control.send(&Message::Ready)?;
                let Message::Check = control.wait()? else { return Err(out_of_turn()) };
                control.send(&Message::Verified(check(&case, &end.memory, &end.cq)?))?;
            }
            Message::Bye => return Ok(()),
            _ => return Err(out_of_turn()),
        }
    }
}

/// The peer is not the one that it should be.
pub(crate) fn out_of_turn() -> Failure {
    Failure::new("the other process of the demo said something out of turn: this is a bug")
}

fn prepare(case: &Case, memory: &MemoryRegion, qp: &QueuePair) -> Result<()> {
    let content = match case.operation {
        Operation::Read => pattern::all(case),
        _ => vec![0; case.slot(case.messages)],
    };
    memory.write_at(0, &content)?;
    if case.operation.is_received() {
        let receives: Vec<RecvWr> = (0..case.messages).map(|number| receive(case, memory, number)).collect();
        qp.post_recv(&receives)?;
    }
    Ok(())
}

fn receive(case: &Case, memory: &MemoryRegion, number: u32) -> RecvWr {
    let start = case.slot(number);
    match case.operation {
        // The bytes go where the client says.
        Operation::WriteImm => RecvWr::new(number.into(), []),
        _ => RecvWr::new(number.into(), memory.sge(start..start + case.size as usize)),
    }
}

/// How many messages are right.
fn check(case: &Case, memory: &MemoryRegion, cq: &CompletionQueue) -> Result<u32> {
    let announced = if case.operation.is_received() { completions(case, cq)? } else { case.messages };
    let intact = match case.operation {
        // The client checks what it read.
        Operation::Read => case.messages,
        Operation::CompareSwap => word_is(case, memory, client::swapped(case, case.messages))?,
        Operation::FetchAdd => word_is(case, memory, client::added(case, case.messages))?,
        _ => pattern::right(case, &memory.to_vec(..case.slot(case.messages))?),
    };
    Ok(announced.min(intact))
}

/// All messages changed one word: they are right if it is.
fn word_is(case: &Case, memory: &MemoryRegion, expected: u64) -> Result<u32> {
    Ok(if memory.load_u64(0)? == expected { case.messages } else { 0 })
}

/// How many receives completed as they should.
fn completions(case: &Case, cq: &CompletionQueue) -> Result<u32> {
    let mut right = 0;
    let mut seen = 0;
    let mut found = [Completion::default(); MOST as usize];
    while seen < case.messages {
        let count = cq.wait(&mut found, Some(LATE))?;
        if count == 0 {
            return Ok(right);
        }
        for completion in &found[..count] {
            right += u32::from(is_right(case, seen, checked(cq.context(), completion)?));
            seen += 1;
        }
    }
    Ok(right)
}

fn is_right(case: &Case, number: u32, completion: Completion) -> bool {
    completion.wr_id == u64::from(number)
        && completion.byte_len == case.size
        && completion.immediate == case.immediate(number)
}
