//! COMPARE SWAP, FETCH ADD and ATOMIC WRITE: what comes back and what stays.

use super::common::SEND_ID;
use crate::peer::{Operation, Part, Request, Result, opcode};
use crate::scenario::{Pair, Routes, Scenario, check_equal, check_memory, check_success, place};

/// All eight bytes differ, so that a wrong byte order shows.
const BEFORE: u64 = 0x0102_0304_a5b6_c7d8;
const OTHER: u64 = 0xf1e2_d3c4_1020_3040;
const WORD: usize = size_of::<u64>();

type Run = fn(&mut Pair<'_>) -> Result<()>;

/// All of them.
pub(super) fn all() -> Vec<Scenario> {
    let kinds: [(&str, Run); 5] = [
        ("cmp-swap/equal", |pair| swap(pair, BEFORE, OTHER)),
        ("cmp-swap/different", |pair| swap(pair, BEFORE ^ 1, BEFORE)),
        ("fetch-add/1", |pair| add(pair, 1)),
        ("fetch-add/wrap", |pair| add(pair, u64::MAX - 5)),
        ("atomic-write/8", atomic_write),
    ];
    kinds.map(|(name, run)| Scenario::message(name, WORD, run).over(Routes::Every)).into()
}

fn swap(pair: &mut Pair<'_>, compare: u64, after: u64) -> Result<()> {
    let operation = Operation::CompareSwap { remote: pair.remote(word().offset), compare, swap: OTHER };
    atomic(pair, operation, opcode::COMPARE_SWAP, after)
}

fn add(pair: &mut Pair<'_>, add: u64) -> Result<()> {
    let operation = Operation::FetchAdd { remote: pair.remote(word().offset), add };
    atomic(pair, operation, opcode::FETCH_ADD, BEFORE.wrapping_add(add))
}

/// Carries out one atomic: the word held before must come back, the word after must stay.
fn atomic(pair: &mut Pair<'_>, operation: Operation, opcode: u32, after: u64) -> Result<()> {
    let part = word();
    pair.passive.write(part.offset, &BEFORE.to_ne_bytes())?;
    let done = pair.request(&Request::new(SEND_ID, operation, part))?;
    check_success(&done, SEND_ID, opcode)?;
    check_equal("length read", done.byte_len as usize, WORD)?;
    check_memory(pair.active, part.offset, &BEFORE.to_ne_bytes())?;
    check_memory(pair.passive, part.offset, &after.to_ne_bytes())
}

/// The bytes of the request must be those of the word, in their order.
fn atomic_write(pair: &mut Pair<'_>) -> Result<()> {
    let (part, value) = (word(), OTHER.to_be_bytes());
    let operation = Operation::AtomicWrite { remote: pair.remote(part.offset), value };
    check_success(&pair.request(&Request::new(SEND_ID, operation, part))?, SEND_ID, opcode::ATOMIC_WRITE)?;
    check_memory(pair.passive, part.offset, &value)
}

fn word() -> Part {
    place(WORD)
}
