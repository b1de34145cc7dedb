//! Devices.

use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::Rng as _;
use uroce_stack::cm::{CmConfig, CmCounters};
use uroce_stack::wire::{MacAddr, Mtu, Path, Psn, Qpn, source_port};
use uroce_stack::{Counters, Engine, Instant, Limits};

use crate::channel::CompletionChannel;
use crate::cm::{CmService, EventChannel, IdShared};
use crate::config::{DeviceConfig, Source};
use crate::cq::CqBuilder;
use crate::device::{DeviceAttr, PortAttr, PortState, Progress, eui_64};
use crate::driver::{Core, Pace, PollThread, lock};
use crate::error::{Error, ModifyError, RouteError};
use crate::event::AsyncEvent;
use crate::gid::Gid;
use crate::os::{Membership, wait_readable};
use crate::pd::ProtectionDomain;
use crate::qp::AddressVector;
use crate::way::{Hop, Way, choose};
use crate::xrc::XrcDomain;

/// An open device (`ibv_context`). A cheap handle: clones name the same device, which is closed when the last
/// handle and everything made on it are gone.
///
/// Closing sends what is owed to peers, then gives the interface back to the kernel. A child process after
/// `fork` must not use it.
#[derive(Clone)]
pub struct Context(Arc<Inner>);

pub(crate) struct Inner {
    /// Ends before the core is settled for the last time.
    pub(crate) thread: Option<PollThread>,
    pub(crate) core: Arc<Core>,
    pub(crate) way: Way,
    pub(crate) source: IpAddr,
    pub(crate) gid_index: u32,
    pub(crate) mtu: Mtu,
    pub(crate) limits: Limits,
    pub(crate) rng: Mutex<ChaCha12Rng>,
}

impl Context {
    /// Opens a device.
    ///
    /// # Errors
    /// [`Error::Host`] when there is no such interface, [`Error::Open`] when frames cannot be got from it,
    /// [`Error::NoSuchAddress`] and [`Error::LinkMtu`] when it is not fit for RoCE, [`Error::Refused`] when a
    /// limit is out of range, [`Error::System`] when a thread or a descriptor cannot be had.
    pub fn open(config: DeviceConfig) -> Result<Self, Error> {
        crate::open::open(config).map(|inner| Self(Arc::new(inner)))
    }

    /// What the device is and how much it holds.
    #[must_use]
    pub fn query_device(&self) -> DeviceAttr {
        let mac = self.0.way.mac();
        let (name, limits) = (self.0.way.name().to_owned(), self.0.limits.clone());
        DeviceAttr { name, mac, node_guid: eui_64(mac), limits, phys_port_cnt: 1 }
    }

    /// The state of its port as it is now: asks the kernel.
    #[must_use]
    pub fn query_port(&self) -> PortAttr {
        let now = self.0.way.now();
        let (alive, mode, stats) =
            self.core().control(|port, _| (port.is_alive(), port.nic.mode(), port.nic.stats()));
        PortAttr {
            state: if alive { now.state } else { PortState::Down },
            active_mtu: self.0.mtu,
            max_mtu: Mtu::B4096,
            link_mtu: now.mtu,
            gids: now.gids,
            gid_index: self.0.gid_index,
            mode,
            stats,
        }
    }

    /// The GID that packets come from unless a queue pair says otherwise.
    #[must_use]
    pub fn gid(&self) -> Gid {
        self.0.source.into()
    }

    /// The largest path MTU that queue pairs may use.
    #[must_use]
    pub fn active_mtu(&self) -> Mtu {
        self.0.mtu
    }

    /// A protection domain.
    ///
    /// # Errors
    /// [`Error::Refused`] when the device has none left.
    pub fn alloc_pd(&self) -> Result<ProtectionDomain, Error> {
        ProtectionDomain::new(self)
    }

    /// An XRC domain.
    ///
    /// # Errors
    /// [`Error::Refused`] when the device has none left.
    pub fn open_xrcd(&self) -> Result<XrcDomain, Error> {
        XrcDomain::new(self)
    }

