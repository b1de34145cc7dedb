//! Network namespaces joined by veth pairs, for tests that need real interfaces (feature `testing`).
//!
//! Namespaces are removed when their guard is dropped, also by a panic. A test that cannot run says so loudly and
//! passes, except where the environment says `CI=true`: there it fails. So a test starts with
//!
//! ```no_run
//! # use uroce_nic::testing::{VethPair, skip};
//! # fn test() {
//! let pair = match VethPair::new("verbs", 1500) {
//!     Ok(pair) => pair,
//!     Err(reason) => return skip(&reason),
//! };
//! let left = pair.left.inside(|| "opens its sockets in the left namespace");
//! # }
//! ```
//!
//! # Both ends in one process
//!
//! A network namespace belongs to a thread, and a socket keeps for good the one it was opened in. So a test opens
//! its left end inside [`Namespace::inside`] of the left namespace, its right end in the right one, and then uses
//! both from any thread. Only what asks the kernel later by interface (routes, neighbours, opening another
//! queue) must again happen inside.

mod flow;

use std::fmt;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::host::{Address, Interface};
use crate::sys;

pub use flow::{Flow, take_udp_checksum};

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Why a test that needs the network cannot run here.
#[derive(Debug)]
pub struct Unavailable(String);

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Says that the running test, named after its thread, is skipped.
///
/// # Panics
/// Where the environment says `CI=true`: there nothing may be skipped.
pub fn skip(reason: &dyn fmt::Display) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    assert!(
        std::env::var("CI").as_deref() != Ok("true"),
        "{test} cannot run, and CI must skip nothing: {reason}"
    );
    eprintln!("\n*** SKIPPED {test}: {reason} ***\n");
}

/// A network namespace, removed on drop.
#[derive(Debug)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    /// A new namespace named `uroce-<part>-<process>-<number>`, with its loopback up.
    ///
    /// # Errors
    /// The process is not root, or there is no `ip` command.
    pub fn new(part: &str) -> Result<Self, Unavailable> {
        let name = format!("uroce-{part}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        ip(&format!("netns add {name}"))?;
        let namespace = Self { name };
        namespace.ip("link set lo up")?;
        Ok(namespace)
    }

    /// Its name, for `ip netns exec`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs the `ip` command in it.
    ///
    /// # Errors
    /// The command fails.
    pub fn ip(&self, arguments: &str) -> Result<(), Unavailable> {
        self.ip_output(arguments).map(|_| ())
    }

    /// Runs the `ip` command in it and returns what it prints.
    ///
    /// # Errors
    /// The command fails.
    pub fn ip_output(&self, arguments: &str) -> Result<String, Unavailable> {
        ip(&format!("-netns {} {arguments}", self.name))
    }

    /// Calls `body` with the current thread moved into it; sockets opened by `body` stay in it.
    ///
    /// # Panics
    /// When the thread cannot be moved.
    pub fn inside<R>(&self, body: impl FnOnce() -> R) -> R {
        let _back = Moved::into(&self.name);
        body()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Err(error) = ip(&format!("netns delete {}", self.name)) {
            eprintln!("the namespace {} stays behind: {error}", self.name);
        }
    }
}

/// Moves the thread back on drop, so that a panicking test does not leave it astray.
struct Moved {
    home: File,
}

impl Moved {
    fn into(name: &str) -> Self {
        let home = File::open("/proc/thread-self/ns/net").expect("a thread has a network namespace");
        let there = File::open(format!("/run/netns/{name}")).expect("the namespace was made before");
        set_namespace(&there);
        Self { home }
    }
}

impl Drop for Moved {
    fn drop(&mut self) {
        set_namespace(&self.home);
    }
}

fn set_namespace(file: &File) {
    // SAFETY: setns takes two integers and touches no memory of ours.
    sys::check(unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) })
        .expect("root may move between namespaces");
}

/// Two namespaces with an Ethernet link between them.
#[derive(Debug)]
pub struct VethPair {
    /// The namespace of the left end.
    pub left: Namespace,
    /// The namespace of the right end.
    pub right: Namespace,
}

impl VethPair {
    /// Name of the interface in both namespaces.
    pub const INTERFACE: &str = "eth0";
    /// IPv4 address of the left end, in a /24.
    pub const LEFT_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));
    /// IPv4 address of the right end.
    pub const RIGHT_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2));
    /// IPv6 address of the left end, in a /64.
    pub const LEFT_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1));
    /// IPv6 address of the right end.
    pub const RIGHT_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 2));
    /// MAC of the left end.
    pub const LEFT_MAC: [u8; 6] = [0x02, 0x75, 0x72, 0, 0, 1];
    /// MAC of the right end.
    pub const RIGHT_MAC: [u8; 6] = [0x02, 0x75, 0x72, 0, 0, 2];

    /// A pair with this MTU, up, with addresses usable at once.
    ///
    /// # Errors
    /// The process is not root, or there is no `ip` command.
    pub fn new(part: &str, mtu: u32) -> Result<Self, Unavailable> {
        let pair = Self { left: Namespace::new(part)?, right: Namespace::new(part)? };
        let (left, right, interface) = (&pair.left, &pair.right, Self::INTERFACE);
        ip(&format!(
            "link add {interface} netns {} mtu {mtu} address 02:75:72:00:00:01 type veth \
             peer name {interface} netns {} mtu {mtu} address 02:75:72:00:00:02",
            left.name, right.name
        ))?;
        for (end, v4, v6) in [(left, Self::LEFT_V4, Self::LEFT_V6), (right, Self::RIGHT_V4, Self::RIGHT_V6)] {
            end.inside(without_duplicate_detection);
            end.ip(&format!("address add {v4}/24 dev {interface}"))?;
            end.ip(&format!("address add {v6}/64 dev {interface} nodad"))?;
            end.ip(&format!("link set {interface} up"))?;
        }
        left.inside(wait_for_link);
        right.inside(wait_for_link);
        Ok(pair)
    }
}

/// Link-local addresses are usable at once then; a system without IPv6 has none.
fn without_duplicate_detection() {
    for scope in ["all", "default", VethPair::INTERFACE] {
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{scope}/accept_dad"), "0");
    }
}

/// The kernel notices the carrier, and adds the link-local address, a little after the command returned. A system
/// without IPv6 never adds one, so this does not wait for ever.
fn wait_for_link() {
    for _ in 0..400 {
        let interface = Interface::find(VethPair::INTERFACE);
        let is_ready = |interface: Interface| {
            let link_local =
                |own: &Address| matches!(own.address, IpAddr::V6(v6) if v6.is_unicast_link_local());
            interface.carrier && interface.addresses.iter().any(link_local)
        };
        if interface.is_ok_and(is_ready) {
            return;
        }
        let _ = sys::wait_readable(&[], Duration::from_millis(5));
    }
}

fn ip(arguments: &str) -> Result<String, Unavailable> {
    let output = Command::new("ip").args(arguments.split(' ').filter(|word| !word.is_empty())).output();
    let output =
        output.map_err(|error| Unavailable(format!("no `ip` command (package iproute2): {error}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let reason = String::from_utf8_lossy(&output.stderr);
    Err(Unavailable(format!("`ip {arguments}` failed, are you root? {}", reason.trim())))
}
