//! `uroce cas`: compares a word that a server shows, and swaps it.

use clap::Args;
use serde::Serialize;
use uroce::SendWr;

use super::remote::Remote;
use super::{ServerArgs, number};
use crate::error::{Failure, Result};
use crate::out;

const AFTER_HELP: &str = "\
Examples:
  uroce cas eth0 192.0.2.1 0 0 1        takes a lock that is the word at offset 0
  uroce cas eth0 192.0.2.1 0 1 0        gives it back

Words have 64 bits, in the byte order of the server. Exit status: 0 swapped, 1 not swapped or failed.";

/// `uroce cas`
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct CasArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Where the word is, a multiple of 8
    #[arg(value_parser = number::bytes)]
    offset: u64,
    /// What it has to be
    #[arg(value_parser = number::word)]
    expected: u64,
    /// What it then becomes
    #[arg(value_parser = number::word)]
    new: u64,
    /// Print what was found as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Found {
    offset: u64,
    found: u64,
    swapped: bool,
}

/// Runs it.
pub(crate) fn main(args: &CasArgs) -> Result<()> {
    let &CasArgs { offset, expected, new, .. } = args;
    if offset % 8 != 0 {
        return Err(Failure::usage(format!(
            "offset {offset} is not a multiple of 8, where words of 64 bits are"
        )));
    }
    let (_ctx, mut remote) = Remote::open(&args.server)?;
    let found = swap(&mut remote, offset, expected, new)?;
    remote.close()?;
    let swapped = found == expected;
    if args.json {
        out::json(&Found { offset, found, swapped })?;
    } else if swapped {
        out::line(format_args!("the word at {offset} was {found:#x} and is {new:#x} now"))?;
    }
    if swapped {
        return Ok(());
    }
    Err(Failure::new(format!("the word at {offset} is {found:#x}, not {expected:#x}: nothing was changed")))
}

/// Compares and swaps; returns what the word was.
pub(super) fn swap(remote: &mut Remote, offset: u64, expected: u64, new: u64) -> Result<u64> {
    remote.check_writable()?;
    let word = remote.part(offset, Some(8))?;
    remote.post(SendWr::cmp_and_swp(0, remote.room.sge(..8), word, expected, new))?;
    remote.wait()?;
    Ok(remote.room.load_u64(0)?)
}
