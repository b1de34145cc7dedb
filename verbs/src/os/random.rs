//! Randomness of the operating system.

use std::io;

/// Fills `bytes` with randomness that nobody can predict.
pub(crate) fn fill_random(bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        let rest = &mut bytes[filled..];
        // SAFETY: `rest` is a writable slice and its own length is passed with it.
        let count = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        match usize::try_from(count) {
            Ok(count) => filled += count,
            Err(_) => interrupted()?,
        }
    }
    Ok(())
}

fn interrupted() -> io::Result<()> {
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_seeds_differ() {
        let (mut one, mut other) = ([0; 32], [0; 32]);
        super::fill_random(&mut one).expect("getrandom");
        super::fill_random(&mut other).expect("getrandom");
        assert_ne!(one, other);
    }
}
