//! Ids: one end of a connection, a listener, or one end of a datagram service.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use uroce_stack::QpState;
use uroce_stack::cm::{
    AcceptParams, ConnectParams, ConnectRequest, ListenParams, Route, SidrParams, SidrRequest,
};
use uroce_stack::wire::cm::{PortSpace, RejectInfo, RejectReason, ServiceId, SidrStatus};
use uroce_stack::wire::{MacAddr, Qpn};

use super::channel::EventChannel;
use super::event::CmEventType;
use super::param::{ConnParam, UDP_QKEY};
use super::resolve;
use super::shared::{IdShared, News, Request, Role};
use crate::context::Context;
use crate::driver::lock;
use crate::error::Error;
use crate::qp::{AddressVector, PreparedQueuePair, QpAttr, QueuePair};
use crate::{Gid, QpType};

/// One end of a connection or of a datagram service, or a listener (`rdma_cm_id`).
///
/// A cheap handle: clones name the same id. When the last one goes, the id ends as if it were destroyed: a listener
/// stops listening, a connection is closed, its pending events are forgotten.
#[derive(Clone)]
pub struct CmId(Arc<Handle>);

/// The application's side of an id.
pub(crate) struct Handle {
    ctx: Context,
    shared: Arc<IdShared>,
    qp: Mutex<Option<Arc<QueuePair>>>,
}

impl CmId {
    /// A new id, whose events arrive on `channel` (`rdma_create_id`). [`PortSpace::Tcp`] is for connections,
    /// [`PortSpace::Udp`] for datagrams.
    #[must_use]
    pub fn new(channel: &EventChannel, port_space: PortSpace) -> Self {
        Self::over(channel, IdShared::new(port_space, Some(Arc::clone(channel.queue()))))
    }

    /// The handle of an id that a peer's request has made.
    pub(super) fn adopt(channel: &EventChannel, shared: Arc<IdShared>) -> Self {
        Self::over(channel, shared)
    }

    /// The handle that the application has, if it still has one.
    pub(super) fn existing(shared: &Arc<IdShared>) -> Option<Self> {
        lock(&shared.state).handle.upgrade().map(Self)
    }

    fn over(channel: &EventChannel, shared: Arc<IdShared>) -> Self {
        let ctx = channel.context().clone();
        let handle = Arc::new(Handle { ctx, shared, qp: Mutex::default() });
        lock(&handle.shared.state).handle = Arc::downgrade(&handle);
        Self(handle)
    }

    /// Which kind of service it is for.
    #[must_use]
    pub fn port_space(&self) -> PortSpace {
        self.0.shared.port_space
    }

