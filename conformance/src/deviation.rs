//! Where rdma_rxe is known to differ from the specification. A check that meets one expects exactly this of rdma_rxe and
//! the specified behaviour of everybody else, so it fails when either changes. `docs/verbs.md` explains each.

/// One known difference.
#[derive(Debug, PartialEq, Eq)]
pub struct Deviation {
    /// Its number in `docs/verbs.md`.
    pub number: u8,
    /// What rdma_rxe does instead.
    pub words: &'static str,
}

impl Deviation {
    const fn new(number: u8, words: &'static str) -> Self {
        Self { number, words }
    }
}

/// FLUSH: IBTA annex A19 sums the packet once, as every other.
pub const FLUSH_ICRC: Deviation = Deviation::new(1, "the ICRC of a FLUSH covers its headers twice");
/// A message longer than its receive: NAK invalid request, local length error.
pub const SHORT_RECEIVE: Deviation =
    Deviation::new(3, "SEND longer than the receive: NAK operational error, local QP operation error");
/// A remote invalidate of a key that is none: NAK operational error.
pub const BAD_INVALIDATE: Deviation =
    Deviation::new(15, "invalidate of a bad key: acknowledged, and the sender sees success");
/// Asynchronous events of the responder.
pub const NO_EVENTS: Deviation = Deviation::new(16, "no event for a request that was refused");
/// A datagram longer than the path MTU: local length error.
pub const LONG_DATAGRAM: Deviation =
    Deviation::new(24, "a datagram longer than the MTU completes and never leaves");
/// Flags of a completion.
pub const INVALIDATE_FLAG: Deviation =
    Deviation::new(36, "the flag of an invalidated key is the kernel's value 4, not 8");
/// A Q_Key with bit 31 set in a work request: that of the queue pair is sent instead.
pub const CONTROLLED_QKEY: Deviation =
    Deviation::new(37, "a Q_Key with bit 31 set is sent as it is, not the queue pair's own");
/// A request that cannot be carried out locally: local protection error, local QP operation error, bind error.
pub const LOCAL_FAILURE: Deviation =
    Deviation::new(38, "a request that fails before anything is sent completes as flushed");
/// A receive whose own memory is wrong: local protection error.
pub const BAD_RECEIVE: Deviation =
    Deviation::new(39, "a receive with a bad key ends as local QP operation error");
/// An atomic on a word that is not aligned: NAK invalid request.
pub const MISALIGNED: Deviation = Deviation::new(40, "a misaligned CMP_SWAP or FETCH_ADD cannot be posted");
/// A window shows what was bound and nothing else: NAK access error outside.
pub const WINDOW_RANGE: Deviation =
    Deviation::new(41, "a window reaches as far as its region, whatever was bound");
/// SQD to RTS: what was posted meanwhile starts.
pub const SQD_RESUME: Deviation =
    Deviation::new(42, "what was posted in SQD starts only with the next request");
/// SQD: drained when what was started has completed.
pub const SQD_WAITING: Deviation =
    Deviation::new(43, "a message that waits for a receive is drained, and goes on after SQD only");
/// The header that a datagram's receive begins with is as it was on the wire.
pub const LOOPBACK_CHECKSUM: Deviation =
    Deviation::new(44, "the IPv4 checksum of a datagram from the same device is not filled in");
/// A message of an unreliable connection longer than its receive: dropped, the receive waits.
pub const LONG_UC_MESSAGE: Deviation =
    Deviation::new(45, "a UC message longer than its receive ends the queue pair");

/// All of them.
pub const ALL: &[&Deviation] = &[
    &FLUSH_ICRC,
    &SHORT_RECEIVE,
    &BAD_INVALIDATE,
    &NO_EVENTS,
    &LONG_DATAGRAM,
    &INVALIDATE_FLAG,
    &CONTROLLED_QKEY,
    &LOCAL_FAILURE,
    &BAD_RECEIVE,
    &MISALIGNED,
    &WINDOW_RANGE,
    &SQD_RESUME,
    &SQD_WAITING,
    &LOOPBACK_CHECKSUM,
    &LONG_UC_MESSAGE,
];
