//! What scenarios check.

use std::time::{Duration, Instant};

use crate::peer::{Completion, Part, Peer, Result, Setup, status};

use super::{LIMIT, MARGIN};

/// Where the memory that messages use begins in a region.
pub const FIRST_PLACE: usize = MARGIN;

/// Where a message of `length` bytes lies in a region: with a margin before and behind.
pub const fn place(length: usize) -> Part {
    Part { offset: FIRST_PLACE, length }
}

/// Bytes that differ from place to place, so that a misplaced piece shows.
pub fn pattern(length: usize, seed: u32) -> Vec<u8> {
    let step = |state: &mut u32| {
        *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some((*state >> 24) as u8)
    };
    std::iter::repeat_n((), length).scan(seed, |state, ()| step(state)).collect()
}

/// Checks that a peer holds exactly `data` at `offset`, and nothing but the initial fill around it.
///
/// # Errors
/// Names the first byte that differs.
pub fn check_memory(peer: &mut dyn Peer, offset: usize, data: &[u8]) -> Result<()> {
    let start = offset.saturating_sub(MARGIN);
    let part = Part { offset: start, length: offset - start + data.len() + MARGIN };
    let mut expected = vec![Setup::FILL; part.length];
    expected[offset - start..][..data.len()].copy_from_slice(data);
    let found = peer.read(part)?;
    match found.iter().zip(&expected).position(|(found, expected)| found != expected) {
        None if found.len() == expected.len() => Ok(()),
        None => Err(format!("{} returned {} bytes of {}", peer.name(), found.len(), expected.len()).into()),
        Some(place) => Err(difference(peer.name(), start + place, found[place], expected[place]).into()),
    }
}

/// The same for memory that changes without a completion: looks until it is right or the time is over.
///
/// # Errors
/// Names the first byte that still differs.
pub fn eventually_memory(peer: &mut dyn Peer, offset: usize, data: &[u8]) -> Result<()> {
    let limit = Instant::now() + LIMIT / 4;
    loop {
        match check_memory(peer, offset, data) {
            Err(_) if Instant::now() < limit => std::thread::sleep(Duration::from_millis(5)),
            result => return result,
        }
    }
}

/// Checks that a region made for messages of `length` bytes still holds what it started with.
///
/// # Errors
/// Names the first byte that differs.
pub fn untouched(peer: &mut dyn Peer, length: usize) -> Result<()> {
    check_memory(peer, FIRST_PLACE, &vec![Setup::FILL; length])
}

fn difference(peer: &str, place: usize, found: u8, expected: u8) -> String {
    format!("memory of {peer}: byte {place} is {found:#04x} instead of {expected:#04x}")
}

/// Checks that a completion succeeded, with the expected operation.
///
/// # Errors
/// Says what it is instead.
pub fn check_success(completion: &Completion, wr_id: u64, opcode: u32) -> Result<()> {
    check_status(completion, wr_id, status::SUCCESS)?;
    check_equal("completion opcode", completion.opcode, opcode)
}

/// Checks how a work request ended.
///
/// # Errors
/// Says what it is instead.
pub fn check_status(completion: &Completion, wr_id: u64, status: u32) -> Result<()> {
    check_equal("wr_id", completion.wr_id, wr_id)?;
    check_equal("completion status", completion.status, status)
}

/// Checks one value.
///
/// # Errors
/// Says which value, and what it is instead.
pub fn check_equal<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<()> {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{what} is {found:?} instead of {expected:?}").into())
    }
}
