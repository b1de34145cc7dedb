//! `cargo xtask interop`: our endpoint against the real rdma_rxe, both ways.

use std::process::{Command, ExitCode};

use crate::conformance::{self, Features};
use crate::error::Result;
use crate::lab::Lab;
use crate::progress::Progress;
use crate::{packages, process};

/// What to run.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Run only scenarios whose name contains this
    filter: Option<String>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// Runs the scenarios and prints their table.
pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode> {
    let mut words = Vec::new();
    words.extend(arguments.json.then_some("--json"));
    words.extend(arguments.filter.as_deref());
    let passed = with_guest(&words, |mut command| process::status(&mut command))?.success();
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs all scenarios, hands each line of their table to `each`, and says whether all passed.
pub(crate) fn watched(each: &mut dyn FnMut(&str)) -> Result<bool> {
    Ok(with_guest(&[], |command| process::watch(command, each))?.success())
}

/// Boots the guest and hands the command that runs the scenarios to `body`.
fn with_guest<T>(words: &[&str], body: impl FnOnce(Command) -> Result<T>) -> Result<T> {
    let progress = Progress::new("interop");
    packages::ensure(&packages::BUILD, &progress)?;
    let program = conformance::build(Features::All, &progress)?;
    let lab = Lab::start(&progress)?;
    progress.say("running the scenarios");
    let mut command = conformance::command(&program, &lab.network, ["run", "--uroce"]);
    command.arg(conformance::uroce()).args(words);
    body(command)
}
