//! A device without work leaves the processor alone. Alone in its file, as it measures its process.

mod common;

use std::time::Duration;

use common::threaded;
use uroce::Completion;

/// Nothing is posted, nothing arrives: the thread that drives sleeps.
#[test]
fn an_idle_device_uses_no_processor() {
    let (a, b) = threaded();
    let spent = processor_time();
    assert_eq!(a.cq.wait(&mut [Completion::default()], Some(Duration::from_millis(300))).expect("idle"), 0);
    let spent = processor_time() - spent;
    assert!(spent < Duration::from_millis(150), "{spent:?} of two idle threads in 300 ms");
    drop((a, b));
}

/// What this process has used.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is room for a timespec that lives across the call.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(result, 0);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
