//! What a server shows: anonymous memory, or a file.

use std::fs::OpenOptions;
use std::path::Path;

use memmap2::{MmapMut, MmapRaw};
use uroce::{Access, MemoryRegion, ProtectionDomain};

use super::card::Card;
use crate::error::{Context, Failure, Result};

/// Mapped memory. Every client has a registration of its own of it.
#[derive(Debug)]
pub(super) struct Memory {
    map: MmapRaw,
    writable: bool,
}

/// The registration of one client.
#[derive(Debug)]
pub(super) struct Registered<'m> {
    region: MemoryRegion,
    memory: &'m Memory,
}

impl Memory {
    /// Zeroed memory of our own.
    pub(super) fn anonymous(size: u64) -> Result<Self> {
        let wanted = usize::try_from(size).map(MmapMut::map_anon);
        let map =
            wanted.map_err(|_| too_much(size))?.context(format_args!("cannot get {size} bytes of memory"))?;
        Ok(Self { map: map.into(), writable: true })
    }

    /// A file as long as it is now; for writing, too, or for reading only.
    pub(super) fn file(path: &Path, writable: bool) -> Result<Self> {
        let shown = path.display();
        let opened = OpenOptions::new().read(true).write(writable).open(path);
        let file = opened.context(format_args!("cannot open {shown}"))?;
        let facts = file.metadata().context(format_args!("cannot look at {shown}"))?;
        if !facts.is_file() || facts.len() == 0 {
            return Err(Failure::new(format!(
                "{shown} is empty or no plain file, so there is nothing to show: make one as long as you need with \
                 `truncate -s SIZE {shown}`"
            )));
        }
        let len = usize::try_from(facts.len()).map_err(|_| too_much(facts.len()))?;
        let options = memmap2::MmapOptions::new().len(len).clone();
        let map = if writable { options.map_raw(&file) } else { options.map_raw_read_only(&file) };
        Ok(Self { map: map.context(format_args!("cannot map {shown}"))?, writable })
    }

    pub(super) fn len(&self) -> usize {
        self.map.len()
    }

    pub(super) const fn is_writable(&self) -> bool {
        self.writable
    }

    /// Shows it to the queue pairs of a domain.
    pub(super) fn register(&self, pd: &ProtectionDomain) -> Result<Registered<'_>> {
        let reading = Access::REMOTE_READ;
        let writing = Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_ATOMIC;
        let access = if self.writable { reading | writing } else { reading };
        // SAFETY: `Registered` borrows the mapping, which is therefore there until the region is dropped. It is mapped
        // writable exactly if a right to write is given, and `MmapRaw` hands out no reference to it. A file that somebody
        // truncates meanwhile is the documented way to end the server.
        let region = unsafe { pd.reg_mr_raw_iova(self.map.as_mut_ptr(), self.map.len(), 0, access) }?;
        Ok(Registered { region, memory: self })
    }
}

impl Registered<'_> {
    /// What its client has to know.
    pub(super) fn card(&self) -> Card {
        Card { memory: self.region.remote(), writable: self.memory.writable }
    }
}

fn too_much(size: u64) -> Failure {
    Failure::new(format!("{size} bytes are more than this machine can address"))
}
