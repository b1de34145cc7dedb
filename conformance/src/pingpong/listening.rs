//! Waiting for a program to listen, by the kernel's list of TCP sockets.

use std::fs;
use std::time::{Duration, Instant};

use crate::agent::Agent;
use crate::peer::Result;

/// How long a program may take to listen.
const LIMIT: Duration = Duration::from_secs(20);
/// State "listening" in the list.
const LISTENING: &str = "0A";
const LISTS: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// Waits until a program here listens on a port.
pub(super) fn here(program: &str, port: u16) -> Result<()> {
    until(program, || {
        LISTS.iter().any(|path| fs::read_to_string(path).is_ok_and(|list| listens(&list, port)))
    })
}

/// Waits until a program in the guest listens on a port.
pub(super) fn in_guest(agent: &mut Agent, program: &str, port: u16) -> Result<()> {
    until(program, || {
        let mut lists = LISTS.iter().map(|path| agent.read_file(path));
        lists.any(|list| list.is_ok_and(|list| listens(&String::from_utf8_lossy(&list), port)))
    })
}

/// Waits until `ready` says so.
fn until(who: &str, mut ready: impl FnMut() -> bool) -> Result<()> {
    let limit = Instant::now() + LIMIT;
    while !ready() {
        if Instant::now() > limit {
            return Err(format!("{who} does not listen after {LIMIT:?}").into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Whether a port is listened on, by the kernel's list of TCP sockets.
fn listens(list: &str, port: u16) -> bool {
    let wanted = format!(":{port:04X}");
    list.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        fields.next().is_some_and(|local| local.ends_with(&wanted)) && fields.nth(1) == Some(LISTENING)
    })
}

#[cfg(test)]
mod tests {
    use super::listens;

    const LIST: &str = "  sl  local_address rem_address   st\n   0: 00000000:48A9 00000000:0000 0A 0000\n   \
                        1: 0100000A:48AA 0200000A:9999 01 0000\n";

    #[test]
    fn only_listening_sockets_count() {
        assert!(listens(LIST, 0x48a9));
        assert!(!listens(LIST, 0x48aa));
        assert!(!listens(LIST, 1));
    }
}
