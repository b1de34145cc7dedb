//! The other end, as the end that measures sees it.

use std::time::Duration;

use super::responder::Responder;
use super::session::Message;
use crate::clock::Stopwatch;
use crate::control::Control;
use crate::error::Result;
use crate::idle::Idle;
use crate::interrupt;

/// Turns between two looks at the control connection: a look costs a system call.
const TURNS: u32 = 4096;

/// How often the other process is told that this one lives.
const ALIVE: Duration = Duration::from_secs(1);

/// The other end.
pub(crate) trait Other {
    /// Messages of `size` bytes are about to come. Returns when it is ready for them.
    fn begin(&mut self, size: u32) -> Result<()>;

    /// Called in every turn of a loop that waits for completions: whatever the other end must have done meanwhile.
    /// `idle` says that none came in this turn.
    ///
    /// # Errors
    /// It is gone, or the command was asked to end.
    fn turn(&mut self, idle: bool) -> Result<()>;

    /// The messages that it has received since [`begin`](Self::begin), once no more come.
    fn received(&mut self) -> Result<u64>;
}

/// In this process, on this thread.
#[derive(Debug)]
pub(crate) struct InProcess {
    responder: Responder,
}

impl InProcess {
    pub(crate) const fn new(responder: Responder) -> Self {
        Self { responder }
    }
}

impl Other for InProcess {
    fn begin(&mut self, size: u32) -> Result<()> {
        self.responder.begin(size)
    }

    fn turn(&mut self, _idle: bool) -> Result<()> {
        interrupt::check()?;
        self.responder.step().map(drop)
    }

    fn received(&mut self) -> Result<u64> {
        self.responder.settle()
    }
}

/// In another process, which drives itself.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    control: Control,
    turns: u32,
    idle: Idle,
    said: Stopwatch,
}

impl Elsewhere {
    pub(crate) fn new(control: Control) -> Self {
        Self { control, turns: 0, idle: Idle::default(), said: Stopwatch::start() }
    }

    pub(crate) fn control(&mut self) -> &mut Control {
        &mut self.control
    }
}

impl Other for Elsewhere {
    fn begin(&mut self, size: u32) -> Result<()> {
        self.control.send(&Message::Round { size })?;
        match self.control.receive()? {
            Message::Ready => Ok(()),
            other => Err(other.unexpected()),
        }
    }

    fn turn(&mut self, idle: bool) -> Result<()> {
        interrupt::check()?;
        self.idle.after(idle);
        self.turns = (self.turns + 1) % TURNS;
        if self.turns > 0 {
            return Ok(());
        }
        if self.said.elapsed() > ALIVE {
            self.said = Stopwatch::start();
            self.control.send(&Message::Alive)?;
        }
        match self.control.poll::<Message>()? {
            None => Ok(()),
            Some(message) => Err(message.unexpected()),
        }
    }

    fn received(&mut self) -> Result<u64> {
        self.control.send(&Message::Count)?;
        match self.control.receive()? {
            Message::Counted { messages } => Ok(messages),
            other => Err(other.unexpected()),
        }
    }
}
