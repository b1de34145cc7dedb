//! Project commands: `cargo xtask test`, `demo`, `lab`, `interop`, `bench`. Each does everything it needs, installs
//! what is missing on a Debian machine and says why, and leaves nothing behind.
#![allow(
    clippy::disallowed_methods,
    reason = "these are commands for people: they wait and they time themselves"
)]

use std::process::ExitCode;

use clap::Parser;

mod bench;
mod cleanup;
mod command;
mod conformance;
mod demo;
mod error;
mod interop;
mod lab;
mod machine;
mod netns;
mod packages;
mod place;
mod process;
mod progress;
mod test;

/// Project commands.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Command {
    /// Every operation between two endpoints, each byte checked
    Demo(demo::Arguments),
    /// Formatting, lints, all tests, documentation, and the tests against the real rdma_rxe
    Test(test::Arguments),
    /// Our endpoint against the real rdma_rxe in a guest, both ways
    Interop(interop::Arguments),
    /// The figures of the README, and UCX over TCP beside them
    Bench(bench::Arguments),
    /// A guest with the real rdma_rxe
    #[command(subcommand)]
    Lab(lab::Command),
}

fn main() -> ExitCode {
    let command = Command::parse();
    let result = cleanup::on_interrupt().and_then(|()| dispatch(command));
    cleanup::yield_to_cleaning();
    result.unwrap_or_else(|failure| {
        eprintln!("xtask: {failure}");
        ExitCode::FAILURE
    })
}

fn dispatch(command: Command) -> error::Result<ExitCode> {
    match command {
        Command::Demo(arguments) => demo::main(&arguments),
        Command::Test(arguments) => test::main(&arguments),
        Command::Interop(arguments) => interop::main(&arguments),
        Command::Bench(arguments) => bench::main(&arguments),
        Command::Lab(command) => lab::main(command),
    }
}
