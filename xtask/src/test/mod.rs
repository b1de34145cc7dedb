//! `cargo xtask test`: everything a change must pass, with a table at the end.

use std::process::{Command, ExitCode};
use std::time::Instant;

use crate::error::Result;
use crate::progress::Progress;
use crate::{interop, machine, packages, process};

mod steps;
mod summary;
mod tally;

use steps::{Step, Work};
use summary::{Line, Verdict};
use tally::Tally;

/// What to test and how to say it.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Leave out the tests against the real rdma_rxe
    #[arg(long)]
    quick: bool,
    /// Print the summary as JSON on standard output, everything else on standard error
    #[arg(long)]
    json: bool,
}

/// Runs all steps, also after one has failed.
pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode> {
    let progress = Progress::new("test");
    install(&progress);
    let mut lines = Vec::new();
    for step in steps::all() {
        progress.say(format!("--- {} ---", step.name));
        lines.push(line(&step, arguments));
    }
    if arguments.json {
        println!("{}", summary::json(&lines, progress.elapsed()));
        eprintln!("{}", summary::text(&lines, progress.elapsed()));
    } else {
        println!("{}", summary::text(&lines, progress.elapsed()));
    }
    Ok(if summary::failed(&lines) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Installs what the steps need. What cannot be installed shows as skipped steps.
fn install(progress: &Progress) {
    for group in [&packages::BUILD, &packages::NETWORK] {
        if let Err(failure) = packages::ensure(group, progress) {
            progress.say(failure);
        }
    }
}

fn line(step: &Step, arguments: &Arguments) -> Line {
    let start = Instant::now();
    let (verdict, tally) = match reason_to_skip(step, arguments) {
        Some(reason) => (Verdict::Skipped(reason), Tally::default()),
        None => carry_out(step, arguments),
    };
    let verdict = if machine::is_ci() { nothing_skipped(verdict, &tally) } else { verdict };
    Line { step: step.name, time: start.elapsed(), verdict, tally }
}

fn reason_to_skip(step: &Step, arguments: &Arguments) -> Option<String> {
    let left_out = arguments.quick && matches!(step.work, Work::Interop);
    if left_out { Some("left out by --quick".into()) } else { (step.missing)() }
}

/// Where continuous integration runs, a test that did not run is a failure.
fn nothing_skipped(verdict: Verdict, tally: &Tally) -> Verdict {
    match verdict {
        Verdict::Skipped(reason) => Verdict::Failed(format!("skipped, but CI skips nothing: {reason}")),
        Verdict::Passed if !tally.skipped.is_empty() => {
            Verdict::Failed("tests were skipped, but CI skips nothing".into())
        }
        other => other,
    }
}

fn carry_out(step: &Step, arguments: &Arguments) -> (Verdict, Tally) {
    let mut tally = Tally::default();
    let result = match step.work {
        Work::Command(command) => watched(command(), arguments, &mut tally),
        Work::Tests(selection) => tests(selection, arguments, &mut tally),
        Work::Interop => interop::watched(&mut |line| heard(line, arguments, &mut tally)),
    };
    let verdict = match result {
        Ok(true) => Verdict::Passed,
        Ok(false) => Verdict::Failed("see above".into()),
        Err(failure) => Verdict::Failed(failure.to_string()),
    };
    (verdict, tally)
}

fn tests(selection: &[&str], arguments: &Arguments, tally: &mut Tally) -> Result<bool> {
    let record = steps::record();
    let _ = std::fs::remove_file(&record); // one of an earlier run would speak for this one
    let passed = watched(steps::runner(selection), arguments, tally)?;
    tally.skips(&std::fs::read_to_string(record).unwrap_or_default());
    Ok(passed)
}

fn watched(command: Command, arguments: &Arguments, tally: &mut Tally) -> Result<bool> {
    Ok(process::watch(command, |line| heard(line, arguments, tally))?.success())
}

/// Passes a line of a step on to the terminal.
fn heard(line: &str, arguments: &Arguments, tally: &mut Tally) {
    if arguments.json {
        eprintln!("{line}");
    } else {
        println!("{line}");
    }
    tally.line(line);
}
