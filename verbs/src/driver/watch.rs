//! Looks now and then whether the interface is still what it was.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use uroce_nic::host::{Change, Changes, HostError, Interface};
use uroce_stack::Instant;

/// How often to look while spinning: looking costs a system call.
const INTERVAL: Duration = Duration::from_millis(10);

/// The changes of one interface.
pub(crate) struct Watch {
    changes: Changes,
    name: String,
    next: Instant,
}

impl Watch {
    pub(crate) fn new(interface: &Interface) -> Result<Self, HostError> {
        let changes = Changes::watch(interface)?;
        Ok(Self { changes, name: interface.name.clone(), next: Instant::ZERO })
    }

    /// What has changed, if it is time to look. `awoken`: the driver has slept, perhaps until the descriptor
    /// of this was readable.
    pub(crate) fn look(&mut self, now: Instant, awoken: bool) -> Option<Change> {
        if now < self.next && !awoken {
            return None;
        }
        let change = self.changes.poll();
        if change.is_none() {
            self.next = now + INTERVAL;
        }
        change
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
