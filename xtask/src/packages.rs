//! Debian packages the commands need, installed when they are missing, with the reason.

use std::process::Command;

use crate::error::{Failure, Result};
use crate::progress::Progress;
use crate::{machine, process};

/// Packages that belong together, and why they are needed.
#[derive(Debug)]
pub(crate) struct Group {
    /// What they are for, as a sentence's end: "needed to ...".
    pub(crate) reason: &'static str,
    /// Debian package names.
    pub(crate) names: &'static [&'static str],
}

/// What building with AF_XDP takes.
pub(crate) const BUILD: Group = Group {
    reason: "build the AF_XDP backend (libxdp and libbpf are C and get Rust bindings)",
    names: &[
        "clang",
        "gcc",
        "libc6-dev",
        "libclang-dev",
        "libelf-dev",
        "libpcap-dev",
        "m4",
        "make",
        "pkg-config",
        "zlib1g-dev",
    ],
};

/// What making network namespaces takes.
pub(crate) const NETWORK: Group =
    Group { reason: "join endpoints by virtual cables in network namespaces", names: &["iproute2"] };

/// What building and booting the guest takes.
pub(crate) const LAB: Group = Group {
    reason: "build and emulate the guest whose kernel carries the real rdma_rxe",
    names: &["cpio", "kmod", "mmdebstrap", "qemu-system-x86", "seabios", "xz-utils", "zstd"],
};

/// Installs what is missing of a group; says what and why.
pub(crate) fn ensure(group: &Group, progress: &Progress) -> Result<()> {
    let missing = missing(group);
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    if let Some(reason) = machine::apt_missing() {
        return Err(Failure::new(format!(
            "{list}: not installed, needed to {}; installing {reason}. Or install them yourself: apt-get install {list}",
            group.reason
        )));
    }
    progress.say(format!("installing {list}: needed to {}", group.reason));
    update_lists()?;
    process::output(apt_get().args(["install", "--yes", "--no-install-recommends"]).args(&missing)).map(drop)
}

/// The packages of a group that are not installed.
pub(crate) fn missing(group: &Group) -> Vec<&'static str> {
    group.names.iter().copied().filter(|name| !is_installed(name)).collect()
}

/// Fetches apt's package lists once a run.
pub(crate) fn update_lists() -> Result<()> {
    static DONE: std::sync::OnceLock<()> = std::sync::OnceLock::new();
    if DONE.get().is_none() {
        process::output(apt_get().arg("update"))?;
        DONE.get_or_init(|| ());
    }
    Ok(())
}

/// `apt-get`, asking nothing.
pub(crate) fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive").args(["-q", "-o", "DPkg::Lock::Timeout=300"]);
    command
}

fn is_installed(name: &str) -> bool {
    let query = process::output(Command::new("dpkg-query").args(["-W", "-f", "${db:Status-Status}", name]));
    query.is_ok_and(|status| status.trim() == "installed")
}
