//! What this machine can do.

use std::process::Command;
use std::sync::OnceLock;

use crate::process;

/// Whether this process may do everything (effective user 0).
pub(crate) fn is_root() -> bool {
    static ROOT: OnceLock<bool> = OnceLock::new();
    *ROOT.get_or_init(|| process::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0"))
}

/// Whether a continuous integration run says that nothing may be skipped.
pub(crate) fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

/// Why network namespaces cannot be made here, or nothing when they can.
pub(crate) fn namespaces_missing() -> Option<String> {
    if !is_root() {
        return Some("needs root, to make network namespaces: run it as root".into());
    }
    if !process::exists("ip") {
        return Some("needs the command `ip`: apt-get install iproute2".into());
    }
    let name = format!("uroce-{}-probe", std::process::id());
    if let Err(error) = process::output(Command::new("ip").args(["netns", "add", &name])) {
        return Some(format!("the kernel refuses network namespaces: {error}"));
    }
    // A namespace that could be added can be deleted; nothing is in it.
    let _ = process::output(Command::new("ip").args(["netns", "delete", &name]));
    None
}

/// Why packages cannot be installed here, or nothing when they can.
pub(crate) fn apt_missing() -> Option<String> {
    if !process::exists("apt-get") {
        return Some("needs Debian's apt-get".into());
    }
    (!is_root()).then(|| "needs root, to install packages: run it as root".into())
}
