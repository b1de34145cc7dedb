//! What the kernel knows: interfaces, their addresses and GIDs, and the way to a peer.
//!
//! The kernel keeps the tables of routes and neighbours, we ask it over netlink. Everything here belongs to the
//! control path: it allocates, and [`resolve`] waits for an answer from the network.
//!
//! Like all of netlink, these functions see the network namespace of the calling thread.

mod changes;
mod ethtool;
mod gid;
mod interface;
mod neighbour;
mod netlink;
mod route;

pub use changes::{Change, Changes};
pub use gid::{Gid, gid_of};
pub use interface::{Address, Interface, Vlan};
pub use route::{NextHop, RouteError, resolve};

/// Why something about this host could not be found out.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// No interface has this name.
    #[error("there is no network interface named {0}; `ip link` lists the ones there are")]
    NoSuchInterface(String),
    /// No interface has this address.
    #[error("no network interface has the address {0}; `ip address` lists the ones there are")]
    NoSuchAddress(std::net::IpAddr),
    /// The interface does not carry Ethernet frames.
    #[error("{0} is not an Ethernet interface; RoCEv2 needs one")]
    NotEthernet(String),
    /// The kernel did not answer as it should.
    #[error("the kernel did not answer when asked for {what}: {source}")]
    Kernel {
        /// What was asked for.
        what: &'static str,
        /// What it said instead.
        source: std::io::Error,
    },
}

impl HostError {
    fn kernel(what: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Kernel { what, source }
    }
}
