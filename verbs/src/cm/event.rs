//! Events of the connection manager.

use super::id::CmId;
use super::param::{ConnParam, UdParam};

/// What happened; the values of `rdma_cm_event_type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum CmEventType {
    /// [`CmId::resolve_addr`] is done.
    AddrResolved = 0,
    /// [`CmId::resolve_addr`] found no way to the peer.
    AddrError = 1,
    /// [`CmId::resolve_route`] is done.
    RouteResolved = 2,
    /// [`CmId::resolve_route`] failed.
    RouteError = 3,
    /// A peer asks for a connection, or for a queue pair for datagrams: the event's id is new.
    ConnectRequest = 4,
    /// The peer grants a connection of an id without a queue pair: bring yours to RTS, then [`CmId::establish`].
    ConnectResponse = 5,
    /// The connection could not be set up on this side.
    ConnectError = 6,
    /// The peer does not answer.
    Unreachable = 7,
    /// The peer refuses; the status is the reason.
    Rejected = 8,
    /// The connection is there.
    Established = 9,
    /// The connection has ended.
    Disconnected = 10,
    /// The device is gone.
    DeviceRemoval = 11,
    /// [`CmId::join_multicast`] is done.
    MulticastJoin = 12,
    /// [`CmId::join_multicast`] failed.
    MulticastError = 13,
    /// The address that the id is bound to has changed.
    AddrChange = 14,
    /// No packet of the connection is under way any more: its queue pair may be used again.
    TimewaitExit = 15,
}

impl CmEventType {
    /// The name that `rdma_event_str` gives it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AddrResolved => "RDMA_CM_EVENT_ADDR_RESOLVED",
            Self::AddrError => "RDMA_CM_EVENT_ADDR_ERROR",
            Self::RouteResolved => "RDMA_CM_EVENT_ROUTE_RESOLVED",
            Self::RouteError => "RDMA_CM_EVENT_ROUTE_ERROR",
            Self::ConnectRequest => "RDMA_CM_EVENT_CONNECT_REQUEST",
            Self::ConnectResponse => "RDMA_CM_EVENT_CONNECT_RESPONSE",
            Self::ConnectError => "RDMA_CM_EVENT_CONNECT_ERROR",
            Self::Unreachable => "RDMA_CM_EVENT_UNREACHABLE",
            Self::Rejected => "RDMA_CM_EVENT_REJECTED",
            Self::Established => "RDMA_CM_EVENT_ESTABLISHED",
            Self::Disconnected => "RDMA_CM_EVENT_DISCONNECTED",
            Self::DeviceRemoval => "RDMA_CM_EVENT_DEVICE_REMOVAL",
            Self::MulticastJoin => "RDMA_CM_EVENT_MULTICAST_JOIN",
            Self::MulticastError => "RDMA_CM_EVENT_MULTICAST_ERROR",
            Self::AddrChange => "RDMA_CM_EVENT_ADDR_CHANGE",
            Self::TimewaitExit => "RDMA_CM_EVENT_TIMEWAIT_EXIT",
        }
    }
}

impl std::fmt::Display for CmEventType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// An event of the connection manager (`rdma_cm_event`). Nothing has to be acknowledged.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CmEvent {
    /// Which id; a new one for a [`CmEventType::ConnectRequest`].
    pub id: CmId,
    /// The id that listens, of a request.
    pub listener: Option<CmId>,
    /// What happened.
    pub event: CmEventType,
    /// 0, or a negative `errno`, or of a rejection the reason (IBTA 12.6.7.2).
    pub status: i32,
    /// About the connection.
    pub conn: Option<ConnParam>,
    /// About the datagram service.
    pub ud: Option<UdParam>,
}

impl CmEvent {
    /// What the peer's application says with it.
    #[must_use]
    pub fn private_data(&self) -> &[u8] {
        let conn = self.conn.as_ref().map(|param| param.private_data.as_slice());
        let ud = || self.ud.as_ref().map(|param| param.private_data.as_slice());
        conn.or_else(ud).unwrap_or_default()
    }
}
