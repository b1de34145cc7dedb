//! Devices.

mod manager;
mod route;

use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::Rng as _;
use uroce_stack::wire::{Mtu, Psn};
use uroce_stack::{Counters, Limits};

use crate::channel::CompletionChannel;
use crate::config::DeviceConfig;
use crate::cq::CqBuilder;
use crate::device::{DeviceAttr, PortAttr, PortState, Progress, eui_64};
use crate::driver::{Core, Pace, PollThread, lock};
use crate::error::Error;
use crate::event::AsyncEvent;
use crate::gid::Gid;
use crate::os::wait_readable;
use crate::pd::ProtectionDomain;
use crate::way::Way;
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

    /// Whether both are the same device.
    pub(crate) fn check_same(&self, other: &Self) -> Result<(), Error> {
        if Arc::ptr_eq(&self.0, &other.0) { Ok(()) } else { Err(Error::OtherDevice) }
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
