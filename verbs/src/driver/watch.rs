//! Looks now and then whether the interface is still what it was.

use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use uroce_nic::host::{Change, Changes, HostError, Interface};
use uroce_stack::Instant;

use crate::gid::Gid;
use crate::os::is_readable;

/// How often to look while spinning: looking costs a system call.
const INTERVAL: Duration = Duration::from_millis(10);

/// The changes of one interface.
pub(crate) struct Watch {
    changes: Changes,
    name: String,
    index: u32,
    next: Instant,
    /// The kernel has told something since [`new_addresses`](Self::new_addresses) was asked.
    news: bool,
}

impl Watch {
    pub(crate) fn new(interface: &Interface) -> Result<Self, HostError> {
        let changes = Changes::watch(interface)?;
        let (name, index) = (interface.name.clone(), interface.index);
        // Something may have changed between the finding and the watching.
        Ok(Self { changes, name, index, next: Instant::ZERO, news: true })
    }

    /// What has changed, if it is time to look. `awoken`: the driver has slept, perhaps until the descriptor
    /// of this was readable.
    pub(crate) fn look(&mut self, now: Instant, awoken: bool) -> Option<Change> {
        if now < self.next && !awoken {
            return None;
        }
        self.news |= is_readable(self.changes.fd());
        let change = self.changes.poll();
        if change.is_none() {
            self.next = now + INTERVAL;
        }
        change
    }

    /// The addresses of the interface, if they may have changed.
    pub(crate) fn new_addresses(&mut self) -> Option<Vec<IpAddr>> {
        if !std::mem::take(&mut self.news) {
            return None;
        }
        // Whoever drives may be in another network namespace, where the name is somebody else's or nobody's.
        let interface = Interface::find(&self.name).ok().filter(|found| found.index == self.index)?;
        Some(interface.gids().iter().map(|entry| Gid::from_bytes(entry.gid).ip()).collect())
    }

    /// Whether the interface was taken down, rather than having lost its carrier, which may come back any
    /// moment.
    pub(crate) fn was_taken_down(&self) -> bool {
        Interface::find(&self.name).is_ok_and(|interface| !interface.up)
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.changes.fd()
    }
}
