//! Notices a scenario that never ends: every wait has a limit of its own, so one that hangs is stuck where nobody
//! expected it, and only the end of the program gets it out.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::runner::Cell;

/// How long a scenario may take: more than all the waits within the longest one.
pub const LIMIT: Duration = Duration::from_secs(180);

/// Watches one cell at a time.
#[derive(Debug)]
pub struct Watchdog {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the watching thread sees.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<Watch>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Watch {
    running: Option<(Cell, Instant)>,
    ended: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Watch> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watchdog {
    /// Starts watching; `hung` gets the cell that took longer than `limit`, failed, from a thread of its own.
    pub fn new(limit: Duration, hung: impl FnOnce(Cell) + Send + 'static) -> Self {
        let shared = Arc::new(Shared::default());
        let seen = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            if let Some(cell) = wait(&seen, limit) {
                hung(cell);
            }
        });
        Self { shared, thread: Some(thread) }
    }

    /// Watches a cell until the returned guard is dropped.
    pub fn watch(&self, cell: &Cell) -> Watched<'_> {
        self.set(Some((cell.clone(), Instant::now())));
        Watched(self)
    }

    fn set(&self, running: Option<(Cell, Instant)>) {
        self.shared.lock().running = running;
        self.shared.changed.notify_one();
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.changed.notify_one();
        // Joining fails only when `hung` panicked, which has been printed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A cell that runs.
#[derive(Debug)]
pub struct Watched<'a>(&'a Watchdog);

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

/// Waits until a cell has run for too long; nothing when the watching ends before.
fn wait(shared: &Shared, limit: Duration) -> Option<Cell> {
    let mut watch = shared.lock();
    while !watch.ended {
        let left = match &watch.running {
            Some((_, start)) => limit.saturating_sub(start.elapsed()),
            None => Duration::MAX,
        };
        if left.is_zero() {
            return watch.running.take().map(|(cell, start)| failed(cell, start.elapsed()));
        }
        watch = shared.changed.wait_timeout(watch, left).unwrap_or_else(PoisonError::into_inner).0;
    }
    None
}

fn failed(cell: Cell, time: Duration) -> Cell {
    let failure = format!("did not end within {time:.0?}; what follows it was not run");
    Cell { time, failure: Some(failure), ..cell }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::Watchdog;
    use crate::runner::Cell;

    fn cell() -> Cell {
        Cell {
            scenario: "send/1".into(),
            route: "IPv4 1024".into(),
            direction: "a to b".into(),
            time: Duration::ZERO,
            failure: None,
            deviations: Vec::new(),
        }
    }

    #[test]
    fn a_cell_that_hangs_is_reported_as_failed() {
        let (report, reports) = mpsc::channel();
        let watchdog = Watchdog::new(Duration::from_millis(20), move |cell| report.send(cell).unwrap());
        let _watched = watchdog.watch(&cell());
        let found = reports.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!(found.scenario, "send/1");
        assert!(found.failure.unwrap().contains("did not end"));
    }

    #[test]
    fn a_cell_that_ends_is_not() {
        let (report, reports) = mpsc::channel::<Cell>();
        let watchdog = Watchdog::new(Duration::from_millis(50), move |cell| report.send(cell).unwrap());
        drop(watchdog.watch(&cell()));
        std::thread::sleep(Duration::from_millis(100));
        drop(watchdog);
        assert!(reports.recv().is_err());
    }
}
