//! MRA and REJ: not yet, and no (protocol section 6.2; IBTA volume 1, 12.6.6 and 12.6.7).

use super::fields::{Body, bytes_at, comm_ids, put, put_comm_ids};
use super::{PrivateData, RejectReason};
use crate::wire::bytes::be16;
use core::fmt;

/// Which message an MRA or a REJ answers; the codes of REJ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Answered {
    /// A REQ.
    Req = 0,
    /// A REP.
    Rep = 1,
    /// Neither; in an MRA a LAP.
    Other = 2,
    /// A code that the specification reserves.
    Reserved = 3,
}

/// Message receipt acknowledged: the answer takes its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mra {
    /// The sender's identifier of the connection.
    pub local_comm_id: u32,
    /// The receiver's.
    pub remote_comm_id: u32,
    /// What it answers.
    pub answered: Answered,
    /// How long the answer takes, an exponent of 5 bits: 4.096 us * 2^n.
    pub service_timeout: u8,
    /// What the application says.
    pub private_data: PrivateData<222>,
}

/// The connection is refused, or given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rej {
    /// The sender's identifier of the connection; 0 when it has none.
    pub local_comm_id: u32,
    /// The receiver's.
    pub remote_comm_id: u32,
    /// What it answers.
    pub answered: Answered,
    /// Why.
    pub reason: RejectReason,
    /// More about the reason.
    pub info: RejectInfo,
    /// What the application says.
    pub private_data: PrivateData<148>,
}

/// Additional reject information: up to 72 bytes that depend on the reason.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RejectInfo {
    /// As on the wire, 7 bits: more than 72 on the wire means 72.
    len: u8,
    bytes: [u8; 72],
}

impl RejectInfo {
    /// The information `info`; `None` when it is longer than 72 bytes.
    #[must_use]
    pub fn new(info: &[u8]) -> Option<Self> {
        let bytes = *PrivateData::new(info)?.as_bytes();
        Some(Self { len: info.len() as u8, bytes })
    }

    /// What is said.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len).min(self.bytes.len())]
    }
}

impl Default for RejectInfo {
    /// Nothing.
    fn default() -> Self {
        Self { len: 0, bytes: [0; 72] }
    }
}

impl fmt::Debug for RejectInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RejectInfo({:02x?})", self.as_bytes())
    }
}

impl Answered {
    const fn parse(bits: u8) -> Self {
        match bits {
            0 => Self::Req,
            1 => Self::Rep,
            2 => Self::Other,
            _ => Self::Reserved,
        }
    }
}

impl Mra {
    pub(super) fn parse(body: &Body) -> Self {
        let (local_comm_id, remote_comm_id) = comm_ids(body);
        let (answered, service_timeout) = (Answered::parse(body[8] >> 6), body[9] >> 3);
        let private_data = bytes_at(body, 10).into();
        Self { local_comm_id, remote_comm_id, answered, service_timeout, private_data }
    }

    pub(super) fn emit(&self, body: &mut Body) {
        put_comm_ids(body, self.local_comm_id, self.remote_comm_id);
        body[8] = (self.answered as u8) << 6;
        body[9] = self.service_timeout << 3;
        put(body, 10, self.private_data.as_bytes());
    }
}

impl Rej {
    pub(super) fn parse(body: &Body) -> Self {
        let (local_comm_id, remote_comm_id) = comm_ids(body);
        Self {
            local_comm_id,
            remote_comm_id,
            answered: Answered::parse(body[8] >> 6),
            reason: RejectReason::from_code(be16(body, 10)),
            info: RejectInfo { len: body[9] >> 1, bytes: bytes_at(body, 12) },
            private_data: bytes_at(body, 84).into(),
        }
    }

    pub(super) fn emit(&self, body: &mut Body) {
        put_comm_ids(body, self.local_comm_id, self.remote_comm_id);
        body[8] = (self.answered as u8) << 6;
        body[9] = self.info.len << 1;
        put(body, 10, &self.reason.code().to_be_bytes());
        put(body, 12, &self.info.bytes);
        put(body, 84, self.private_data.as_bytes());
    }
}
