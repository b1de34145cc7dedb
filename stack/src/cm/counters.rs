//! What happened, counted: every message, every repetition, every silent drop.

use crate::counters::counters;
use crate::wire::MadRefused;
use crate::wire::cm::CmKind;

counters! {
    /// A counter of a connection manager.
    ///
    /// Sent, received, repeated and duplicate messages are counted apart by kind, as Linux does.
    enum CmCounter;
    /// The values of every [`CmCounter`]; they start at 0 and wrap after 2^64.
    struct CmCounters;
    /// REQs sent.
    TxReq = "cm_tx_req",
    /// MRAs sent.
    TxMra = "cm_tx_mra",
    /// REJs sent.
    TxRej = "cm_tx_rej",
    /// REPs sent.
    TxRep = "cm_tx_rep",
    /// RTUs sent.
    TxRtu = "cm_tx_rtu",
    /// DREQs sent.
    TxDreq = "cm_tx_dreq",
    /// DREPs sent.
    TxDrep = "cm_tx_drep",
    /// SIDR_REQs sent.
    TxSidrReq = "cm_tx_sidr_req",
    /// SIDR_REPs sent.
    TxSidrRep = "cm_tx_sidr_rep",
    /// REQs received.
    RxReq = "cm_rx_req",
    /// MRAs received.
    RxMra = "cm_rx_mra",
    /// REJs received.
    RxRej = "cm_rx_rej",
    /// REPs received.
    RxRep = "cm_rx_rep",
    /// RTUs received.
    RxRtu = "cm_rx_rtu",
    /// DREQs received.
    RxDreq = "cm_rx_dreq",
    /// DREPs received.
    RxDrep = "cm_rx_drep",
    /// SIDR_REQs received.
    RxSidrReq = "cm_rx_sidr_req",
    /// SIDR_REPs received.
    RxSidrRep = "cm_rx_sidr_rep",
    /// Messages sent again because no answer came.
    Retries = "cm_tx_retries",
    /// Messages whose retries ran out.
    RetriesExceeded = "cm_retries_exceeded",
    /// Messages received that said what was known.
    Duplicates = "cm_rx_duplicates",
    /// Messages that do not fit the state of their connection.
    WrongState = "cm_rx_wrong_state",
    /// Messages about a connection that does not exist, or not with this peer.
    UnknownId = "cm_rx_unknown_id",
    /// Datagrams that do not come from queue pair 1, or whose REQ names another sender.
    WrongSource = "cm_rx_wrong_source",
    /// DREQs that name another queue pair than the connection's.
    WrongQpn = "cm_rx_wrong_qpn",
    /// Datagrams of a wrong length.
    BadLength = "cm_rx_bad_length",
    /// Datagrams of another base version.
    BadBaseVersion = "cm_rx_bad_base_version",
    /// Datagrams of another management class.
    BadClass = "cm_rx_bad_class",
    /// Datagrams of another class version.
    BadClassVersion = "cm_rx_bad_class_version",
    /// Datagrams of another method than Send.
    BadMethod = "cm_rx_bad_method",
    /// Datagrams with an attribute that is not connection management's.
    BadAttribute = "cm_rx_bad_attribute",
    /// LAPs and APRs, which are not processed over RoCE.
    AlternatePath = "cm_rx_alternate_path",
    /// Requests that named a service nobody listens to.
    NoListener = "cm_rx_no_listener",
    /// Requests refused because of what they ask for.
    BadRequest = "cm_rx_bad_request",
    /// Requests that met an older connection of their queue pair.
    StaleRequests = "cm_rx_stale",
    /// Connections begun by peers that gave way to newer ones.
    HalfOpenEvicted = "cm_half_open_evicted",
    /// Requests refused because no connection is left.
    NoRoom = "cm_no_room",
    /// Datagrams that found the outbox full.
    OutboxFull = "cm_tx_outbox_full",
    /// Events that found their queue full.
    EventsLost = "cm_events_lost",
}

impl CmCounter {
    /// Messages of a kind that were sent.
    #[must_use]
    pub const fn sent(kind: CmKind) -> Self {
        match kind {
            CmKind::Req => Self::TxReq,
            CmKind::Mra => Self::TxMra,
            CmKind::Rej => Self::TxRej,
            CmKind::Rep => Self::TxRep,
            CmKind::Rtu => Self::TxRtu,
            CmKind::Dreq => Self::TxDreq,
            CmKind::Drep => Self::TxDrep,
            CmKind::SidrReq => Self::TxSidrReq,
            CmKind::SidrRep => Self::TxSidrRep,
        }
    }

    /// Messages of a kind that were received.
    #[must_use]
    pub const fn received(kind: CmKind) -> Self {
        match kind {
            CmKind::Req => Self::RxReq,
            CmKind::Mra => Self::RxMra,
            CmKind::Rej => Self::RxRej,
            CmKind::Rep => Self::RxRep,
            CmKind::Rtu => Self::RxRtu,
            CmKind::Dreq => Self::RxDreq,
            CmKind::Drep => Self::RxDrep,
            CmKind::SidrReq => Self::RxSidrReq,
            CmKind::SidrRep => Self::RxSidrRep,
        }
    }

    /// Datagrams that are refused for a reason.
    #[must_use]
    pub const fn refused(reason: MadRefused) -> Self {
        match reason {
            MadRefused::Length => Self::BadLength,
            MadRefused::BaseVersion => Self::BadBaseVersion,
            MadRefused::Class => Self::BadClass,
            MadRefused::ClassVersion => Self::BadClassVersion,
            MadRefused::Method => Self::BadMethod,
            MadRefused::AlternatePath => Self::AlternatePath,
            MadRefused::Attribute => Self::BadAttribute,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for (index, counter) in CmCounter::ALL.iter().enumerate() {
            assert!(CmCounter::ALL[..index].iter().all(|other| other.name() != counter.name()));
        }
    }

    #[test]
    fn each_kind_counts_for_itself() {
        let mut counters = CmCounters::default();
        for kind in CmKind::ALL {
            counters.add(CmCounter::sent(*kind));
            counters.add(CmCounter::received(*kind));
        }
        assert!(counters.iter().take(2 * CmKind::ALL.len()).all(|(_, value)| value == 1));
        assert_eq!(counters.iter().map(|(_, value)| value).sum::<u64>(), 18);
    }
}
