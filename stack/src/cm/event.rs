//! What the application has to know: the events of `rdma_cm`, by the names of IBTA.

use core::net::IpAddr;

use super::params::AcceptParams;
use super::settings::QpSettings;
use super::terms::{ReplyTerms, RequestTerms};
use super::{ConnId, ListenId};
use crate::wire::Qpn;
use crate::wire::cm::{Answered, IpCmHeader, PrivateData, RejectInfo, RejectReason, ServiceId, SidrStatus};

/// Something that happened to a connection.
///
/// After [`Rejected`](Self::Rejected), [`Unreachable`](Self::Unreachable), [`TimewaitExit`](Self::TimewaitExit) and
/// [`SidrReply`](Self::SidrReply) the identifier names nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CmEvent {
    /// A peer asks for a connection: answer with `accept` or `reject`.
    ConnectRequest(ConnectRequest),
    /// The peer grants the connection: bring the queue pair to RTS, then call `establish`.
    Reply(Reply),
    /// The peer uses the connection.
    Established {
        /// The connection.
        id: ConnId,
        /// What the RTU says; `None` when data came before it.
        private_data: Option<PrivateData<224>>,
    },
    /// The peer refuses the connection, or gives it up.
    Rejected {
        /// What was the connection.
        id: ConnId,
        /// Which of our messages it answers.
        answered: Answered,
        /// Why.
        reason: RejectReason,
        /// More about the reason.
        info: RejectInfo,
        /// What the peer's application says.
        private_data: PrivateData<148>,
    },
    /// The connection came to nothing.
    Unreachable {
        /// What was the connection.
        id: ConnId,
        /// Why.
        reason: Unreachable,
    },
    /// The peer takes its time; our message is not repeated before that.
    MraReceived {
        /// The connection.
        id: ConnId,
        /// How long, an exponent: 4.096 us * 2^n.
        service_timeout: u8,
        /// What the peer's application says.
        private_data: PrivateData<222>,
    },
    /// The peer ends the connection: stop using the queue pair, then answer with `disconnect`.
    DisconnectRequest {
        /// The connection.
        id: ConnId,
        /// What the peer's application says.
        private_data: PrivateData<220>,
    },
    /// The connection that we ended has ended.
    Disconnected {
        /// The connection.
        id: ConnId,
        /// What the peer's application says; `None` when the peer said nothing, but asked for the end itself, rejected
        /// the connection, or did not answer.
        private_data: Option<PrivateData<224>>,
        /// Whether every repetition of the request remained without answer.
        timed_out: bool,
    },
    /// No packet of the connection can be under way any more: the queue pair number may be used again.
    TimewaitExit {
        /// What was the connection.
        id: ConnId,
    },
    /// A peer asks for a queue pair for datagrams: answer with `sidr_accept` or `sidr_reject`.
    SidrRequest(SidrRequest),
    /// The answer to our question after a queue pair for datagrams.
    SidrReply {
        /// What was the question.
        id: ConnId,
        /// Whether there is one.
        status: SidrStatus,
        /// The queue pair.
        qpn: Qpn,
        /// The Q_Key that lets datagrams in.
        qkey: u32,
        /// More about the status.
        info: PrivateData<72>,
        /// What the peer's application says.
        private_data: PrivateData<136>,
    },
}

/// Why a connection came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unreachable {
    /// Nobody answered our request.
    NoReply,
    /// Nobody confirmed our reply.
    NoRtu,
    /// It gave way to a newer request, there being too many that were not established.
    Evicted,
    /// The peer has forgotten it, and asks for another with the same queue pair.
    Superseded,
}

/// A peer's request for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectRequest {
    /// Who was asked.
    pub listener: ListenId,
    /// The connection, if it becomes one.
    pub id: ConnId,
    /// What was asked for.
    pub service_id: ServiceId,
    /// Our address.
    pub local: IpAddr,
    /// The peer's.
    pub remote: IpAddr,
    /// The peer's adapter.
    pub remote_ca_guid: u64,
    /// The peer in terms of IP, for services of `rdma_cm`.
    pub ip: Option<IpCmHeader>,
    /// What it says about the connection.
    pub terms: RequestTerms,
    pub(super) data: PrivateData<92>,
}

/// A peer's grant of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The connection.
    pub id: ConnId,
    /// What it says about the connection.
    pub terms: ReplyTerms,
    /// What to set our queue pair to.
    pub settings: QpSettings,
    /// What the peer's application says.
    pub private_data: PrivateData<196>,
}

/// A peer's question after a queue pair for datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SidrRequest {
    /// Who was asked.
    pub listener: ListenId,
    /// The question.
    pub id: ConnId,
    /// What was asked for.
    pub service_id: ServiceId,
    /// Our address.
    pub local: IpAddr,
    /// The peer's.
    pub remote: IpAddr,
    /// The peer in terms of IP, for services of `rdma_cm`.
    pub ip: Option<IpCmHeader>,
    pub(super) data: PrivateData<216>,
}

impl ConnectRequest {
    /// What the peer's application says: 56 bytes behind an IP CM header, 92 without.
    #[must_use]
    pub fn private_data(&self) -> &[u8] {
        behind_header(self.ip, self.data.as_bytes())
    }

    /// What to set our queue pair to, before accepting with `accept`.
    #[must_use]
    pub fn settings(&self, accept: &AcceptParams<'_>) -> QpSettings {
        QpSettings::passive(self.local, self.remote, &self.terms, &accept.terms(0))
    }
}

impl SidrRequest {
    /// What the peer's application says: 180 bytes behind an IP CM header, 216 without.
    #[must_use]
    pub fn private_data(&self) -> &[u8] {
        behind_header(self.ip, self.data.as_bytes())
    }
}

fn behind_header(header: Option<IpCmHeader>, data: &[u8]) -> &[u8] {
    &data[header.map_or(0, |_| IpCmHeader::LEN)..]
}

impl CmEvent {
    /// The connection or question that the event is about.
    #[must_use]
    pub const fn id(&self) -> ConnId {
        match *self {
            Self::ConnectRequest(ConnectRequest { id, .. })
            | Self::SidrRequest(SidrRequest { id, .. })
            | Self::Reply(Reply { id, .. })
            | Self::Established { id, .. }
            | Self::Rejected { id, .. }
            | Self::Unreachable { id, .. }
            | Self::MraReceived { id, .. }
            | Self::DisconnectRequest { id, .. }
            | Self::Disconnected { id, .. }
            | Self::TimewaitExit { id }
            | Self::SidrReply { id, .. } => id,
        }
    }

    /// Whether it is the first event of its connection.
    pub(super) const fn is_request(&self) -> bool {
        matches!(self, Self::ConnectRequest(_) | Self::SidrRequest(_))
    }
}
