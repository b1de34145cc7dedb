//! Where the sockets of running endpoints are.
//!
//! A folder of the user, or of the system for root. File permissions say who may look: the owner, and root.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The folder of the system's own services.
const SYSTEM: &str = "/run/uroce";
/// Below it each user has a folder of his own.
const USERS: &str = "/run/user";
/// How a socket is called that somebody listens at.
const EXTENSION: &str = "sock";

/// The folder that this process puts its sockets in, which exists and is its own.
pub(super) fn own() -> io::Result<PathBuf> {
    let folder = own_path();
    // Others may see which processes there are, as `ps` tells them anyway; the sockets are not theirs.
    match fs::DirBuilder::new().mode(0o755).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(folder),
    }
}

/// The sockets of all endpoints that this user may know of, in order.
pub(super) fn sockets() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = folders().iter().flat_map(|folder| sockets_in(folder)).collect();
    found.sort();
    found.dedup();
    found
}

/// The name of a socket while nobody listens at it yet, and after.
pub(super) fn names(folder: &Path, pid: u32, number: u32) -> (PathBuf, PathBuf) {
    (folder.join(format!("{pid}.{number}.new")), folder.join(format!("{pid}.{number}.{EXTENSION}")))
}

fn own_path() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        Some(runtime) if runtime.is_absolute() => runtime.join("uroce"),
        _ => SYSTEM.into(),
    }
}

fn folders() -> Vec<PathBuf> {
    let users = entries(Path::new(USERS)).into_iter().map(|user| user.join("uroce"));
    [own_path(), SYSTEM.into()].into_iter().chain(users).collect()
}

fn sockets_in(folder: &Path) -> Vec<PathBuf> {
    let mut found = entries(folder);
    found.retain(|path| path.extension().is_some_and(|extension| extension == EXTENSION));
    found
}

/// What is in a folder; nothing if it cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sockets_that_somebody_listens_at_are_found() {
        let folder = std::env::temp_dir().join(format!("uroce-places-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (early, ready) = names(&folder, 7, 0);
        for path in [&early, &ready, &folder.join("other")] {
            fs::write(path, "").unwrap();
        }
        let found = sockets_in(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, [ready]);
        assert_eq!(sockets_in(&folder), Vec::<PathBuf>::new());
    }
}
