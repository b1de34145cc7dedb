//! An allocator that counts, for programs that prove that nothing is allocated.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts what the current thread allocates.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count_one() {
    ALLOCATIONS.with(|count| count.set(count.get() + 1));
}

// SAFETY: every call is handed to the system's allocator as it is; counting touches a thread-local cell without a
// destructor, which allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_one();
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`, which is the same.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count_one();
        // SAFETY: the caller keeps the contract of `realloc`, which is the same.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What `run` allocates.
pub(crate) fn allocations(run: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    run();
    ALLOCATIONS.get() - before
}
