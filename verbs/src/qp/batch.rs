//! Many send work requests, one doorbell.

use std::sync::MutexGuard;

use uroce_stack::{PostError as PostErrorKind, SendQueue};

use crate::driver::Core;
use crate::wr::SendWr;

/// Send work requests that are posted together, by [`submit`](Self::submit), or not at all, when it is
/// dropped.
///
/// ```
/// # use uroce::*;
/// # let (a, b) = uroce::testing::connected_pair(Default::default())?;
/// let mut batch = a.qp.start_send();
/// for number in 0..4 {
///     batch.push(&SendWr::send_inline(number, b"one of four").signaled()).expect("room for four");
/// }
/// batch.submit();
/// # Ok::<(), Error>(())
/// ```
pub struct SendBatch<'a> {
    queue: MutexGuard<'a, SendQueue>,
    core: &'a Core,
    count: usize,
}

impl<'a> SendBatch<'a> {
    pub(crate) const fn new(queue: MutexGuard<'a, SendQueue>, core: &'a Core) -> Self {
        Self { queue, core, count: 0 }
    }

    /// Adds one.
    ///
    /// # Errors
    /// Why it was not accepted; the batch is as it was and may be submitted.
    pub fn push(&mut self, request: &SendWr) -> Result<(), PostErrorKind> {
        self.queue.push(&request.as_stack()?)?;
        self.count += 1;
        Ok(())
    }

    /// How many have been added.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether none has been added.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Posts them all.
    pub fn submit(mut self) {
        if std::mem::take(&mut self.count) > 0 {
            self.queue.ring_doorbell();
            self.core.ring();
        }
    }
}

impl Drop for SendBatch<'_> {
    fn drop(&mut self) {
        if self.count > 0 {
            self.queue.abort();
        }
    }
}

impl std::fmt::Debug for SendBatch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SendBatch").field("len", &self.count).finish_non_exhaustive()
    }
}
