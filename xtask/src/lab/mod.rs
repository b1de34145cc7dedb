//! `cargo xtask lab`: a guest whose kernel carries the real rdma_rxe, emulated by QEMU.

use std::process::ExitCode;

use crate::error::{Failure, Result};
use crate::progress::Progress;
use crate::{conformance, machine, packages, process};

pub(crate) mod agent;
mod cpio;
mod guest;
mod image;
mod kernel;
pub(crate) mod network;
mod recipe;
mod sources;

pub(crate) use guest::Guest;
pub(crate) use network::Network;

/// What to do with the guest.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Build the guest's image (about a minute), unless the one there is current
    Build,
    /// Boot the guest and leave it running until Ctrl-C
    Boot,
    /// Boot the guest and run one command in it
    Run {
        /// The command and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Boot the guest and check its rdma_rxe and agent against themselves
    Selftest,
    #[command(hide = true)]
    InGuest {
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
}

/// Carries out one lab command.
pub(crate) fn main(command: Command) -> Result<ExitCode> {
    match command {
        Command::Build => build(),
        Command::Boot => boot(),
        Command::Run { words } => run(&words),
        Command::Selftest => selftest(),
        Command::InGuest { words } => agent::run_here(&words),
    }
}

/// Why this machine cannot run the guest, or nothing when it can.
pub(crate) fn missing() -> Option<String> {
    let apt = || if packages::missing(&packages::LAB).is_empty() { None } else { machine::apt_missing() };
    machine::namespaces_missing().or_else(apt)
}

/// Builds the image if need be.
pub(crate) fn prepare(progress: &Progress) -> Result<()> {
    packages::ensure(&packages::NETWORK, progress)?;
    if let Some(reason) = missing() {
        return Err(Failure::new(format!("the guest cannot run here: {reason}")));
    }
    image::Image::ensure(progress).map(drop)
}

/// The network with the booted guest on it. Dropped in this order: guest first.
#[derive(Debug)]
pub(crate) struct Lab {
    /// The guest.
    pub(crate) guest: Guest,
    /// The network.
    pub(crate) network: Network,
}

impl Lab {
    /// Builds what is missing and boots.
    pub(crate) fn start(progress: &Progress) -> Result<Self> {
        prepare(progress)?;
        packages::ensure(&packages::LAB, progress)?;
        let network = Network::new()?;
        let guest = Guest::boot(&network, progress)?;
        Ok(Self { guest, network })
    }
}

fn build() -> Result<ExitCode> {
    let progress = Progress::new("lab");
    prepare(&progress)?;
    progress.say("the guest's image is current");
    Ok(ExitCode::SUCCESS)
}

fn boot() -> Result<ExitCode> {
    let lab = Lab::start(&Progress::new("lab"))?;
    let endpoint = lab.network.endpoint().name();
    println!("The guest runs until Ctrl-C.");
    println!(
        "  its addresses   10.1.0.1 and fd00::1, rdma_rxe device rxe0, reached from the namespace {endpoint}"
    );
    println!("  our interface   {} in that namespace: ip netns exec {endpoint} bash", network::INTERFACE);
    println!("  its agent       {} (JSON lines, see conformance/agent/agent.py)", agent::address());
    println!("  its console     {}", lab.guest.console().display());
    lab.guest.wait()?;
    Err(Failure::new("the guest ended by itself; its console tells why"))
}

fn run(words: &[String]) -> Result<ExitCode> {
    let lab = Lab::start(&Progress::new("lab"))?;
    agent::run(&lab.network, words)
}

fn selftest() -> Result<ExitCode> {
    let progress = Progress::new("lab");
    let program = conformance::build(conformance::Features::Portable, &progress)?;
    let lab = Lab::start(&progress)?;
    let status = process::status(&mut conformance::command(&program, &lab.network, ["selftest"]))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
