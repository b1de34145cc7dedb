//! The `uroce` command as users get it: built with optimisation, run by `demo` and `bench`.

use std::path::PathBuf;
use std::process::Command;

use crate::error::Result;
use crate::progress::Progress;
use crate::{place, process};

/// Builds it, with AF_XDP or as it is `portable`, and returns where it is.
pub(crate) fn build(portable: bool, progress: &Progress) -> Result<PathBuf> {
    progress.say("building the uroce command");
    let mut command = Command::new("cargo");
    command.args(["build", "--release", "-p", "uroce-cli"]).current_dir(place::root());
    command.args(portable.then_some("--no-default-features"));
    process::run(&mut command)?;
    Ok(path())
}

/// Where it is once built.
pub(crate) fn path() -> PathBuf {
    place::target().join("release/uroce")
}