    /// A completion queue of at least `cqe` entries: enough for all work requests that may complete before
    /// they are polled, or completions are lost.
    pub const fn create_cq(&self, cqe: u32) -> CqBuilder<'_> {
        CqBuilder::new(self, cqe)
    }

    /// A channel for the events of completion queues.
    ///
    /// # Errors
    /// [`Error::System`] when no descriptor is left.
    pub fn create_comp_channel(&self) -> Result<CompletionChannel, Error> {
        CompletionChannel::new(self)
    }

    /// Runs the engine once, on a device that is driven inline; otherwise only tells when something is due.
    ///
    /// A foreign event loop calls it when the [descriptor](AsFd) of the context is readable, when the
    /// deadline that it returned has passed, and after posting.
    #[must_use = "tells when the next call is due"]
    pub fn progress(&self) -> Progress {
        let round = if self.core().inline { self.core().try_round(Pace::Prompt) } else { None };
        Progress { frames: round.map_or(0, |round| round.frames), next_deadline: self.core().next_deadline() }
    }

    /// The oldest asynchronous event, if there is one. Never blocks.
    #[must_use]
    pub fn async_event(&self) -> Option<AsyncEvent> {
        self.drive_inline();
        self.core().events.pop()
    }

    /// Waits for an asynchronous event; `None` when `timeout` has passed without any.
    ///
    /// # Errors
    /// [`Error::System`] when the thread cannot sleep.
    pub fn wait_async_event(&self, timeout: Option<Duration>) -> Result<Option<AsyncEvent>, Error> {
        let core = self.core();
        let start = core.now();
        loop {
            if let Some(event) = self.async_event() {
                return Ok(Some(event));
            }
            let left = timeout.map(|timeout| timeout.saturating_sub(core.now().since(start)));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            let events = self.async_fd();
            let slept =
                if core.inline { core.sleep(Some(events), left) } else { wait_readable(&[events], left) };
            slept.map_err(Error::system("cannot wait for an asynchronous event"))?;
        }
    }

    /// A descriptor that polls readable while asynchronous events wait.
    #[must_use]
    pub fn async_fd(&self) -> BorrowedFd<'_> {
        self.core().events.as_fd()
    }

    /// What the engine has counted since the device was opened: packets, retries, refusals, drops.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.core().control(|port, _| port.engine.counters().clone())
    }

    /// Where events of the connection manager arrive (`rdma_create_event_channel`). The first one starts the connection
    /// manager, which takes queue pair 1.
    ///
    /// # Errors
    /// [`Error::Refused`] when the device has no queue pair left for it, [`Error::System`] when no descriptor is left.
    pub fn create_event_channel(&self) -> Result<EventChannel, Error> {
        EventChannel::new(self)
    }

    /// What the connection manager has counted; `None` before there is one.
    #[must_use]
    pub fn cm_counters(&self) -> Option<CmCounters> {
        self.core().control(|port, _| port.manager().map(|(manager, _)| manager.counters().clone()))
    }

    pub(crate) fn start_connection_manager(&self) -> Result<(), Error> {
        let mac = self.0.way.mac();
        let mut seed = [0; 32];
        lock(&self.0.rng).fill_bytes(&mut seed);
        let config = CmConfig::new(seed, eui_64(mac), self.0.mtu);
        self.core().control(|port, now| port.start_manager(now, mac, config))
    }

    /// A call of the connection manager, which runs since the first event channel was made.
    pub(crate) fn with_connection_manager<R>(
        &self,
        call: impl FnOnce(&mut CmService, &mut Engine, Instant) -> R,
    ) -> R {
        self.core().control(|port, now| match port.manager() {
            Some((manager, engine)) => call(manager, engine, now),
            None => unreachable!("an event channel has started the connection manager"),
        })
    }

    /// An id of the connection manager is gone.
    pub(crate) fn retire(&self, id: &Arc<IdShared>) {
        self.with_connection_manager(|manager, engine, now| manager.retire(engine, now, id));
    }

    /// The next hop to a peer. May wait for the kernel to find a neighbour.
    pub(crate) fn next_hop(&self, source: IpAddr, destination: IpAddr) -> Result<Hop, RouteError> {
        self.0.way.find(source, destination)
    }

    /// Whether an address is the device's.
    pub(crate) fn check_address(&self, address: IpAddr) -> Result<(), Error> {
        let gids = self.0.way.now().gids;
        choose(Source::Address(address), &self.0.way, &gids).map(drop)
    }

    /// The address of ours that packets to a peer come from: that of the device, or another one of the peer's family.
    pub(crate) fn source_towards(&self, peer: IpAddr) -> IpAddr {
        if self.0.source.is_ipv4() == peer.is_ipv4() {
            return self.0.source;
        }
        let gids = self.0.way.now().gids;
        let fits = |address: &IpAddr| address.is_ipv4() == peer.is_ipv4();
        gids.iter().rev().map(|entry| entry.gid.ip()).find(fits).unwrap_or(self.0.source)
    }

    /// Whether both are the same device.
    pub(crate) fn check_same(&self, other: &Self) -> Result<(), Error> {
        if Arc::ptr_eq(&self.0, &other.0) { Ok(()) } else { Err(Error::OtherDevice) }
    }

    /// Has the interface listen to a multicast group as long as what is returned lives; a link that the kernel does not
    /// know needs nothing.
    pub(crate) fn listen_to(&self, group: IpAddr) -> Result<Option<Membership>, Error> {
        self.0
            .way
            .join(group)
            .map_err(Error::system("cannot have the interface listen to the multicast group"))
    }

    pub(crate) fn core(&self) -> &Core {
        &self.0.core
    }

    /// Runs the engine if that is the application's part.
    pub(crate) fn drive_inline(&self) {
        if self.core().inline {
            self.core().try_round(Pace::Prompt);
        }
    }

    pub(crate) fn random_psn(&self) -> Psn {
        Psn::new(lock(&self.0.rng).next_u32())
    }

    /// The path to a peer, down to the MAC. May wait for the kernel to find a neighbour.
    pub(crate) fn resolve(
        &self,
        av: &AddressVector,
        local: Qpn,
        remote: Option<Qpn>,
    ) -> Result<Path, ModifyError> {
        let source = self.source_of(av)?;
        let hop = self.0.way.find(source, av.dgid.ip())?;
        Ok(self.path(av, source, hop, source_port(av.flow_label, local, remote.unwrap_or_default())))
    }

    /// The path back to who sent a datagram to `destination` and is at `av`: from there, unless that is a multicast
    /// group.
    pub(crate) fn path_back(
        &self,
        av: &AddressVector,
        destination: IpAddr,
        mac: Option<MacAddr>,
    ) -> Result<Path, Error> {
        let mac = mac.ok_or(Error::Config("the completion is not that of a received datagram"))?;
        let peer = av.dgid.ip();
        let source = if destination.is_multicast() { self.source_towards(peer) } else { destination };
        let hop = Hop { mac, vlan: self.0.way.vlan() };
        let port = source_port(av.flow_label, Qpn::default(), Qpn::default());
        Ok(self.path(av, source, hop, port))
    }

    fn path(&self, av: &AddressVector, source: IpAddr, hop: Hop, source_port: u16) -> Path {
        Path {
            source_mac: self.0.way.mac(),
            destination_mac: hop.mac,
            vlan: hop.vlan,
            source,
            destination: av.dgid.ip(),
            source_port,
            traffic_class: av.traffic_class,
            hop_limit: av.hop_limit,
            flow_label: av.flow_label,
        }
    }

    fn source_of(&self, av: &AddressVector) -> Result<IpAddr, ModifyError> {
        let Some(index) = av.sgid_index else { return Ok(self.0.source) };
        let gids = self.0.way.now().gids;
        let entry = gids.iter().find(|entry| entry.index == index);
        entry.map(|entry| entry.gid.ip()).ok_or(ModifyError::NoSuchGid { index, count: gids.len() })
    }
}

impl AsFd for Context {
    /// Readable when [`progress`](Self::progress) may have something to do. Never read from it.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.core().as_fd()
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("name", &self.0.way.name())
            .field("gid", &self.gid())
            .finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        drop(self.thread.take());
        self.core.settle();
    }
}
