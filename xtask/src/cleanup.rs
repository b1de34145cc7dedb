//! What must be undone however the command ends: by returning, by failing, by panicking or by Ctrl-C.
//!
//! A [`Guard`] undoes its thing when dropped. A signal drops nothing, so every guard's undoing is also kept in one
//! list, which the signal handler runs, newest first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Context, Result};

type Undo = Box<dyn FnOnce() + Send>;

struct Pending {
    next_id: u64,
    entries: Vec<(u64, Undo)>,
}

static PENDING: Mutex<Pending> = Mutex::new(Pending { next_id: 0, entries: Vec::new() });

/// Set once the signal handler cleans up.
static CLEANING: AtomicBool = AtomicBool::new(false);

/// Exit status of a command ended by Ctrl-C, as shells report it.
const INTERRUPTED: i32 = 130;

/// Undoes one thing when dropped, or when the process is interrupted, whichever comes first; never twice.
#[must_use = "dropping the guard undoes what it guards at once"]
#[derive(Debug)]
pub(crate) struct Guard {
    id: u64,
}

impl Guard {
    /// Keeps `undo` for later.
    pub(crate) fn new(undo: impl FnOnce() + Send + 'static) -> Self {
        let mut pending = pending();
        let id = pending.next_id;
        pending.next_id += 1;
        pending.entries.push((id, Box::new(undo)));
        Self { id }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        yield_to_cleaning();
        let undo = take(self.id);
        if let Some(undo) = undo {
            undo();
        }
    }
}

/// From now on SIGINT, SIGTERM and SIGHUP undo what is pending and end the process.
pub(crate) fn on_interrupt() -> Result<()> {
    ctrlc::set_handler(|| {
        CLEANING.store(true, Ordering::SeqCst);
        eprintln!("\nxtask: interrupted, cleaning up");
        while let Some(undo) = newest() {
            undo();
        }
        std::process::exit(INTERRUPTED);
    })
    .context("installing the signal handler")
}

/// Whether a signal is being answered: if it came from the terminal, the programs started here have got it too.
pub(crate) fn is_interrupted() -> bool {
    CLEANING.load(Ordering::SeqCst)
}

/// Never returns once the signal handler cleans up: it ends the process when it is done, and nobody else may before.
pub(crate) fn yield_to_cleaning() {
    while is_interrupted() {
        std::thread::park();
    }
}

fn pending() -> MutexGuard<'static, Pending> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take(id: u64) -> Option<Undo> {
    let mut pending = pending();
    let place = pending.entries.iter().position(|(entry, _)| *entry == id)?;
    Some(pending.entries.remove(place).1)
}

fn newest() -> Option<Undo> {
    pending().entries.pop().map(|(_, undo)| undo)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn a_dropped_guard_undoes_once() {
        let count = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&count);
        let guard = Guard::new(move || {
            seen.fetch_add(1, Ordering::Relaxed);
        });
        let id = guard.id;
        drop(guard);
        assert_eq!(count.load(Ordering::Relaxed), 1);
        assert!(take(id).is_none());
    }

    #[test]
    fn what_the_signal_handler_took_is_not_undone_again() {
        let count = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&count);
        let guard = Guard::new(move || {
            seen.fetch_add(1, Ordering::Relaxed);
        });
        take(guard.id).expect("still pending")();
        drop(guard);
        assert_eq!(count.load(Ordering::Relaxed), 1);
    }
}
