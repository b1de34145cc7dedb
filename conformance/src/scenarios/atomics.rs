//! COMPARE SWAP and FETCH ADD: what comes back and what stays.

use crate::peer::{Operation, Part, Request, Result, opcode};
use crate::scenario::{Demands, Pair, Scenario, check_equal, check_memory, check_success, place};

const ID: u64 = 0xa70_0001;
/// All eight bytes differ, so that a wrong byte order shows.
const BEFORE: u64 = 0x0102_0304_a5b6_c7d8;
const OTHER: u64 = 0xf1e2_d3c4_1020_3040;
const WORD: usize = size_of::<u64>();

type Run = fn(&mut Pair<'_>) -> Result<()>;

/// All of them.
pub(super) fn all() -> Vec<Scenario> {
    let kinds: [(&str, Run); 4] = [
        ("cmp-swap/equal", swap_equal),
        ("cmp-swap/different", swap_different),
        ("fetch-add/1", add_one),
        ("fetch-add/wrap", add_wrapping),
    ];
    kinds.into_iter().map(|(name, run)| scenario(name, run)).collect()
}

fn scenario(name: &str, run: Run) -> Scenario {
    Scenario { name: name.to_owned(), demands: Demands::message(WORD), run: Box::new(run) }
}

fn swap_equal(pair: &mut Pair<'_>) -> Result<()> {
    swap(pair, BEFORE, OTHER)
}

fn swap_different(pair: &mut Pair<'_>) -> Result<()> {
    swap(pair, BEFORE ^ 1, BEFORE)
}

fn add_one(pair: &mut Pair<'_>) -> Result<()> {
    add(pair, 1)
}

fn add_wrapping(pair: &mut Pair<'_>) -> Result<()> {
    add(pair, u64::MAX - 5)
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
    let done = pair.request(&Request { wr_id: ID, operation, part })?;
    check_success(&done, ID, opcode)?;
    check_equal("length read", done.byte_len as usize, WORD)?;
    check_memory(pair.active, part.offset, &BEFORE.to_ne_bytes())?;
    check_memory(pair.passive, part.offset, &after.to_ne_bytes())
}

fn word() -> Part {
    place(WORD)
}
