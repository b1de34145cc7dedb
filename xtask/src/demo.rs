//! `cargo xtask demo`: builds the `uroce` command and lets it show every operation.

use std::process::{Command, ExitCode};

use crate::error::Result;
use crate::progress::Progress;
use crate::{machine, packages, place, process};

/// How to say what came of it.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Two processes in two network namespaces over AF_XDP where the machine can do that, otherwise one over a cable in
/// memory, with a word about what is missing.
pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode> {
    let progress = Progress::new("demo");
    let missing = missing(&progress);
    if let Some(reason) = &missing {
        progress.say(format!("over a cable in memory instead of AF_XDP between two processes: {reason}"));
    }
    progress.say("building the uroce command");
    process::run(&mut build(missing.is_some()))?;
    let status = process::status(&mut demo(arguments, missing.is_some()))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Installs what AF_XDP between namespaces takes; says why it cannot be had, if so.
fn missing(progress: &Progress) -> Option<String> {
    let installed = [&packages::BUILD, &packages::NETWORK].map(|group| packages::ensure(group, progress));
    let failure = installed.into_iter().find_map(Result::err).map(|failure| failure.to_string());
    failure.or_else(machine::namespaces_missing)
}

fn build(portable: bool) -> Command {
    let mut command = Command::new("cargo");
    command.args(["build", "--release", "-p", "uroce-cli"]).current_dir(place::root());
    command.args(portable.then_some("--no-default-features"));
    command
}

fn demo(arguments: &Arguments, portable: bool) -> Command {
    let mut command = Command::new(place::target().join("release/uroce"));
    command.arg("demo").args(portable.then_some("--cable")).args(arguments.json.then_some("--json"));
    command
}
