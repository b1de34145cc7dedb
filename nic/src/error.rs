//! Why a backend could not be opened.

use std::io;

/// Why a queue of an interface could not be opened. Each says what happened and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The interface does not exist, or is not Ethernet.
    #[error(transparent)]
    Host(#[from] crate::host::HostError),
    /// The interface is administratively down.
    #[error("{interface} is down; bring it up with `ip link set {interface} up`")]
    InterfaceDown {
        /// Its name.
        interface: String,
    },
    /// The process lacks a privilege.
    #[error(
        "not permitted to {action}; run as root, or give the program the capabilities with \
         `setcap cap_net_admin,cap_net_raw,cap_bpf,cap_ipc_lock+ep`"
    )]
    NotPermitted {
        /// What was refused.
        action: &'static str,
    },
    /// The limit on locked memory is too low for the frame buffers.
    #[error(
        "{bytes} bytes of frame buffers exceed the limit on locked memory; raise it with `ulimit -l unlimited`"
    )]
    LockedMemory {
        /// Size of the buffers.
        bytes: usize,
    },
    /// The kernel was built without AF_XDP.
    #[error("this kernel has no AF_XDP sockets (CONFIG_XDP_SOCKETS); use the AF_PACKET backend")]
    NoAfXdp,
    /// Neither the driver nor the generic path takes an XDP program.
    #[error("{interface} takes no XDP program ({reason}); use the AF_PACKET backend")]
    NoXdp {
        /// The interface.
        interface: String,
        /// What the kernel said.
        reason: io::Error,
    },
    /// Another XDP program is attached to the interface: another instance, or another tool.
    #[error(
        "another XDP program (number {program}) is attached to {interface}, perhaps by another instance of uRoCE; \
         `bpftool prog show id {program}` tells whose it is, stop that one first"
    )]
    ProgramPresent {
        /// The interface.
        interface: String,
        /// The kernel's number of the program.
        program: u32,
    },
    /// Another AF_XDP socket is bound to the queue.
    #[error("queue {queue} of {interface} is in use by another AF_XDP socket; stop the other instance first")]
    QueueBusy {
        /// The interface.
        interface: String,
        /// The queue.
        queue: u32,
    },
    /// The interface has fewer queues.
    #[error("{interface} has no receive queue {queue}, it has {queues} counted from 0")]
    NoSuchQueue {
        /// The interface.
        interface: String,
        /// The queue asked for.
        queue: u32,
        /// How many there are.
        queues: u32,
    },
    /// Something holds UDP port 4791 of an address that the AF_PACKET backend must reserve.
    #[error(
        "UDP port 4791 of {address} is taken, perhaps by the kernel's rdma_rxe or another instance of uRoCE; \
         `ss -ulpn sport = 4791` and `rdma link` tell by whom"
    )]
    PortTaken {
        /// The address.
        address: std::net::IpAddr,
    },
    /// The configuration asks for something impossible.
    #[error("{what}")]
    Config {
        /// What is wrong with it.
        what: &'static str,
    },
    /// Anything else the kernel refused.
    #[error("could not {action}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
}

impl OpenError {
    /// An error of the kernel while doing `action`, with refusals for want of privilege told apart.
    pub(crate) fn io(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::NotPermitted { action },
            _ => Self::Io { action, source },
        }
    }
}
