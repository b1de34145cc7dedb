//! SIDR: which queue pair serves datagrams (protocol section 6.2; IBTA volume 1, 12.11).

use super::fields::{Body, bytes_at, put, put24};
use super::{PrivateData, ServiceId};
use crate::wire::Qpn;
use crate::wire::bytes::{be16, be24, be32, be64};

/// The question which queue pair serves datagrams for a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SidrReq {
    /// The sender's identifier of the question.
    pub request_id: u32,
    /// Partition key.
    pub pkey: u16,
    /// What is asked for.
    pub service_id: ServiceId,
    /// What the application, and for its services `rdma_cm`, says.
    pub private_data: PrivateData<216>,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SidrRep {
    /// The identifier of the question.
    pub request_id: u32,
    /// Whether there is one.
    pub status: SidrStatus,
    /// How much of `info` is meant, in bytes.
    pub info_len: u8,
    /// Whose extensions are spoken of, 24 bits; 0 is nobody's.
    pub vendor_id: u32,
    /// The queue pair.
    pub qpn: Qpn,
    /// What was asked for.
    pub service_id: ServiceId,
    /// The Q_Key that lets datagrams in.
    pub qkey: u32,
    /// More about the status.
    pub info: PrivateData<72>,
    /// What the application says.
    pub private_data: PrivateData<136>,
}

/// The status of a SIDR_REP; the values of `ib_cm_sidr_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SidrStatus {
    /// The queue pair and the Q_Key are valid.
    Valid,
    /// Nobody listens.
    UnsupportedServiceId,
    /// The application said no.
    Rejected,
    /// No queue pair is left.
    NoQp,
    /// Ask elsewhere.
    Redirect,
    /// The class version is not supported.
    UnsupportedVersion,
    /// A code that the specification does not define.
    Undefined(u8),
}

impl SidrStatus {
    /// The status of a code.
    #[must_use]
    pub const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Valid,
            1 => Self::UnsupportedServiceId,
            2 => Self::Rejected,
            3 => Self::NoQp,
            4 => Self::Redirect,
            5 => Self::UnsupportedVersion,
            other => Self::Undefined(other),
        }
    }

    /// The code on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Valid => 0,
            Self::UnsupportedServiceId => 1,
            Self::Rejected => 2,
            Self::NoQp => 3,
            Self::Redirect => 4,
            Self::UnsupportedVersion => 5,
            Self::Undefined(code) => code,
        }
    }
}

impl SidrReq {
    pub(super) fn parse(body: &Body) -> Self {
        Self {
            request_id: be32(body, 0),
            pkey: be16(body, 4),
            service_id: ServiceId(be64(body, 8)),
            private_data: bytes_at(body, 16).into(),
        }
    }

    pub(super) fn emit(&self, body: &mut Body) {
        put(body, 0, &self.request_id.to_be_bytes());
        put(body, 4, &self.pkey.to_be_bytes());
        put(body, 8, &self.service_id.0.to_be_bytes());
        put(body, 16, self.private_data.as_bytes());
    }
}

impl SidrRep {
    pub(super) fn parse(body: &Body) -> Self {
        Self {
            request_id: be32(body, 0),
            status: SidrStatus::from_code(body[4]),
            info_len: body[5],
            vendor_id: u32::from_be_bytes([0, body[6], body[7], body[11]]),
            qpn: Qpn::new(be24(body, 8)),
            service_id: ServiceId(be64(body, 12)),
            qkey: be32(body, 20),
            info: bytes_at(body, 24).into(),
            private_data: bytes_at(body, 96).into(),
        }
    }

    pub(super) fn emit(&self, body: &mut Body) {
        put(body, 0, &self.request_id.to_be_bytes());
        let [_, high, middle, low] = self.vendor_id.to_be_bytes();
        put(body, 4, &[self.status.code(), self.info_len, high, middle]);
        put24(body, 8, self.qpn.get());
        body[11] = low;
        put(body, 12, &self.service_id.0.to_be_bytes());
        put(body, 20, &self.qkey.to_be_bytes());
        put(body, 24, self.info.as_bytes());
        put(body, 96, self.private_data.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_codes_round_trip() {
        for code in 0..=u8::MAX {
            assert_eq!(SidrStatus::from_code(code).code(), code);
        }
    }
}
