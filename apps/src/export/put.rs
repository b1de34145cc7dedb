//! `uroce put`: writes into what a server shows.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use uroce::SendWr;

use super::get::piece;
use super::rate::Rate;
use super::remote::{CHUNK, Remote, SLOTS};
use super::{ServerArgs, number};
use crate::clock::Stopwatch;
use crate::error::{Context, Failure, Result};
use crate::out;
use crate::progress::Progress;

const AFTER_HELP: &str = "\
Examples:
  uroce put eth0 192.0.2.1 disk.img              into what `uroce serve` on 192.0.2.1 shows
  echo hello | uroce put eth0 192.0.2.1 - --offset 4K";

/// `uroce put`
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct PutArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// File to send, or - for standard input
    file: PathBuf,
    /// Where the first byte goes
    #[arg(long, default_value = "0", value_parser = number::bytes, value_name = "BYTES")]
    offset: u64,
    /// Print figures as JSON
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub(crate) fn main(args: &PutArgs) -> Result<()> {
    let mut source = Source::open(&args.file)?;
    let (_ctx, mut remote) = Remote::open(&args.server)?;
    remote.check_writable()?;
    // Of a file it is known beforehand whether it fits.
    remote.part(args.offset, source.length)?;
    let rate = send(&mut remote, args.offset, &mut source, !args.json)?;
    remote.close()?;
    if args.json { out::json(&rate) } else { out::line(format_args!("{}: {rate}", args.file.display())) }
}

/// Where data comes from.
pub(super) struct Source {
    from: Box<dyn Read>,
    /// Of a file.
    pub(super) length: Option<u64>,
}

impl Source {
    pub(super) fn new(from: impl Read + 'static, length: Option<u64>) -> Self {
        Self { from: Box::new(from), length }
    }

    fn open(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::new(io::stdin(), None));
        }
        let shown = path.display();
        let file = File::open(path).context(format_args!("cannot open {shown}"))?;
        let facts = file.metadata().context(format_args!("cannot look at {shown}"))?;
        let length = facts.is_file().then_some(facts.len());
        Ok(Self::new(file, length))
    }

    /// Fills `piece` as far as there is data; returns how far.
    fn fill(&mut self, piece: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while filled < piece.len() {
            match self.from.read(&mut piece[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => crate::interrupt::check()?,
                Err(error) => return Err(Failure::new(format!("cannot read what is to be sent: {error}"))),
            }
        }
        Ok(filled)
    }
}

/// WRITEs all that the source has, several pieces at a time.
pub(super) fn send(remote: &mut Remote, offset: u64, source: &mut Source, shown: bool) -> Result<Rate> {
    let stopwatch = Stopwatch::start();
    let mut progress = Progress::new("put", shown && source.length.is_some());
    let room = remote.part(offset, None)?;
    let (mut bytes, mut posted, mut done) = (0, 0, 0);
    let mut data = vec![0; CHUNK];
    loop {
        let length = source.fill(&mut data)?;
        if length == 0 {
            break;
        }
        remote.part(offset, Some(bytes + length as u64))?;
        if posted == done + SLOTS as u64 {
            done += remote.wait()? as u64;
        }
        let (to, slot) = piece(room, posted);
        let slot = slot.start..slot.start + length;
        remote.room.write_at(slot.start, &data[..length])?;
        remote.post(SendWr::rdma_write(posted, remote.room.sge(slot), to))?;
        (bytes, posted) = (bytes + length as u64, posted + 1);
        progress.draw(bytes, source.length.unwrap_or(bytes));
    }
    while done < posted {
        done += remote.wait()? as u64;
    }
    progress.set(bytes, bytes);
    Ok(Rate::new(bytes, stopwatch.seconds()))
}
