//! What a queue pair works on that is not its own.

use crate::counters::Counters;
use crate::engine::{Cqs, Events};
use crate::memory::Memory;
use crate::time::Instant;

/// The rest of the engine, lent to one queue pair for one step.
#[derive(Debug)]
pub(crate) struct Env<'a> {
    pub(crate) now: Instant,
    pub(crate) memory: &'a Memory,
    pub(crate) cqs: &'a mut Cqs,
    pub(crate) counters: &'a mut Counters,
    pub(crate) events: &'a mut Events,
}
