//! Threads of a library: no signals, and a core of their own.

use std::io;
use std::mem::MaybeUninit;
use std::thread::JoinHandle;

/// Starts a thread that receives no signal: the handlers of the application run on its own threads.
pub(crate) fn spawn_without_signals(
    name: String,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let old = block_signals()?;
    let thread = std::thread::Builder::new().name(name).spawn(body);
    restore_signals(&old)?;
    thread
}

/// Runs the calling thread on `cpu` only.
pub(crate) fn pin_to(cpu: usize) -> io::Result<()> {
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: a cpu_set_t is an array of integers, for which zero is a value.
    let mut set: libc::cpu_set_t = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: `cpu` is below CPU_SETSIZE, so it lies within the set.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: `set` is initialised and its own size is passed; 0 names the calling thread.
    let result = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) };
    super::checked(result).map(|_| ())
}

/// Blocks every signal for the calling thread and returns the mask as it was. A new thread inherits the mask.
fn block_signals() -> io::Result<libc::sigset_t> {
    let mut all = MaybeUninit::uninit();
    // SAFETY: sigfillset initialises the set that it is given.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: `all` has just been initialised.
    let all = unsafe { all.assume_init() };
    set_mask(&all)
}

fn restore_signals(mask: &libc::sigset_t) -> io::Result<()> {
    set_mask(mask).map(|_| ())
}

fn set_mask(mask: &libc::sigset_t) -> io::Result<libc::sigset_t> {
    let mut old = MaybeUninit::uninit();
    // SAFETY: `mask` is an initialised set, `old` is room for one.
    let error = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, old.as_mut_ptr()) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    // SAFETY: the call succeeded, so it wrote the former mask.
    Ok(unsafe { old.assume_init() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_runs_and_an_impossible_core_is_refused() {
        let thread = spawn_without_signals("uroce-test".into(), || {
            assert_eq!(pin_to(usize::MAX).map_err(|error| error.raw_os_error()), Err(Some(libc::EINVAL)));
            pin_to(0).expect("core 0");
        });
        thread.expect("spawn").join().expect("the thread");
    }
}