    /// Our address and port, once bound or resolved.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        lock(&self.0.shared.state).local
    }

    /// The peer's address and port, once known.
    #[must_use]
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        lock(&self.0.shared.state).remote
    }

    /// The device it is bound to.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.ctx
    }

    /// Its queue pair, if it was given one.
    #[must_use]
    pub fn qp(&self) -> Option<Arc<QueuePair>> {
        lock(&self.0.qp).clone()
    }

    /// Binds it to an address of the device, or with an unspecified one to all, and to a port, or with port 0 to any free
    /// one (`rdma_bind_addr`).
    ///
    /// # Errors
    /// [`Error::NoSuchAddress`] when the device does not have the address, [`Error::PortInUse`] when another id has the
    /// port, [`Error::CmState`] when the id is bound already.
    pub fn bind_addr(&self, local: SocketAddr) -> Result<(), Error> {
        if self.local_addr().is_some() {
            return Err(Error::CmState("the id is bound already: make another one"));
        }
        self.check_local(local.ip())?;
        let space = self.port_space();
        let port =
            self.0.ctx.with_connection_manager(|service, _, _| service.take_port(space, local.port()))?;
        lock(&self.0.shared.state).local = Some(SocketAddr::new(local.ip(), port));
        Ok(())
    }

    /// Starts to find the way to `remote`, from `local` or from the address that fits
    /// (`rdma_resolve_addr`): ends in [`CmEventType::AddrResolved`] or [`CmEventType::AddrError`].
    ///
    /// # Errors
    /// As [`bind_addr`](Self::bind_addr), and [`Error::CmState`] when it was called before.
    pub fn resolve_addr(&self, local: Option<SocketAddr>, remote: SocketAddr) -> Result<(), Error> {
        if self.peer_addr().is_some() {
            return Err(Error::CmState("the id has a peer already: make another one"));
        }
        if let Some(local) = local {
            self.bind_addr(local)?;
        } else if self.local_addr().is_none() {
            self.bind_addr(SocketAddr::new(self.source_for(remote.ip()), 0))?;
        }
        let local = self.settle_source(remote.ip());
        lock(&self.0.shared.state).remote = Some(remote);
        resolve::start(&self.0.ctx, &self.0.shared, local, remote)
    }

    /// Finds the path, which over Ethernet follows from the address (`rdma_resolve_route`): ends in
    /// [`CmEventType::RouteResolved`].
    ///
    /// # Errors
    /// [`Error::CmState`] when no address was resolved.
    pub fn resolve_route(&self) -> Result<(), Error> {
        if self.peer_addr().is_none() {
            return Err(Error::CmState("resolve an address first, then the route to it"));
        }
        self.0.shared.raise(News::new(CmEventType::RouteResolved, 0));
        Ok(())
    }

    /// Gives it a queue pair, which the connection manager brings to RTS (`rdma_create_qp`). One for datagrams goes to
    /// RTS at once, with Q_Key [`UDP_QKEY`].
    ///
    /// # Errors
    /// [`Error::CmState`] when it has one or the kind does not fit, [`Error::Modify`] when it cannot be brought up.
    pub fn create_qp(&self, prepared: PreparedQueuePair) -> Result<Arc<QueuePair>, Error> {
        let mut place = lock(&self.0.qp);
        if place.is_some() {
            return Err(Error::CmState("the id has a queue pair already"));
        }
        let is_datagram = prepared.qp_type() == QpType::Ud;
        if is_datagram != self.0.shared.is_datagram() {
            return Err(Error::CmState(
                "connections need an RC or UC queue pair, datagram services one of UD",
            ));
        }
        let qp = if is_datagram { prepared.activate(UDP_QKEY)? } else { prepared.into_queue_pair() };
        let qp = Arc::new(qp);
        lock(&self.0.shared.state).qpn = Some(qp.qpn());
        *place = Some(Arc::clone(&qp));
        Ok(qp)
    }

    /// Takes its queue pair back (`rdma_destroy_qp` destroys it when the last handle goes).
    #[must_use]
    pub fn take_qp(&self) -> Option<Arc<QueuePair>> {
        lock(&self.0.shared.state).qpn = None;
        lock(&self.0.qp).take()
    }

    /// Waits for peers; `backlog` requests may wait for an answer, with 0 as many as the device allows (`rdma_listen`).
    /// Each arrives as a [`CmEventType::ConnectRequest`] with an id of its own.
    ///
    /// # Errors
    /// [`Error::Cm`] when somebody listens there already.
    pub fn listen(&self, backlog: u32) -> Result<(), Error> {
        if self.local_addr().is_none() {
            self.bind_addr(SocketAddr::new(IpAddr::from([0, 0, 0, 0]), 0))?;
        }
        let local = self.local_addr().ok_or(Error::CmState("bind the id first"))?;
        let service_id = ServiceId::new(self.port_space(), local.port());
        let qp_type = if self.0.shared.is_datagram() { QpType::Ud } else { QpType::Rc };
        let params = ListenParams {
            address: Some(local.ip()).filter(|address| !address.is_unspecified()),
            backlog: Some(backlog).filter(|backlog| *backlog != 0),
            ..ListenParams::new(service_id, qp_type)
        };
        self.0.ctx.with_connection_manager(|service, _, _| service.listen(&self.0.shared, &params))
    }

    /// Asks the peer for the connection, or for its queue pair for datagrams (`rdma_connect`): ends in
    /// [`CmEventType::Established`], [`CmEventType::Rejected`], [`CmEventType::Unreachable`] or, without a queue pair, in
    /// [`CmEventType::ConnectResponse`].
    ///
    /// # Errors
    /// [`Error::Cm`] when a value is out of range, or private data too long.
    pub fn connect(&self, param: &ConnParam) -> Result<(), Error> {
        let (local, remote) = self.ends()?;
        let route = Route::new(local.ip(), remote.ip());
        let service_id = ServiceId::new(self.port_space(), remote.port());
        if self.0.shared.is_datagram() {
            let private_data = &param.private_data;
            let params = SidrParams { route, service_id, source_port: local.port(), private_data };
            let shared = &self.0.shared;
            return self
                .0
                .ctx
                .with_connection_manager(|cm, engine, now| cm.ask(engine, now, shared, &params));
        }
        let qpn = self.qpn_or(param)?;
        self.0.ctx.with_connection_manager(|service, engine, now| {
            let params = ConnectParams {
                route,
                service_id,
                source_port: local.port(),
                qp_type: self.qp_type(),
                qpn,
                rq_psn: service.random_psn(),
                path_mtu: self.0.ctx.active_mtu(),
                responder_resources: param.responder_resources,
                initiator_depth: param.initiator_depth,
                retry_count: param.retry_count,
                rnr_retry_count: param.rnr_retry_count,
                flow_control: param.flow_control,
                srq: param.srq,
                private_data: &param.private_data,
            };
            service.connect(engine, now, &self.0.shared, &params)
        })
    }

    /// Grants the connection that was asked for, or tells the queue pair for datagrams (`rdma_accept`): of a connection
    /// ends in [`CmEventType::Established`]. Post receives before: the peer may send at once.
    ///
    /// # Errors
    /// [`Error::CmState`] when nobody asks, [`Error::Cm`] when the request has gone meanwhile.
    pub fn accept(&self, param: &ConnParam) -> Result<(), Error> {
        let request = lock(&self.0.shared.state).request;
        match request {
            Some(Request::Connection(request)) => self.accept_connection(&request, param),
            Some(Request::Datagram(request)) => self.accept_datagrams(&request, param),
            None => Err(Error::CmState("nobody has asked this id for a connection")),
        }
    }

    /// Refuses what was asked for, with a word for the peer's application of at most 148 bytes (`rdma_reject`).
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn reject(&self, private_data: &[u8]) -> Result<(), Error> {
        let request = lock(&self.0.shared.state).request;
        self.0.ctx.with_connection_manager(|service, engine, now| match request {
            Some(Request::Connection(request)) => service.call(engine, now, |cm| {
                cm.reject(now, request.id, RejectReason::ConsumerDefined, RejectInfo::default(), private_data)
            }),
            Some(Request::Datagram(request)) => {
                service.call(engine, now, |cm| cm.sidr_reject(request.id, SidrStatus::Rejected, private_data))
            }
            None => Err(Error::CmState("nobody has asked this id for a connection")),
        })
    }

    /// Confirms a connection whose queue pair the application itself has brought to RTS (`rdma_establish`).
    ///
    /// # Errors
    /// [`Error::CmState`] when the id is no connection.
    pub fn establish(&self) -> Result<(), Error> {
        let connection = self.connection()?;
        self.0.ctx.with_connection_manager(|service, engine, now| {
            service.call(engine, now, |cm| cm.establish(connection, &[]))
        })
    }

    /// What to set a queue pair to that the application drives by itself, on the way to `state`, which is RTR or RTS
    /// (`rdma_init_qp_attr`): after [`CmEventType::ConnectResponse`], or before [`accept`](Self::accept) with the same
    /// `param`.
    ///
    /// # Errors
    /// [`Error::CmState`] before the peer has said what it needs to know.
    pub fn qp_attr(&self, state: QpState, param: &ConnParam) -> Result<QpAttr, Error> {
        let (granted, request) = {
            let state = lock(&self.0.shared.state);
            (state.settings, state.request)
        };
        let settings = match (granted, request) {
            (Some(settings), _) => settings,
            (None, Some(Request::Connection(request))) => {
                request.settings(&self.accept_params(param.qp_num, param))
            }
            _ => return Err(Error::CmState("the peer has not said yet what the queue pair needs")),
        };
        match state {
            QpState::Rtr => Ok(QpAttr::from_stack(
                &settings.rtr(settings.path(MacAddr::default(), MacAddr::default(), None)),
                None,
            )),
            QpState::Rts => Ok(QpAttr::from_stack(&settings.rts(), None)),
            _ => Err(Error::CmState("only the attributes to RTR and to RTS follow from a connection")),
        }
    }

    /// Ends the connection, or answers the peer who has ended it (`rdma_disconnect`): the queue pair goes into error, so
    /// that everything posted completes.
    ///
    /// # Errors
    /// [`Error::CmState`] when the id is no connection.
    pub fn disconnect(&self) -> Result<(), Error> {
        let connection = self.connection()?;
        if let Some(qp) = self.qp() {
            qp.modify(&QpAttr::to(QpState::Err))?;
        }
        self.0.ctx.with_connection_manager(|service, engine, now| {
            service.call(engine, now, |cm| cm.disconnect(now, connection, &[]))
        })
    }

    /// Moves it, with the events that wait, to another channel of the same device (`rdma_migrate_id`).
    pub fn migrate(&self, channel: &EventChannel) {
        let shared = &self.0.shared;
        let former = lock(&shared.state).queue.replace(Arc::clone(channel.queue()));
        let waiting = former.map(|queue| queue.extract(shared)).unwrap_or_default();
        waiting.into_iter().for_each(|queued| channel.queue().push(queued));
    }

    /// Joins a multicast group with its datagram queue pair, and has the interface listen to it
    /// (`rdma_join_multicast`): ends in [`CmEventType::MulticastJoin`], whose parameters say how to send to the group.
    ///
    /// # Errors
    /// [`Error::CmState`] when it has no queue pair, and what attaching it refuses.
    pub fn join_multicast(&self, group: IpAddr) -> Result<(), Error> {
        let qp = self.qp().ok_or(Error::CmState("the id needs a datagram queue pair first"))?;
        qp.attach_multicast(group)?;
        let av = AddressVector::new(Gid::from(group));
        let ud = super::UdParam { private_data: Vec::new(), av, qp_num: Qpn::MULTICAST, qkey: UDP_QKEY };
        self.0.shared.raise(News::new(CmEventType::MulticastJoin, 0).ud(ud));
        Ok(())
    }

    /// Leaves a multicast group (`rdma_leave_multicast`).
    ///
    /// # Errors
    /// When it is not in it.
    pub fn leave_multicast(&self, group: IpAddr) -> Result<(), Error> {
        let qp = self.qp().ok_or(Error::CmState("the id has no queue pair"))?;
        qp.detach_multicast(group)
    }

    fn accept_connection(&self, request: &ConnectRequest, param: &ConnParam) -> Result<(), Error> {
        let (qpn, ours) = (self.qpn_or(param)?, self.qp().is_some());
        let params = self.accept_params(qpn, param);
        self.0.ctx.with_connection_manager(|service, engine, now| {
            service.accept(engine, now, request, (qpn, ours), &params)
        })
    }

    fn accept_params<'a>(&self, qpn: Qpn, param: &'a ConnParam) -> AcceptParams<'a> {
        AcceptParams {
            qpn,
            rq_psn: lock(&self.0.shared.state).rq_psn,
            responder_resources: param.responder_resources,
            initiator_depth: param.initiator_depth,
            rnr_retry_count: param.rnr_retry_count,
            flow_control: param.flow_control,
            srq: param.srq,
            private_data: &param.private_data,
        }
    }

    fn accept_datagrams(&self, request: &SidrRequest, param: &ConnParam) -> Result<(), Error> {
        let (qpn, data) = (self.qpn_or(param)?, &param.private_data);
        self.0.ctx.with_connection_manager(|service, engine, now| {
            service.call(engine, now, |cm| cm.sidr_accept(request.id, qpn, UDP_QKEY, data))
        })
    }

    fn connection(&self) -> Result<uroce_stack::cm::ConnId, Error> {
        match self.0.shared.role() {
            Role::Connection(connection) => Ok(connection),
            Role::Idle | Role::Listener(_) => Err(Error::CmState("the id is no connection")),
        }
    }

    fn ends(&self) -> Result<(SocketAddr, SocketAddr), Error> {
        let state = lock(&self.0.shared.state);
        match (state.local, state.remote) {
            (Some(local), Some(remote)) => Ok((local, remote)),
            _ => Err(Error::CmState("resolve the peer's address first")),
        }
    }

    /// The number of its queue pair, or of one that the application drives by itself.
    fn qpn_or(&self, param: &ConnParam) -> Result<Qpn, Error> {
        let own = self.qp().map(|qp| qp.qpn());
        let foreign = Some(param.qp_num).filter(|qpn| *qpn != Qpn::default());
        own.or(foreign).ok_or(Error::CmState("the id needs a queue pair first, or qp_num that of yours"))
    }

    fn qp_type(&self) -> QpType {
        self.qp().map_or(QpType::Rc, |qp| qp.qp_type())
    }

    fn check_local(&self, address: IpAddr) -> Result<(), Error> {
        if address.is_unspecified() { Ok(()) } else { self.0.ctx.check_address(address) }
    }

    /// The address of ours that a peer is reached from.
    fn source_for(&self, remote: IpAddr) -> IpAddr {
        self.0.ctx.source_towards(remote)
    }

    /// An id that is bound to every address gets the one that fits its peer.
    fn settle_source(&self, remote: IpAddr) -> SocketAddr {
        let source = self.source_for(remote);
        let mut state = lock(&self.0.shared.state);
        let local = state.local.unwrap_or(SocketAddr::new(source, 0));
        let local = if local.ip().is_unspecified() { SocketAddr::new(source, local.port()) } else { local };
        state.local = Some(local);
        local
    }
}

impl PartialEq for CmId {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for CmId {}

impl std::fmt::Debug for CmId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CmId")
            .field("local", &self.local_addr())
            .field("peer", &self.peer_addr())
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.ctx.retire(&self.shared);
    }
}
