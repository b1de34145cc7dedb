//! Waiting without a rest, but not at the cost of others.

/// Turns without anything before others get the core: longer than a peer takes to answer that has a core of its own.
const PATIENCE: u32 = 64;

/// Counts the turns in which a polling loop found nothing.
#[derive(Debug, Default)]
pub(crate) struct Idle {
    turns: u32,
}

impl Idle {
    /// A turn has ended that was `idle`, or was not. Where the peer has no core of its own, it gets this one now and
    /// then.
    #[inline]
    pub(crate) fn after(&mut self, idle: bool) {
        self.turns = if idle { self.turns + 1 } else { 0 };
        if self.turns >= PATIENCE {
            self.turns = 0;
            std::thread::yield_now();
        }
    }
}
