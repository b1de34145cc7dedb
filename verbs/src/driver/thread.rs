//! The thread that drives an engine.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use uroce_stack::Instant;

use super::Core;
use super::port::Round;
use crate::error::Error;
use crate::os::{pin_to, spawn_without_signals};

/// How long the thread keeps looking after the last frame before it sleeps: longer than a peer takes to
/// answer, as falling asleep and waking cost about as much.
const COOLDOWN: Duration = Duration::from_micros(80);
/// Empty rounds after which it offers the core to others on every further one.
const PATIENCE: u32 = 8;

/// A running thread; ends when dropped.
pub(crate) struct PollThread {
    core: Arc<Core>,
    thread: Option<JoinHandle<()>>,
}

impl PollThread {
    /// Starts it, on `cpu` if one is given.
    pub(crate) fn start(core: &Arc<Core>, name: &str, cpu: Option<usize>) -> Result<Self, Error> {
        let driven = Arc::clone(core);
        let thread = spawn_without_signals(format!("uroce-{name}"), move || run(&driven, cpu));
        let thread = thread.map_err(Error::system("cannot start the thread that drives the device"))?;
        Ok(Self { core: Arc::clone(core), thread: Some(thread) })
    }
}

impl Drop for PollThread {
    fn drop(&mut self) {
        self.core.stop();
        let thread = self.thread.take().filter(|thread| {
            // A waker may drop the last handle on the thread itself, which then ends by itself.
            thread.thread().id() != std::thread::current().id()
        });
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that drives the device panicked");
        }
    }
}

fn run(core: &Core, cpu: Option<usize>) {
    if let Some((cpu, error)) = cpu.and_then(|cpu| pin_to(cpu).err().map(|error| (cpu, error))) {
        tracing::warn!(cpu, %error, "cannot run on the core asked for; any core will be used");
    }
    let mut idle = Idle::since(core.now());
    while !core.is_stopping() {
        let round = core.round();
        core.give_way();
        if idle.lasts_too_long(round) {
            sleep(core);
            idle = Idle::since(core.now());
        }
    }
}

fn sleep(core: &Core) {
    if let Err(error) = core.sleep(None, None) {
        tracing::error!(%error, "cannot sleep; polling instead");
    }
}

/// How long nothing has happened.
struct Idle {
    since: Instant,
    rounds: u32,
}

impl Idle {
    const fn since(since: Instant) -> Self {
        Self { since, rounds: 0 }
    }

    fn lasts_too_long(&mut self, round: Round) -> bool {
        if round.frames > 0 {
            *self = Self::since(round.now);
            return false;
        }
        self.pause();
        round.now.since(self.since) > COOLDOWN
    }

    fn pause(&mut self) {
        self.rounds = self.rounds.saturating_add(1);
        if self.rounds > PATIENCE { std::thread::yield_now() } else { std::hint::spin_loop() }
    }
}
