//! Ctrl-C: every loop looks whether it was asked to end, so that everything is dropped and detached on the way out.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::clock::pause;
use crate::error::{Failure, Result};

static PENDING: AtomicBool = AtomicBool::new(false);

/// From now on SIGINT, SIGTERM and SIGHUP end the command at its next [`check`]; a second one ends it at once.
pub(crate) fn install() -> Result<()> {
    ctrlc::set_handler(|| {
        if PENDING.swap(true, Ordering::Relaxed) {
            // The kernel detaches what a process leaves behind; only a demo's namespaces would stay.
            std::process::exit(i32::from(Failure::Interrupted.status()));
        }
    })
    .map_err(|error| Failure::new(format!("cannot handle Ctrl-C: {error}")))
}

/// Ends the command at its next [`check`], as a signal would.
pub(crate) fn ask() {
    PENDING.store(true, Ordering::Relaxed);
}

/// Fails once the command was asked to end.
#[inline]
pub(crate) fn check() -> Result<()> {
    if PENDING.load(Ordering::Relaxed) { Err(Failure::Interrupted) } else { Ok(()) }
}

/// Pauses, unless the command was asked to end.
pub(crate) fn pause_unless_asked(time: Duration) -> Result<()> {
    check()?;
    pause(time);
    check()
}
