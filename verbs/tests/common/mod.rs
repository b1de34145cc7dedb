//! What the tests share.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::time::Duration;

use uroce::testing::{Connected, LinkModel, connected_pair};
use uroce::{Access, Completion, CompletionQueue, Drive, MemoryRegion, WcStatus};

/// Longer than anything here may take, on the slowest machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) const ALL: Access = Access::LOCAL_WRITE.union(Access::REMOTE);

/// A connection whose devices have threads.
pub(crate) fn threaded() -> (Connected, Connected) {
    connected_pair(LinkModel::default()).expect("a pair")
}

/// A connection whose devices are driven by the test.
pub(crate) fn inline() -> (Connected, Connected) {
    connected_pair(LinkModel { drive: Drive::Inline, ..LinkModel::default() }).expect("a pair")
}

/// Both kinds.
pub(crate) fn both_kinds() -> [(Connected, Connected); 2] {
    [threaded(), inline()]
}

/// The next completion of `cq`, with both devices driven if they have to be.
pub(crate) fn next(pair: &(Connected, Connected), cq: &CompletionQueue) -> Completion {
    let mut found = [Completion::default()];
    for _ in 0..1 << 24 {
        if cq.poll(&mut found) == 1 {
            return found[0];
        }
        drive(pair);
    }
    panic!("no completion came; counters: {:?} and {:?}", pair.0.ctx.counters(), pair.1.ctx.counters());
}

/// The next completion of `cq`, which must be a success.
pub(crate) fn succeed(pair: &(Connected, Connected), cq: &CompletionQueue) -> Completion {
    let completion = next(pair, cq);
    assert_eq!(completion.status, WcStatus::Success, "{completion:?}");
    completion
}

pub(crate) fn drive(pair: &(Connected, Connected)) {
    let left = pair.0.ctx.progress();
    let right = pair.1.ctx.progress();
    if left.frames + right.frames == 0 {
        std::thread::yield_now();
    }
}

pub(crate) fn region(end: &Connected, bytes: &[u8]) -> MemoryRegion {
    end.pd.alloc_mr_from(bytes, ALL).expect("a region")
}

/// Bytes that differ from place to place.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n * 31 + n / 251) as u8).collect()
}
