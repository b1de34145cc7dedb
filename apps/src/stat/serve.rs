//! The serving side: a running endpoint tells its counters to whoever connects to its socket.
//!
//! There is no request: who connects gets one document and the end of the stream. So nothing that a stranger says is
//! read, and nothing grows with it. A thread waits for connections and costs nothing meanwhile.

use std::fs;
use std::io::{self, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use uroce::{Context, QueuePair};

use super::document::Endpoint;
use super::places;
use crate::clock::pause;

/// How long a reader may take to read the document.
const PATIENCE: Duration = Duration::from_secs(1);
/// After an attempt to accept that failed, for instance because no descriptor is left.
const PERIOD: Duration = Duration::from_millis(100);

/// A device that can be looked at from outside until this is dropped.
#[derive(Debug)]
pub(crate) struct Serving {
    shared: Arc<Shared>,
    path: PathBuf,
}

/// What the thread tells of; nothing once the device is to be closed.
#[derive(Debug)]
struct Shared(Mutex<Option<Subject>>);

#[derive(Debug)]
struct Subject {
    ctx: Context,
    number: u32,
    command: String,
    queue_pairs: Vec<Weak<QueuePair>>,
}

impl Serving {
    /// Lets a device be looked at; `None`, and a line in the log, where that cannot be.
    pub(crate) fn start(ctx: &Context) -> Option<Self> {
        let started = Self::bind(ctx);
        started.inspect_err(|error| tracing::debug!(%error, "`uroce stat` will not see this endpoint")).ok()
    }

    /// Tells of these queue pairs, too, as long as they live.
    pub(crate) fn add(&self, queue_pairs: &[Arc<QueuePair>]) {
        if let Some(subject) = &mut *self.shared.lock() {
            subject.queue_pairs.retain(|known| known.strong_count() > 0);
            subject.queue_pairs.extend(queue_pairs.iter().map(Arc::downgrade));
        }
    }

    fn bind(ctx: &Context) -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let (early, path) = places::names(&places::own()?, std::process::id(), number);
        // A process that had our number and was killed may have left it.
        let _ = fs::remove_file(&early);
        let listener = UnixListener::bind(&early)?;
        // Under its name there is always somebody who listens, or nobody any more.
        fs::rename(&early, &path)?;
        let subject = Subject { ctx: ctx.clone(), number, command: command(), queue_pairs: Vec::new() };
        let serving = Self { shared: Arc::new(Shared(Mutex::new(Some(subject)))), path };
        let shared = Arc::clone(&serving.shared);
        std::thread::Builder::new().name("uroce-stat".into()).spawn(move || serve(&listener, &shared))?;
        Ok(serving)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // The device is closed with this, unless others hold it: on this thread, not whenever the other one awakes.
        let subject = self.shared.lock().take();
        drop(subject);
        // Awakes the thread, which finds nothing left to tell of and ends.
        let _ = UnixStream::connect(&self.path);
        let _ = fs::remove_file(&self.path);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Option<Subject>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subject {
    fn document(&self) -> Endpoint {
        let alive: Vec<Arc<QueuePair>> = self.queue_pairs.iter().filter_map(Weak::upgrade).collect();
        Endpoint::of(&self.ctx, self.number, &self.command, alive.iter().map(AsRef::as_ref))
    }
}

/// One connection after the other.
fn serve(listener: &UnixListener, shared: &Shared) {
    loop {
        let stream = listener.accept();
        let Some(document) = shared.lock().as_ref().map(Subject::document) else { return };
        match stream {
            // Who has gone away again needs no document.
            Ok((stream, _)) => drop(tell(stream, &document)),
            Err(_) => pause(PERIOD),
        }
    }
}

fn tell(mut stream: UnixStream, document: &Endpoint) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(&serde_json::to_vec(document)?)
}

/// As it was typed, without the folder of the program.
fn command() -> String {
    std::env::args().skip(1).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_device_tells_of_itself_until_it_is_closed() {
        let (ctx, _other) = uroce::testing::loopback_pair(Default::default()).unwrap();
        let Some(serving) = Serving::start(&ctx) else {
            return println!("SKIPPED: there is no folder for sockets; run as root or set XDG_RUNTIME_DIR");
        };
        let path = serving.path.clone();
        for _ in 0..2 {
            let mut text = String::new();
            UnixStream::connect(&path).unwrap().read_to_string(&mut text).unwrap();
            let endpoint: Endpoint = serde_json::from_str(&text).unwrap();
            assert_eq!((endpoint.pid, endpoint.gid), (std::process::id(), ctx.gid().to_string()));
        }
        let shared = Arc::clone(&serving.shared);
        drop(serving);
        assert!(shared.lock().is_none() && !path.exists(), "the device is held, or the socket has stayed");
    }
}
