//! Errors: what happened, what it means, what to do next.

use std::io;
use std::net::IpAddr;

use thiserror::Error;
use uroce_nic::OpenError;
use uroce_nic::host::HostError;
use uroce_stack::PostError as PostErrorKind;

/// A call failed. [`errno`](Self::errno) is what the verbs of C would report.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The engine refused: a value out of range, a limit reached, an object in use.
    #[error(transparent)]
    Refused(#[from] uroce_stack::Error),
    /// A queue pair cannot be changed like this, or an address vector leads nowhere.
    #[error(transparent)]
    Modify(#[from] ModifyError),
    /// Frames cannot be got from the interface.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The interface has no such address.
    #[error(
        "{interface} has no address {wanted}; it has {present}: give one of these, or add the address first"
    )]
    NoSuchAddress {
        /// The interface.
        interface: String,
        /// What was asked for.
        wanted: String,
        /// What there is.
        present: String,
    },
    /// The link's MTU is too small for RoCE.
    #[error(
        "{interface} has MTU {mtu}, too small for RoCE, which needs 336 for path MTU 256: \
         raise it with `ip link set {interface} mtu 4200`"
    )]
    LinkMtu {
        /// The interface.
        interface: String,
        /// Its MTU in bytes.
        mtu: u32,
    },
    /// A value of the configuration makes no sense.
    #[error("{0}")]
    Config(&'static str),
    /// There is no such interface, or the kernel does not tell about it.
    #[error(transparent)]
    Host(#[from] HostError),
    /// An offset or length reaches beyond a memory region.
    #[error("bytes {offset} to {end} reach beyond the memory region of {length} bytes")]
    Bounds {
        /// Where the access starts, in bytes.
        offset: usize,
        /// Where it would end.
        end: u128,
        /// How long the region is.
        length: usize,
    },
    /// An atomic access to a word that does not start at a multiple of 8 bytes.
    #[error("offset {0} is not a multiple of 8: atomic access needs an aligned word of 64 bits")]
    Unaligned(usize),
    /// The memory was lent for reading only.
    #[error(
        "the memory region was registered from a shared slice, or from raw memory without LOCAL_WRITE, and cannot be \
         written"
    )]
    ReadOnly,
    /// There is not so much memory.
    #[error("no memory for {length} bytes: ask for less, or free some")]
    OutOfMemory {
        /// How many bytes were asked for.
        length: usize,
    },
    /// Objects of two devices were named together.
    #[error("the objects belong to different devices: make them all on one")]
    OtherDevice,
    /// Completions were lost.
    #[error(
        "the completion queue overflowed: completions were lost and its queue pairs are in error; \
         create it larger than all work requests that may complete at once"
    )]
    CqOverrun,
    /// The connection manager refused.
    #[error(transparent)]
    Cm(#[from] uroce_stack::cm::CmError),
    /// The call does not fit what was done with the id before.
    #[error("{0}")]
    CmState(&'static str),
    /// The port of the connection manager is taken.
    #[error("port {0} is taken by another id of this device: choose another one, or 0 for any that is free")]
    PortInUse(u16),
    /// The peer refused the connection.
    #[error("the peer refused the connection: {reason}")]
    Rejected {
        /// Why.
        reason: uroce_stack::wire::cm::RejectReason,
        /// What the peer's application says.
        private_data: Vec<u8>,
    },
    /// The peer was not reached, or does not answer.
    #[error(
        "no connection to {}: {}; check that the peer runs, listens there, and is reached over this interface",
        peer.map_or_else(|| "the peer".to_owned(), |peer| peer.to_string()),
        io::Error::from_raw_os_error(-status)
    )]
    Unreachable {
        /// Who.
        peer: Option<std::net::SocketAddr>,
        /// A negative `errno`.
        status: i32,
    },
    /// Nothing came in time.
    #[error("nothing arrived within the time given")]
    TimedOut,
    /// A thread could not be started, or a descriptor not made.
    #[error(
        "{what}: {source}; the process may be at its limit of descriptors, threads or locked memory \
         (`ulimit -a`)"
    )]
    System {
        /// What was attempted.
        what: &'static str,
        /// What the operating system answered.
        source: io::Error,
    },
}

impl Error {
    /// The error number that the verbs of C would return.
    #[must_use]
    pub fn errno(&self) -> i32 {
        match self {
            Self::Refused(error) => refused_errno(error),
            Self::Modify(error) => error.errno(),
            Self::Open(error) => open_errno(error),
            Self::System { source, .. } => source.raw_os_error().unwrap_or(libc::EIO),
            Self::NoSuchAddress { .. } => libc::EADDRNOTAVAIL,
            Self::LinkMtu { .. } | Self::Config(_) | Self::Bounds { .. } | Self::Unaligned(_) => libc::EINVAL,
            Self::Host(error) => host_errno(error),
            Self::ReadOnly => libc::EACCES,
            Self::OutOfMemory { .. } => libc::ENOMEM,
            Self::OtherDevice => libc::EINVAL,
            Self::CqOverrun => libc::EOVERFLOW,
            Self::TimedOut => libc::ETIMEDOUT,
            Self::Cm(error) => cm_errno(error),
            Self::CmState(_) => libc::EINVAL,
            Self::PortInUse(_) => libc::EADDRINUSE,
            Self::Rejected { .. } => libc::ECONNREFUSED,
            Self::Unreachable { status, .. } => -status,
        }
    }

    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}

