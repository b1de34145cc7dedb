//! `uroce serve`, `get`, `put` and `cas`: memory or a file that others reach over the wire.
//!
//! The server grants a connection with a [`card`] that says where the memory is; from then on clients READ, WRITE and
//! compare words by themselves, and the server's application has no part in it.

mod allow;
mod card;
mod cas;
mod clients;
mod get;
mod memory;
mod number;
mod put;
mod rate;
mod remote;
mod serve;
#[cfg(test)]
mod tests;

pub(crate) use cas::{CasArgs, main as cas};
pub(crate) use get::{GetArgs, main as get};
pub(crate) use put::{PutArgs, main as put};
pub(crate) use serve::{ServeArgs, main as serve};

use clap::Args;

use crate::cli::DeviceArgs;

/// The port of the connection manager, unless told otherwise.
const PORT: u16 = 7471;

/// What every client takes.
#[derive(Args, Clone, Debug)]
pub(crate) struct ServerArgs {
    /// Interface
    iface: String,
    /// Where `uroce serve` runs
    host: String,
    /// Port of the connection manager
    #[arg(short, long, default_value_t = PORT, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    #[command(flatten)]
    device: DeviceArgs,
}
