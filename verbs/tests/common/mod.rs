//! What the tests share.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::time::Duration;

use uroce::testing::{Connected, LinkModel, connected_pair};
use uroce::{
    Access, AsyncEvent, Completion, CompletionQueue, Drive, MemoryRegion, QpBuilder, QpType, QueuePair,
    WcStatus,
};

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

/// Waits until `condition` holds, with both devices driven if they have to be.
pub(crate) fn eventually(pair: &(Connected, Connected), mut condition: impl FnMut() -> bool) {
    for _ in 0..1 << 24 {
        if condition() {
            return;
        }
        drive(pair);
    }
    panic!("it never came about; counters: {:?} and {:?}", pair.0.ctx.counters(), pair.1.ctx.counters());
}

/// Waits for an asynchronous event of `end`, which must be this one.
pub(crate) fn await_event(pair: &(Connected, Connected), end: &Connected, expected: AsyncEvent) {
    eventually(pair, || match end.ctx.async_event() {
        Some(event) => {
            assert_eq!(event, expected);
            true
        }
        None => false,
    });
}

/// Another queue pair at each end, of any connected type, connected to each other: `refine` says what is not usual.
pub(crate) fn connected(
    pair: &(Connected, Connected),
    types: (QpType, QpType),
    refine: impl for<'a> Fn(QpBuilder<'a>) -> QpBuilder<'a>,
) -> (QueuePair, QueuePair) {
    let make = |end: &Connected, qp_type| {
        let qp = end.pd.create_qp(qp_type, &end.cq, &end.cq).max_send_sge(4).max_recv_sge(4).access(ALL);
        refine(qp).build().expect("a queue pair")
    };
    let (left, right) = (make(&pair.0, types.0), make(&pair.1, types.1));
    let (ours, theirs) = (left.endpoint(), right.endpoint());
    let right = right.connect(ours).expect("connected");
    (left.connect(theirs).expect("connected"), right)
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
