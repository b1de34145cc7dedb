//! How a device is opened.

use std::net::IpAddr;
use std::ops::Range;

use uroce_nic::Nic;
use uroce_stack::wire::{MacAddr, Mtu};
use uroce_stack::{Config, Limits};

/// Who runs the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drive {
    /// A thread of its own, on the given core or on any. It spins while packets come and go and sleeps
    /// otherwise.
    ///
    /// Peers expect this: their READs, WRITEs and retransmissions are answered without any call of the
    /// application.
    Thread {
        /// The core to run on, counted from 0.
        cpu: Option<usize>,
    },
    /// The application: [`poll`](crate::CompletionQueue::poll), [`wait`](crate::CompletionQueue::wait) and
    /// [`progress`](crate::Context::progress) run the engine.
    ///
    /// The shortest way from wire to application, without a thread between. An application that does not call
    /// them stalls its peers, which give it up after their timeouts.
    Inline,
}

impl Default for Drive {
    /// A thread on any core.
    fn default() -> Self {
        Self::Thread { cpu: None }
    }
}

/// Which way frames take to an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// AF_XDP where it can be had, else AF_PACKET. A warning tells when it falls back, and
    /// [`PortAttr::mode`](crate::PortAttr::mode) what is used.
    #[default]
    Auto,
    /// AF_XDP: a program in the driver or the kernel hands RoCE packets of one queue to this process past the
    /// kernel's network stack. Needs `CAP_NET_ADMIN`, `CAP_NET_RAW` and `CAP_BPF`.
    Xdp,
    /// AF_PACKET: a copy of each packet, through the kernel. Works everywhere. Slower, but for bulk over a veth pair,
    /// where frames cross up to 64 KiB at once (Linux 6.2) if both ends use it. Needs `CAP_NET_RAW`.
    Packet,
}

/// What is known of a link that the operating system does not know: see [`DeviceConfig::with_nic`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Our Ethernet address on it.
    pub mac: MacAddr,
    /// Our IP addresses on it, at least one. The first one is used unless [`DeviceConfig::source`] says
    /// otherwise.
    pub addresses: Vec<IpAddr>,
    /// The largest IP packet that it carries, in bytes.
    pub mtu: u32,
    /// Who else is on it.
    pub neighbours: Vec<(IpAddr, MacAddr)>,
}

/// Says what [`Context::open`](crate::Context::open) opens, and how.
///
/// ```no_run
/// use uroce::{Backend, Context, DeviceConfig, Drive};
/// let config = DeviceConfig::new("eth0").backend(Backend::Xdp).drive(Drive::Inline);
/// let ctx = Context::open(config)?;
/// # Ok::<(), uroce::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "nothing is opened before `Context::open`"]
pub struct DeviceConfig {
    pub(crate) attachment: Attachment,
    pub(crate) wrapper: Option<Wrapper>,
    pub(crate) source: Source,
    pub(crate) max_mtu: Mtu,
    pub(crate) drive: Drive,
    pub(crate) seed: Option<[u8; 32]>,
    /// What the engine is made with, but for what is known only when the device is opened: seed and MTU.
    pub(crate) engine: Config,
}

/// Makes a backend of a backend.
pub(crate) struct Wrapper(pub(crate) Wrap);

type Wrap = Box<dyn FnOnce(Box<dyn Nic>) -> Box<dyn Nic> + Send>;

impl std::fmt::Debug for Wrapper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Wrapper")
    }
}

/// What frames go through.
pub(crate) enum Attachment {
    Interface { name: String, backend: Backend, queue: Option<u32> },
    Made { nic: Box<dyn Nic>, link: Link },
}

impl std::fmt::Debug for Attachment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Interface { name, backend, queue } => f
                .debug_struct("Interface")
                .field("name", name)
                .field("backend", backend)
                .field("queue", queue)
                .finish(),
            Self::Made { nic, link } => {
                f.debug_struct("Made").field("mode", &nic.mode()).field("link", link).finish_non_exhaustive()
            }
        }
    }
}

/// Which of an interface's addresses is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The first IPv4 address, else the first IPv6 address that is not link-local, else any.
    Preferred,
    Address(IpAddr),
    GidIndex(u32),
}