const fn cm_errno(error: &uroce_stack::cm::CmError) -> i32 {
    use uroce_stack::cm::CmError;
    match error {
        CmError::Exhausted { .. } => libc::ENOMEM,
        CmError::QpnBusy(_) => libc::EBUSY,
        CmError::AddressInUse(_) => libc::EADDRINUSE,
        _ => libc::EINVAL,
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = Self::from_raw_os_error(error.errno()).kind();
        Self::new(kind, error)
    }
}

fn refused_errno(error: &uroce_stack::Error) -> i32 {
    match error {
        uroce_stack::Error::Exhausted { .. } => libc::ENOMEM,
        uroce_stack::Error::Busy(_) => libc::EBUSY,
        _ => libc::EINVAL,
    }
}

fn open_errno(error: &OpenError) -> i32 {
    match error {
        OpenError::Host(error) => host_errno(error),
        OpenError::InterfaceDown { .. } => libc::ENETDOWN,
        OpenError::NotPermitted { .. } => libc::EPERM,
        OpenError::LockedMemory { .. } => libc::ENOMEM,
        OpenError::ProgramPresent { .. } | OpenError::QueueBusy { .. } => libc::EBUSY,
        OpenError::PortTaken { .. } => libc::EADDRINUSE,
        OpenError::NoAfXdp | OpenError::NoXdp { .. } => libc::EOPNOTSUPP,
        OpenError::Io { source, .. } => source.raw_os_error().unwrap_or(libc::EIO),
        _ => libc::EINVAL,
    }
}

fn host_errno(error: &HostError) -> i32 {
    match error {
        HostError::NoSuchInterface(_) | HostError::NotEthernet(_) => libc::ENODEV,
        HostError::NoSuchAddress(_) => libc::EADDRNOTAVAIL,
        HostError::Kernel { source, .. } => source.raw_os_error().unwrap_or(libc::EIO),
    }
}

/// Why a queue pair was not modified. It is as it was.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ModifyError {
    /// The state machine or a range forbids it; missing and disallowed attributes are named.
    #[error(transparent)]
    Refused(#[from] uroce_stack::ModifyError),
    /// The address vector leads nowhere.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// The GID table has no such entry.
    #[error("the port has no GID with index {index}: the table has {count} entries, see Context::query_port")]
    NoSuchGid {
        /// The index asked for.
        index: u32,
        /// How many entries there are.
        count: usize,
    },
    /// The interface is gone.
    #[error("the device has failed (its interface is gone): drop everything made on it and open it again")]
    DeviceGone,
}

impl ModifyError {
    /// The error number that `ibv_modify_qp` would return.
    #[must_use]
    pub fn errno(&self) -> i32 {
        match self {
            Self::Refused(_) | Self::NoSuchGid { .. } => libc::EINVAL,
            Self::Route(error) => error.errno(),
            Self::DeviceGone => libc::EIO,
        }
    }
}

/// Why no frame can be addressed to a peer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RouteError {
    /// One address is IPv4, the other IPv6.
    #[error(
        "{source_ip} cannot reach {destination}: one is IPv4, the other IPv6; \
         open the device with a source address of the peer's family"
    )]
    Family {
        /// The local address.
        source_ip: IpAddr,
        /// The peer.
        destination: IpAddr,
    },
    /// The kernel has no route, or nobody answers for the next hop.
    #[error(transparent)]
    Host(#[from] uroce_nic::host::RouteError),
    /// The link is one that the kernel does not know, and the configuration names no such neighbour.
    #[error("{destination} is not among the neighbours that the link was configured with")]
    NoNeighbour {
        /// The peer.
        destination: IpAddr,
    },
}

impl RouteError {
    /// The error number that `ibv_modify_qp` would return.
    #[must_use]
    pub const fn errno(&self) -> i32 {
        match self {
            Self::Family { .. } => libc::EAFNOSUPPORT,
            Self::Host(uroce_nic::host::RouteError::NoRoute { .. }) => libc::ENETUNREACH,
            Self::Host(_) | Self::NoNeighbour { .. } => libc::EHOSTUNREACH,
        }
    }
}

/// A work request was not accepted: those before it in the list were, those after it were not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("work request {index} of the list: {kind}")]
pub struct PostError {
    /// Its place in the list that was posted, counted from 0: what `bad_wr` points at in C.
    pub index: usize,
    /// Why.
    pub kind: PostErrorKind,
}

impl PostError {
    /// The error number that `ibv_post_send` and `ibv_post_recv` would return.
    #[must_use]
    pub fn errno(&self) -> i32 {
        match self.kind {
            PostErrorKind::QueueFull => libc::ENOMEM,
            _ => libc::EINVAL,
        }
    }
}

/// A text is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is not {expected}")]
pub struct ParseError {
    text: String,
    expected: &'static str,
}

impl ParseError {
    pub(crate) fn gid(text: &str) -> Self {
        Self { text: text.into(), expected: "a GID, which is written as an IPv4 or IPv6 address" }
    }

    pub(crate) fn endpoint(text: &str) -> Self {
        let expected = "an endpoint, which is LID:QPN:PSN:GID in hexadecimal of 4, 6, 6 and 32 digits";
        Self { text: text.into(), expected }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_numbers_of_verbs() {
        let busy = Error::from(uroce_stack::Error::Busy("completion queue"));
        assert_eq!(busy.errno(), libc::EBUSY);
        assert_eq!(io::Error::from(busy).kind(), io::ErrorKind::ResourceBusy);
        let full = PostError { index: 3, kind: PostErrorKind::QueueFull };
        assert_eq!(full.errno(), libc::ENOMEM);
        assert!(full.to_string().starts_with("work request 3"));
    }
}
