//! Network namespaces and what joins them. Everything lives in namespaces named `uroce-<pid>-<part>`; deleting the
//! namespace deletes its interfaces with it.

use std::path::Path;
use std::process::Command;

use crate::cleanup::Guard;
use crate::error::Result;
use crate::process::output;

/// A network namespace, deleted when dropped.
#[derive(Debug)]
pub(crate) struct Namespace {
    name: String,
    _guard: Guard,
}

impl Namespace {
    /// Makes the namespace of one part of this run, with its loopback interface up.
    pub(crate) fn new(part: &str) -> Result<Self> {
        let name = format!("uroce-{}-{part}", std::process::id());
        output(Command::new("ip").args(["netns", "add", &name]))?;
        let doomed = name.clone();
        let guard = Guard::new(move || delete(&doomed));
        let namespace = Self { name, _guard: guard };
        namespace.ip("link set lo up")?;
        Ok(namespace)
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// `ip` inside the namespace, with the words of `arguments`.
    pub(crate) fn ip(&self, arguments: &str) -> Result<()> {
        output(Command::new("ip").args(["-n", &self.name]).args(arguments.split_whitespace())).map(drop)
    }

    /// A command that will run inside the namespace, and that the kernel kills should this process vanish.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, "setpriv", "--pdeathsig", "KILL", "--"]).arg(program);
        command
    }

    /// Makes IPv6 addresses usable at once: nobody else is on these networks whose address could be a duplicate.
    pub(crate) fn skip_duplicate_detection(&self, interface: &str) -> Result<()> {
        let write = format!("echo 0 > /proc/sys/net/ipv6/conf/{interface}/accept_dad");
        output(self.command("sh").args(["-c", &write])).map(drop)
    }
}

/// A cable: interface `near.1` in namespace `near.0`, `far.1` in `far.0`, one queue each.
pub(crate) fn join(near: (&Namespace, &str), far: (&Namespace, &str)) -> Result<()> {
    near.0.ip(&format!(
        "link add {} numrxqueues 1 numtxqueues 1 type veth peer name {} numrxqueues 1 numtxqueues 1 netns {}",
        near.1, far.1, far.0.name
    ))
}

/// Deletes namespaces of earlier runs that were killed before they could clean up: those whose process is gone.
pub(crate) fn sweep() {
    let Ok(list) = output(Command::new("ip").args(["netns", "list"])) else { return };
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    for name in names.filter(|name| is_orphan(name)) {
        delete(name);
    }
}

fn is_orphan(name: &str) -> bool {
    let Some(pid) = name.strip_prefix("uroce-").and_then(|rest| rest.split('-').next()) else { return false };
    pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists()
}

fn delete(name: &str) {
    if let Err(error) = output(Command::new("ip").args(["netns", "delete", name])) {
        eprintln!("xtask: could not delete the namespace {name}: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::is_orphan;

    #[test]
    fn only_our_names_with_a_dead_process_are_orphans() {
        assert!(is_orphan("uroce-4194999-lab"));
        assert!(!is_orphan(&format!("uroce-{}-lab", std::process::id())));
        assert!(!is_orphan("uroce-nic-test"));
        assert!(!is_orphan("other-4194999-lab"));
    }
}