impl DeviceConfig {
    /// The interface of this name, as `ip link` lists it.
    pub fn new(interface: impl Into<String>) -> Self {
        Self::with(Attachment::Interface { name: interface.into(), backend: Backend::Auto, queue: None })
    }

    /// A backend that was made already: an in-memory cable, a wrapped or a foreign one. As no operating
    /// system knows the link, `link` says who is on it.
    pub fn with_nic(nic: Box<dyn Nic>, link: Link) -> Self {
        Self::with(Attachment::Made { nic, link })
    }

    /// Which way frames take. [`Backend::Auto`] unless set; no effect with [`with_nic`](Self::with_nic).
    pub fn backend(mut self, wanted: Backend) -> Self {
        if let Attachment::Interface { backend, .. } = &mut self.attachment {
            *backend = wanted;
        }
        self
    }

    /// Which receive queue of the interface to attach to, counted from 0. 0 unless set; of interest for
    /// AF_XDP only, where the interface must deliver RoCE packets to this queue.
    pub fn queue(mut self, wanted: u32) -> Self {
        if let Attachment::Interface { queue, .. } = &mut self.attachment {
            *queue = Some(wanted);
        }
        self
    }

    /// Puts something between engine and interface that sees every frame: `uroce_nic`'s capture or fault
    /// wrappers, or one of your own. Without it there is nothing in between.
    pub fn wrap_nic(mut self, wrap: impl FnOnce(Box<dyn Nic>) -> Box<dyn Nic> + Send + 'static) -> Self {
        self.wrapper = Some(Wrapper(Box::new(wrap)));
        self
    }

    /// The address that packets come from, one of the interface's. Unless set it is the first IPv4 address,
    /// else the first IPv6 address that is not link-local.
    pub const fn source(mut self, address: IpAddr) -> Self {
        self.source = Source::Address(address);
        self
    }

    /// The same by its index in the GID table, which [`Context::query_port`](crate::Context::query_port)
    /// shows.
    pub const fn gid_index(mut self, index: u32) -> Self {
        self.source = Source::GidIndex(index);
        self
    }

    /// Caps the path MTU. Unless set it is the largest that the link carries.
    pub const fn max_mtu(mut self, mtu: Mtu) -> Self {
        self.max_mtu = mtu;
        self
    }

    /// Who runs the engine. A thread unless set.
    pub const fn drive(mut self, drive: Drive) -> Self {
        self.drive = drive;
        self
    }

    /// How many objects there may be and how large.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.engine.limits = limits;
        self
    }

    /// The queue pair numbers to use, within 2 to 0xFFFFFE. Devices of several processes may share an
    /// interface only when these do not overlap.
    pub fn qpn_range(mut self, qpns: Range<u32>) -> Self {
        self.engine.qpns = qpns;
        self
    }

    /// The most request packets that a queue pair keeps unacknowledged, 1 to 65,536.
    pub const fn window(mut self, packets: u32) -> Self {
        self.engine.window = packets;
        self
    }

    /// Makes every random choice repeatable: numbers, keys and packet sequence numbers. For tests only:
    /// whoever knows the seed can forge packets. Unless set it comes from the operating system.
    pub const fn seed(mut self, seed: [u8; 32]) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Allows Q_Keys with bit 31 set, with which datagrams reach the management queue pairs of peers: for privileged
    /// programs (IBTA, controlled Q_Keys). Not allowed unless set.
    pub const fn controlled_qkeys(mut self, allowed: bool) -> Self {
        self.engine.controlled_qkeys = allowed;
        self
    }

    /// Sends FLUSH in the form of `rdma_rxe`, whose ICRC covers the transport headers twice; both forms are understood
    /// then. Unless set, FLUSH is as the specification says, in both directions.
    pub const fn rxe_flush_icrc(mut self, as_rxe: bool) -> Self {
        self.engine.rxe_flush_icrc = as_rxe;
        self
    }

    fn with(attachment: Attachment) -> Self {
        Self {
            attachment,
            wrapper: None,
            source: Source::Preferred,
            max_mtu: Mtu::B4096,
            drive: Drive::default(),
            seed: None,
            engine: Config::new([0; 32], Mtu::B4096),
        }
    }
}
