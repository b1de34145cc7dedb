//! The copies at the edges of mapped memory and of their buffers.

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::vec::Vec;
use std::{iter, println, ptr, slice, thread, vec};

use super::{copy_in, copy_out};
use crate::memory::Crc;
use crate::memory::crc::{Kernel, Pass};

const PAGE: usize = 4096;
const GUARD: u8 = 0xA5;

/// Readable pages with an unreadable one on either side.
struct Island(*mut u8);

impl Island {
    const LEN: usize = 4 * PAGE;

    fn new() -> Self {
        let len = Self::LEN + 2 * PAGE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, at no address in particular.
        let sea = unsafe { libc::mmap(ptr::null_mut(), len, libc::PROT_NONE, flags, -1, 0) };
        assert_ne!(sea, libc::MAP_FAILED);
        let land = sea.cast::<u8>().wrapping_add(PAGE);
        // SAFETY: the middle of the mapping just made, which nobody uses yet.
        let result = unsafe { libc::mprotect(land.cast(), Self::LEN, libc::PROT_READ | libc::PROT_WRITE) };
        assert_eq!(result, 0);
        Self(land)
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: readable, writable and zeroed by `new`; borrowed with `self`, its only owner.
        unsafe { slice::from_raw_parts_mut(self.0, Self::LEN) }
    }
}

impl Drop for Island {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made, which ends with `self`.
        let result = unsafe { libc::munmap(self.0.wrapping_sub(PAGE).cast(), Self::LEN + 2 * PAGE) };
        assert_eq!(result, 0);
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 251) as u8).collect()
}

/// The first and the last `len` bytes.
fn edges(bytes: &mut [u8], len: usize) -> [&mut [u8]; 2] {
    let (first, rest) = bytes.split_at_mut(len);
    let start = rest.len() - len;
    [first, &mut rest[start..]]
}

/// All short lengths and the surroundings of the longer ones that loops turn at.
fn lengths() -> impl Iterator<Item = usize> {
    (0..700).chain([1000, 1023, 1024, 1025, 2047, 2048, 2049, 4000, 4095, 4096, 4097, 4112, 8191, 8192])
}

#[test]
fn no_loop_reads_or_writes_past_a_page() {
    let (mut from, mut to) = (Island::new(), Island::new());
    from.bytes().copy_from_slice(&pattern(Island::LEN));
    for len in lengths() {
        for kernel in Kernel::supported() {
            for (src, dst) in edges(from.bytes(), len).into_iter().zip(edges(to.bytes(), len)) {
                let crc = kernel.run(!0, &mut Pass::reading(src));
                // SAFETY: two separate mappings.
                let mut pass = unsafe { Pass::copying(dst, src.as_ptr()) };
                assert_eq!(kernel.run(!0, &mut pass), crc, "{kernel:?}, {len} bytes");
                assert_eq!(src, dst, "{kernel:?}, {len} bytes");
            }
        }
    }
}

#[test]
fn copy_in_stays_within_a_page() {
    let (mut from, mut to) = (Island::new(), Island::new());
    from.bytes().copy_from_slice(&pattern(Island::LEN));
    for len in lengths() {
        for (src, dst) in edges(from.bytes(), len).into_iter().zip(edges(to.bytes(), len)) {
            // SAFETY: two separate mappings.
            unsafe { copy_in(dst.as_mut_ptr(), src) };
            assert_eq!(src, dst, "{len} bytes");
        }
    }
}

#[test]
fn copies_go_to_any_alignment() {
    let source = pattern(400);
    for (offset, start) in (0..40).flat_map(|offset| [0, 1, 7, 16].map(|start| (offset, start))) {
        for len in 0..300 {
            let src = &source[start..][..len];
            let mut expected = vec![GUARD; 400];
            expected[offset..][..len].copy_from_slice(src);

            let mut room = vec![GUARD; 400];
            // SAFETY: `room` has `len` bytes at `offset`.
            unsafe { copy_in(room[offset..][..len].as_mut_ptr(), src) };
            assert_eq!(room, expected, "in, {len} bytes from {start} to {offset}");

            let mut room = vec![GUARD; 400];
            // SAFETY: `src` is as long as the destination and apart from it.
            let crc = unsafe { copy_out(&mut room[offset..][..len], src.as_ptr(), Crc::ICRC_PREFIX) };
            assert_eq!(crc, Crc::ICRC_PREFIX.update(src), "out, {len} bytes from {start} to {offset}");
            assert_eq!(room, expected, "out, {len} bytes from {start} to {offset}");
        }
    }
}

/// Runs `body` while another thread runs `other` again and again.
fn against(other: impl Fn() + Sync, body: impl FnOnce()) {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                other();
            }
        });
        body();
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn the_crc_is_that_of_the_copy_while_the_source_changes() {
    let source: Vec<AtomicU64> = (0..512).map(AtomicU64::new).collect();
    let scramble = || {
        for word in &source {
            word.fetch_add(0x0123_4567_89AB_CDEF, Ordering::Relaxed);
        }
    };
    against(scramble, || {
        let mut copy = [0; PAGE];
        for kernel in (0..5000).flat_map(|_| Kernel::supported()) {
            // SAFETY: `source` is a page long, and meant to be written meanwhile.
            let mut pass = unsafe { Pass::copying(&mut copy, source.as_ptr().cast()) };
            let crc = kernel.run(!0, &mut pass);
            assert_eq!(crc, kernel.run(!0, &mut Pass::reading(&copy)), "{kernel:?}");
        }
    });
}

#[test]
fn bytes_land_in_address_order() {
    const LEN: usize = 300;
    let target: Vec<AtomicU8> = iter::repeat_with(AtomicU8::default).take(LEN + 40).collect();
    let (round, checks) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let check_pair = |earlier: usize, later: usize| {
        let before = round.load(Ordering::Acquire);
        let later = target[later].load(Ordering::Acquire);
        let earlier = target[earlier].load(Ordering::Acquire);
        // A byte is as new as one at a higher address, or newer; rounds are told apart only if they are few.
        if round.load(Ordering::Acquire) - before < 100 {
            assert!(earlier.wrapping_sub(later) < 128, "{earlier} before {later}");
            checks.fetch_add(1, Ordering::Relaxed);
        }
    };
    let check = || {
        for at in 1..LEN + 40 {
            check_pair(at - 1, at);
            check_pair(at.saturating_sub(LEN - 1), at);
        }
    };
    against(check, || {
        while round.load(Ordering::Relaxed) < 20_000 {
            let source = [round.fetch_add(1, Ordering::Release) as u8; LEN];
            for start in 0..=40 {
                // SAFETY: as long as `target` from `start` on, whose atomics may be written through shared references.
                unsafe { copy_in(target[start..].as_ptr().cast_mut().cast(), &source) };
            }
        }
    });
    println!("{checks:?}");
    assert_ne!(checks.into_inner(), 0);
}
