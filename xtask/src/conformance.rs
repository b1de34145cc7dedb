//! The conformance program: built here, run in the endpoint's namespace.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Result;
use crate::lab::{Network, agent, network};
use crate::place;
use crate::process::run;
use crate::progress::Progress;

/// How to build it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Features {
    /// With AF_XDP.
    All,
    /// Without anything that needs C build tools.
    Portable,
}

/// Builds the program and returns where it is.
pub(crate) fn build(features: Features, progress: &Progress) -> Result<PathBuf> {
    progress.say("building the conformance program");
    let mut command = Command::new("cargo");
    command
        .args(["build", "--quiet", "-p", "uroce-conformance", "-p", "uroce-cli"])
        .current_dir(place::root());
    if features == Features::Portable {
        command.arg("--no-default-features");
    }
    run(&mut command)?;
    Ok(place::target().join("debug/uroce-conformance"))
}

/// The `uroce` command, built with the program.
pub(crate) fn uroce() -> PathBuf {
    place::target().join("debug/uroce")
}

/// The program, to be run in the endpoint's namespace of a lab; it is told where the agent and the interface are.
pub(crate) fn command(
    program: &Path,
    network: &Network,
    words: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Command {
    let mut command = network.endpoint().command(program);
    command.args(["--agent", &agent::address(), "--interface", network::INTERFACE]).args(words);
    command
}
