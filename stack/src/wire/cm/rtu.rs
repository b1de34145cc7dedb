//! RTU: the connection is in use (protocol section 6.2; IBTA volume 1, 12.6.9).

use super::PrivateData;
use super::fields::{Body, bytes_at, comm_ids, put, put_comm_ids};

/// The answer to a REP: ready to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rtu {
    /// The sender's identifier of the connection.
    pub local_comm_id: u32,
    /// The receiver's.
    pub remote_comm_id: u32,
    /// What the application says.
    pub private_data: PrivateData<224>,
}

impl Rtu {
    pub(super) fn parse(body: &Body) -> Self {
        let (local_comm_id, remote_comm_id) = comm_ids(body);
        Self { local_comm_id, remote_comm_id, private_data: bytes_at(body, 8).into() }
    }

    pub(super) fn emit(&self, body: &mut Body) {
        put_comm_ids(body, self.local_comm_id, self.remote_comm_id);
        put(body, 8, self.private_data.as_bytes());
    }
}
