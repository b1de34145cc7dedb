//! `cargo xtask demo`: builds the `uroce` command and lets it show every operation.

use std::path::Path;
use std::process::{Command, ExitCode};

use crate::error::Result;
use crate::progress::Progress;
use crate::{command, machine, packages, process};

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
    let program = command::build(missing.is_some(), &progress)?;
    let status = process::status(&mut demo(&program, arguments, missing.is_some()))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Installs what AF_XDP between namespaces takes; says why it cannot be had, if so.
fn missing(progress: &Progress) -> Option<String> {
    let installed = [&packages::BUILD, &packages::NETWORK].map(|group| packages::ensure(group, progress));
    let failure = installed.into_iter().find_map(Result::err).map(|failure| failure.to_string());
    failure.or_else(machine::namespaces_missing)
}

fn demo(program: &Path, arguments: &Arguments, portable: bool) -> Command {
    let mut command = Command::new(program);
    command.arg("demo").args(portable.then_some("--cable")).args(arguments.json.then_some("--json"));
    command
}
