//! Receives.

use super::sge::SgeList;

/// A receive: room for one incoming SEND, or for the immediate of one RDMA WRITE.
#[derive(Clone, Debug)]
pub struct RecvWr {
    pub(crate) wr_id: u64,
    pub(crate) sges: SgeList,
}

impl RecvWr {
    /// A receive into these entries, filled one after the other. None at all will do for messages without
    /// data.
    #[must_use]
    pub fn new(wr_id: u64, sges: impl Into<SgeList>) -> Self {
        Self { wr_id, sges: sges.into() }
    }
}
