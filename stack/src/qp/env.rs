//! What a queue pair works on that is not its own.

use crate::counters::Tally;
use crate::engine::{Cqs, Events, Srqs};
use crate::memory::Memory;
use crate::time::Instant;

/// The rest of the engine, lent to one queue pair for one step.
#[derive(Debug)]
pub(crate) struct Env<'a> {
    pub(crate) now: Instant,
    pub(crate) memory: &'a mut Memory,
    pub(crate) cqs: &'a mut Cqs,
    pub(crate) srqs: &'a mut Srqs,
    pub(crate) counters: Tally<'a>,
    pub(crate) events: &'a mut Events,
}
