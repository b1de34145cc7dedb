//! DREQ and DREP: the connection ends (protocol section 6.2; IBTA volume 1, 12.6.10 and 12.6.11).

use super::PrivateData;
use super::fields::{Body, bytes_at, comm_ids, put, put_comm_ids, put24};
use crate::wire::Qpn;
use crate::wire::bytes::be24;

/// The request to end a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dreq {
    /// The sender's identifier of the connection.
    pub local_comm_id: u32,
    /// The receiver's.
    pub remote_comm_id: u32,
    /// The *receiver's* queue pair.
    pub remote_qpn: Qpn,
    /// What the application says.
    pub private_data: PrivateData<220>,
}

/// The answer to a DREQ: it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drep {
    /// The sender's identifier of the connection.
    pub local_comm_id: u32,
    /// The receiver's.
    pub remote_comm_id: u32,
    /// What the application says.
    pub private_data: PrivateData<224>,
}

impl Dreq {
    pub(super) fn parse(body: &Body) -> Self {
        let (local_comm_id, remote_comm_id) = comm_ids(body);
        let remote_qpn = Qpn::new(be24(body, 8));
        Self { local_comm_id, remote_comm_id, remote_qpn, private_data: bytes_at(body, 12).into() }
    }

    pub(super) fn emit(&self, body: &mut Body) {
        put_comm_ids(body, self.local_comm_id, self.remote_comm_id);
        put24(body, 8, self.remote_qpn.get());
        put(body, 12, self.private_data.as_bytes());
    }
}

impl Drep {
    pub(super) fn parse(body: &Body) -> Self {
        let (local_comm_id, remote_comm_id) = comm_ids(body);
        Self { local_comm_id, remote_comm_id, private_data: bytes_at(body, 8).into() }
    }

    pub(super) fn emit(&self, body: &mut Body) {
        put_comm_ids(body, self.local_comm_id, self.remote_comm_id);
        put(body, 8, self.private_data.as_bytes());
    }
}
