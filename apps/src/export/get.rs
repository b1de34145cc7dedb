//! `uroce get`: reads what a server shows.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use uroce::{RemoteMr, SendWr};

use super::rate::Rate;
use super::remote::{CHUNK, Remote, SLOTS};
use super::{ServerArgs, number};
use crate::clock::Stopwatch;
use crate::error::{Context, Failure, Result};
use crate::out;
use crate::progress::Progress;

const AFTER_HELP: &str = "\
Examples:
  uroce get eth0 192.0.2.1 -o copy.img                  all that `uroce serve` on 192.0.2.1 shows
  uroce get eth0 192.0.2.1 --offset 4K --length 16 | xxd";

/// `uroce get`
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct GetArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// First byte
    #[arg(long, default_value = "0", value_parser = number::bytes, value_name = "BYTES")]
    offset: u64,
    /// How many bytes [default: all from the offset on]
    #[arg(long, value_parser = number::bytes, value_name = "BYTES")]
    length: Option<u64>,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print figures as JSON
    #[arg(long, requires = "output")]
    json: bool,
}

/// Runs it.
pub(crate) fn main(args: &GetArgs) -> Result<()> {
    let (_ctx, mut remote) = Remote::open(&args.server)?;
    let part = remote.part(args.offset, args.length)?;
    let rate = match &args.output {
        Some(path) => {
            let mut file = File::create(path).context(format_args!("cannot write {}", path.display()))?;
            fetch(&mut remote, part, &mut file, !args.json)?
        }
        None => fetch(&mut remote, part, &mut io::stdout().lock(), true)?,
    };
    remote.close()?;
    match (&args.output, args.json) {
        (Some(_), true) => out::json(&rate),
        (Some(path), false) => out::line(format_args!("{}: {rate}", path.display())),
        // Standard output has the data.
        (None, _) => {
            out::note(rate);
            Ok(())
        }
    }
}

/// READs a part in order, several pieces at a time, and writes it out.
pub(super) fn fetch(remote: &mut Remote, part: RemoteMr, to: &mut impl Write, shown: bool) -> Result<Rate> {
    let stopwatch = Stopwatch::start();
    let progress = Progress::new("get", shown);
    let pieces = part.len.div_ceil(CHUNK as u64);
    let (mut asked, mut arrived, mut written) = (0, 0, 0);
    while written < pieces {
        while asked < pieces && asked < written + SLOTS as u64 {
            let (from, into) = piece(part, asked);
            remote.post(SendWr::rdma_read(asked, remote.room.sge(into), from))?;
            asked += 1;
        }
        if arrived == written {
            // READs complete in the order in which they were posted.
            arrived += remote.wait()? as u64;
        }
        let data = remote.room.to_vec(piece(part, written).1)?;
        to.write_all(&data).map_err(unwritten)?;
        written += 1;
        progress.draw(written, pieces);
    }
    to.flush().map_err(unwritten)?;
    Ok(Rate::new(part.len, stopwatch.seconds()))
}

/// Where a piece is on both sides.
pub(super) fn piece(part: RemoteMr, number: u64) -> (RemoteMr, std::ops::Range<usize>) {
    let from = part.at(number * CHUNK as u64);
    let start = (number % SLOTS as u64) as usize * CHUNK;
    let length = from.len.min(CHUNK as u64);
    (RemoteMr { len: length, ..from }, start..start + length as usize)
}

fn unwritten(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::OutputClosed,
        _ => Failure::new(format!("cannot write what was read: {error}")),
    }
}
