//! Waiting for completions without losing a wakeup.

use std::time::Duration;

use uroce_stack::{Completion, Instant};

use crate::cq::CompletionQueue;
use crate::driver::Core;
use crate::error::Error;

/// How long to look before sleeping, on a device that the caller drives: longer than a peer takes to answer.
const LOOK_INLINE: Duration = Duration::from_micros(50);
/// The same where another thread drives: short, as that thread may need the core.
const LOOK_THREADED: Duration = Duration::from_micros(5);

pub(crate) fn wait(
    cq: &CompletionQueue,
    out: &mut [Completion],
    timeout: Option<Duration>,
) -> Result<usize, Error> {
    let core = cq.context().core();
    let start = core.now();
    loop {
        if let found @ 1.. = look(cq, core, out) {
            cq.signal().wake_pollers();
            return Ok(found);
        }
        if cq.overran() {
            return Err(Error::CqOverrun);
        }
        let left = timeout.map(|timeout| timeout.saturating_sub(core.now().since(start)));
        if left.is_some_and(|left| left.is_zero()) || out.is_empty() {
            return Ok(0);
        }
        sleep(cq, core, left).map_err(Error::system("cannot wait for completions"))?;
    }
}

/// Polls for a short while.
fn look(cq: &CompletionQueue, core: &Core, out: &mut [Completion]) -> usize {
    let patience = if core.inline { LOOK_INLINE } else { LOOK_THREADED };
    let start: Instant = core.now();
    loop {
        let found = cq.poll(out);
        if found > 0 || core.now().since(start) > patience {
            return found;
        }
        std::hint::spin_loop();
    }
}

/// Arms the queue and sleeps, unless something has arrived meanwhile.
fn sleep(cq: &CompletionQueue, core: &Core, left: Option<Duration>) -> std::io::Result<()> {
    if core.inline {
        let poller = cq.signal().poller();
        if cq.arm(false) { Ok(()) } else { core.sleep(poller.descriptor(), left) }
    } else {
        let seen = cq.signal().generation();
        if !cq.arm(false) && !cq.overran() {
            cq.signal().wait_after(seen, left);
        }
        Ok(())
    }
}
