//! The looking side: every endpoint that runs.

use std::fs;
use std::io::{self, ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::document::Endpoint;
use super::places;
use crate::out;

/// How long an endpoint may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// No document is longer: that of 4096 queue pairs is not.
const MAX_DOCUMENT: u64 = 16 << 20;

/// Which endpoints are wanted.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    pub(super) interface: Option<String>,
    pub(super) pid: Option<u32>,
}

impl Wanted {
    fn includes(&self, endpoint: &Endpoint) -> bool {
        self.interface.as_ref().is_none_or(|name| *name == endpoint.interface)
            && self.pid.is_none_or(|pid| pid == endpoint.pid)
    }

    /// Those of them that run, in the order of their processes.
    pub(super) fn find(&self) -> Vec<Endpoint> {
        let all = places::sockets();
        let mut found: Vec<Endpoint> = all.iter().filter_map(|path| ask(path)).collect();
        found.retain(|endpoint| self.includes(endpoint));
        found.sort_by_key(|endpoint| (endpoint.pid, endpoint.number));
        found
    }
}

/// What the endpoint at this socket says; nothing if it has ended.
fn ask(path: &Path) -> Option<Endpoint> {
    match read(path) {
        Ok(endpoint) => Some(endpoint),
        // Nobody listens any more: it was killed. Who started it may do the tidying up, if we may not.
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            let _ = fs::remove_file(path);
            None
        }
        // It ended while we looked.
        Err(error) if error.kind() == ErrorKind::NotFound || error.kind() == ErrorKind::UnexpectedEof => None,
        Err(error) => {
            out::note(format_args!("the endpoint at {} does not tell of itself: {error}", path.display()));
            None
        }
    }
}

fn read(path: &Path) -> io::Result<Endpoint> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut text = Vec::new();
    stream.take(MAX_DOCUMENT).read_to_end(&mut text)?;
    if text.is_empty() {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(serde_json::from_slice(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_wanted() {
        let endpoint = Endpoint { pid: 7, interface: "eth0".into(), ..Endpoint::default() };
        let wanted = |interface: Option<&str>, pid| Wanted { interface: interface.map(str::to_owned), pid };
        for (wanted, included) in [
            (Wanted::default(), true),
            (wanted(Some("eth0"), None), true),
            (wanted(Some("eth1"), None), false),
            (wanted(None, Some(7)), true),
            (wanted(Some("eth0"), Some(8)), false),
        ] {
            assert_eq!(wanted.includes(&endpoint), included, "{wanted:?}");
        }
    }

    #[test]
    fn what_a_killed_process_left_is_removed() {
        let path = std::env::temp_dir().join(format!("uroce-left-{}.sock", std::process::id()));
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        assert_eq!(ask(&path), None);
        assert!(!path.exists());
    }
}
