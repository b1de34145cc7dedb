//! Two network namespaces and the veth pair between them, made with `ip` and gone when dropped.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::{Failure, Result};
use crate::out;

/// Carries path MTU 4096 with room for every header.
const MTU: u32 = 4200;

/// One end: a namespace and the interface in it, which have the same name.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) name: String,
    pub(crate) address: &'static str,
}

/// Both ends.
#[derive(Debug)]
pub(crate) struct Lab {
    pub(crate) server: End,
    pub(crate) client: End,
}

impl Lab {
    /// Makes it. What earlier runs left behind that were killed goes first.
    ///
    /// # Errors
    /// `ip` is absent, or may not.
    pub(crate) fn new() -> Result<Self> {
        sweep();
        let pid = std::process::id();
        let server = End::new(format!("uroce-{pid}-a"), "192.0.2.1")?;
        let client = End::new(format!("uroce-{pid}-b"), "192.0.2.2")?;
        let (a, b) = (&server.name, &client.name);
        ip(&format!(
            "-n {a} link add {a} numrxqueues 1 numtxqueues 1 mtu {MTU} type veth peer name {b} numrxqueues 1 \
             numtxqueues 1 mtu {MTU} netns {b}"
        ))?;
        server.configure()?;
        client.configure()?;
        Ok(Self { server, client })
    }
}

impl End {
    fn new(name: String, address: &'static str) -> Result<Self> {
        ip(&format!("netns add {name}"))?;
        Ok(Self { name, address })
    }

    fn configure(&self) -> Result<()> {
        let Self { name, address } = self;
        ip(&format!("-n {name} address add {address}/24 dev {name}"))?;
        ip(&format!("-n {name} link set lo up"))?;
        ip(&format!("-n {name} link set {name} up"))
    }

    /// A command that runs in the namespace.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }
}

impl Drop for End {
    fn drop(&mut self) {
        delete(&self.name);
    }
}

/// Deletes the namespaces of demos whose process is gone.
fn sweep() {
    let Ok(list) = ip_output("netns list") else { return };
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(|name| is_orphan(name)).for_each(delete);
}

fn is_orphan(name: &str) -> bool {
    let inner =
        name.strip_prefix("uroce-").and_then(|rest| rest.strip_suffix("-a").or(rest.strip_suffix("-b")));
    let pid = inner.filter(|pid| pid.parse::<u32>().is_ok());
    pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists())
}

/// The interface in it goes with it, and with that the other one.
fn delete(name: &str) {
    if let Err(failure) = ip(&format!("netns delete {name}")) {
        out::note(format_args!("uroce: could not delete the network namespace {name}: {failure}"));
    }
}

fn ip(words: &str) -> Result<()> {
    ip_output(words).map(drop)
}

fn ip_output(words: &str) -> Result<String> {
    let output = Command::new("ip").args(words.split_whitespace()).stdin(Stdio::null()).output();
    let output = output
        .map_err(|error| Failure::new(format!("cannot run `ip` ({error}); it is in package iproute2")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Failure::new(format!("`ip {words}` failed: {}", said.trim())))
}

#[cfg(test)]
mod tests {
    use super::is_orphan;

    #[test]
    fn only_namespaces_of_dead_demos_are_orphans() {
        assert!(is_orphan("uroce-4194999-a"));
        assert!(!is_orphan(&format!("uroce-{}-b", std::process::id())));
        assert!(!is_orphan("uroce-4194999-lab"));
        assert!(!is_orphan("uroce-x-a"));
        assert!(!is_orphan("other-4194999-a"));
    }
}
