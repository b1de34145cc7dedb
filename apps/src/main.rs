//! The `uroce` command: is this machine fit, what does a port look like, does a peer answer, and how fast is it.
//!
//! One file a subcommand; what they share lies beside them. Results go to standard output, everything else to
//! standard error. Nothing here outlives the process: every loop looks for Ctrl-C, so that devices are dropped, and
//! with them detached, whatever way a command ends.

mod cli;
mod clock;
mod cm;
mod control;
mod demo;
mod device;
mod devinfo;
mod doctor;
mod error;
mod export;
mod idle;
mod interrupt;
mod out;
mod perf;
mod ping;
mod pingpong;
mod progress;
mod silence;
mod stat;
mod stats;
mod table;
mod tcp;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use tracing::level_filters::LevelFilter;

use cli::{Cli, Command};
use error::{Failure, Result};

fn main() -> ExitCode {
    let cli = Cli::parse();
    log_to_stderr(cli.verbose);
    match interrupt::install().and_then(|()| run(cli)) {
        Ok(code) => code,
        Err(failure) => report(&failure),
    }
}

fn run(cli: Cli) -> Result<ExitCode> {
    let done = |()| ExitCode::SUCCESS;
    match cli.command {
        Command::Doctor(args) => doctor::main(&args),
        Command::Devinfo(args) => devinfo::main(&args, cli.verbose > 0).map(done),
        Command::Stat(args) => stat::main(&args).map(done),
        Command::Pingpong(args) => pingpong::main(&args).map(done),
        Command::Ping(args) => ping::main(&args, cli.verbose > 0).map(done),
        Command::Serve(args) => export::serve(&args).map(done),
        Command::Get(args) => export::get(&args).map(done),
        Command::Put(args) => export::put(&args).map(done),
        Command::Cas(args) => export::cas(&args).map(done),
        Command::Bw(args) => perf::bw(&args).map(done),
        Command::Lat(args) => perf::lat(&args).map(done),
        Command::Demo(args) => demo::main(&args).map(done),
        Command::DemoPeer(args) => demo::peer(&args).map(done),
    }
}

fn report(failure: &Failure) -> ExitCode {
    match failure {
        Failure::Usage(text) => Cli::command().error(clap::error::ErrorKind::ValueValidation, text).exit(),
        // As programs do that are ended by SIGPIPE.
        Failure::OutputClosed => {}
        failure => out::note(format_args!("uroce: {failure}")),
    }
    ExitCode::from(failure.status())
}

fn log_to_stderr(verbose: u8) {
    let level = match verbose {
        0 => LevelFilter::WARN,
        1 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(level)
        .with_target(false)
        .with_ansi(false)
        .without_time()
        .init();
}
