//! A bounded single-producer, single-consumer ring whose consumed entries stay readable until released.
//!
//! Entries are filled in place and read in place. The consumer may look at any entry between its head and the
//! producer's tail as often as it likes, which is what retransmission needs.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

struct Shared<T> {
    slots: Box<[UnsafeCell<T>]>,
    /// The first entry that the consumer has not released.
    head: CachePadded<AtomicU64>,
    /// One past the last entry that the producer has published.
    tail: CachePadded<AtomicU64>,
}

// SAFETY: entries are reached through the one Producer (indices from tail to head + capacity) and the one Consumer
// (indices from head to tail) only. The two ranges never overlap, and an entry passes from one to the other by a
// release store and an acquire load of `tail` or `head`. So sharing needs no more than that T may be sent (the
// entry changes threads) and shared (the consumer lends `&T`).
unsafe impl<T: Send + Sync> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn capacity(&self) -> u64 {
        self.slots.len() as u64
    }

    fn slot(&self, index: u64) -> &UnsafeCell<T> {
        // The length is a power of two, so the masked index fits a usize and the slice.
        &self.slots[(index & (self.capacity() - 1)) as usize]
    }
}

/// A ring of at least `capacity` entries (the next power of two), each made by `entry`.
pub(crate) fn ring<T>(capacity: u32, mut entry: impl FnMut() -> T) -> (Producer<T>, Consumer<T>) {
    let slots = (0..u64::from(capacity).next_power_of_two()).map(|_| UnsafeCell::new(entry())).collect();
    let zero = || CachePadded::new(AtomicU64::new(0));
    let shared = Arc::new(Shared { slots, head: zero(), tail: zero() });
    (
        Producer { shared: Arc::clone(&shared), tail: 0, published: 0, head: 0 },
        Consumer { shared, head: 0, tail: 0 },
    )
}

/// Gives a ring at least `capacity` entries (the next power of two), and says whether that was done: it is not when what
/// lies in the ring would not fit. What is published stays so, what is staged too; indices start anew.
pub(crate) fn regrow<T>(
    producer: &mut Producer<T>,
    consumer: &mut Consumer<T>,
    capacity: u32,
    entry: impl FnMut() -> T,
) -> bool {
    assert!(Arc::ptr_eq(&producer.shared, &consumer.shared), "two halves of one ring");
    let (head, published, tail) = (consumer.head, producer.published, producer.tail);
    if tail - head > u64::from(capacity) {
        return false;
    }
    let (mut filled, emptied) = ring(capacity, entry);
    for index in head..tail {
        if index == published {
            filled.publish();
        }
        let slot = filled.next().expect("the new ring holds what the old one did");
        // SAFETY: both halves of the old ring are borrowed mutably, and only they reach its entries, so no other
        // reference to the entry exists.
        core::mem::swap(slot, unsafe { &mut *producer.shared.slot(index).get() });
        filled.stage();
    }
    if published == tail {
        filled.publish();
    }
    (*producer, *consumer) = (filled, emptied);
    true
}

/// The half that fills entries.
pub(crate) struct Producer<T> {
    shared: Arc<Shared<T>>,
    /// One past the last entry filled; runs ahead of `published`.
    tail: u64,
    published: u64,
    /// The consumer's head as last seen.
    head: u64,
}

impl<T> Producer<T> {
    /// The next free entry, to be filled and then [staged](Self::stage); `None` when the ring is full.
    pub(crate) fn next(&mut self) -> Option<&mut T> {
        if self.tail - self.head == self.shared.capacity() {
            self.head = self.shared.head.load(Ordering::Acquire);
            if self.tail - self.head == self.shared.capacity() {
                return None;
            }
        }
        // SAFETY: `tail` lies in [published, head + capacity), so the consumer, who reads below the published tail
        // only, cannot reach the entry; the acquire load of `head` orders its last reads before this. There is one
        // producer and it is borrowed mutably, so no other reference to the entry exists.
        Some(unsafe { &mut *self.shared.slot(self.tail).get() })
    }

    /// Counts the entry that [`next`](Self::next) lent as filled; the consumer does not see it yet.
    pub(crate) fn stage(&mut self) {
        debug_assert!(self.tail - self.head < self.shared.capacity(), "staged an entry that was not lent");
        self.tail += 1;
    }

    /// Whether entries are staged and not published.
    pub(crate) fn has_staged(&self) -> bool {
        self.tail != self.published
    }

    /// Makes every staged entry visible to the consumer, and tells how many those were.
    pub(crate) fn publish(&mut self) -> u32 {
        let new = self.tail - self.published;
        self.published = self.tail;
        self.shared.tail.store(self.tail, Ordering::Release);
        new as u32
    }

    /// Forgets every staged entry.
    pub(crate) fn unstage(&mut self) {
        self.tail = self.published;
    }

    /// How many entries there are.
    pub(crate) fn capacity(&self) -> u32 {
        self.shared.slots.len() as u32
    }
}

/// The half that reads entries and hands them back.
pub(crate) struct Consumer<T> {
    shared: Arc<Shared<T>>,
    head: u64,
    /// The producer's tail as last seen.
    tail: u64,
}

impl<T> Consumer<T> {
    /// The oldest entry not released.
    pub(crate) fn head(&self) -> u64 {
        self.head
    }

    /// One past the newest entry published so far.
    pub(crate) fn refresh(&mut self) -> u64 {
        self.tail = self.shared.tail.load(Ordering::Acquire);
        self.tail
    }

    /// The entry at `index`, which must lie between [`head`](Self::head) and the last [`refresh`](Self::refresh).
    pub(crate) fn get(&self, index: u64) -> &T {
        assert!(self.head <= index && index < self.tail, "ring index outside the published entries");
        // SAFETY: the assertion holds the index below a published tail that was loaded with acquire, so the entry
        // is filled and its contents are visible; and at or above the head, which only this half advances, through
        // `&mut self`: the producer cannot reuse the entry while the returned borrow lives.
        unsafe { &*self.shared.slot(index).get() }
    }

    /// Hands every entry before `index` back to the producer.
    pub(crate) fn release_to(&mut self, index: u64) {
        assert!(self.head <= index && index <= self.tail, "released entries that were not published");
        self.head = index;
        self.shared.head.store(index, Ordering::Release);
    }

    /// The place of `index` in a table that runs in parallel to the ring.
    pub(crate) fn place(&self, index: u64) -> usize {
        (index & (self.shared.capacity() - 1)) as usize
    }

    /// How many entries there are.
    pub(crate) fn capacity(&self) -> u32 {
        self.shared.slots.len() as u32
    }
}

impl<T> core::fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Producer").field("tail", &self.tail).field("published", &self.published).finish()
    }
}

impl<T> core::fmt::Debug for Consumer<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Consumer").field("head", &self.head).field("tail", &self.tail).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(producer: &mut Producer<u32>, value: u32) -> bool {
        let Some(slot) = producer.next() else { return false };
        *slot = value;
        producer.stage();
        true
    }

    #[test]
    fn holds_exactly_its_capacity() {
        let (mut producer, mut consumer) = ring(3, u32::default);
        assert_eq!(producer.capacity(), 4);
        for value in 0..4 {
            assert!(push(&mut producer, value));
        }
        assert!(!push(&mut producer, 4), "a fifth entry does not fit");
        producer.publish();
        assert_eq!(consumer.refresh(), 4);
        consumer.release_to(1);
        assert!(push(&mut producer, 4), "a released entry is free again");
        assert!(!push(&mut producer, 5));
    }

    #[test]
    fn staged_entries_are_seen_only_when_published() {
        let (mut producer, mut consumer) = ring(8, u32::default);
        push(&mut producer, 7);
        assert_eq!(consumer.refresh(), 0);
        producer.publish();
        assert_eq!(consumer.refresh(), 1);
        assert_eq!(*consumer.get(0), 7);
    }

    #[test]
    fn unstaging_forgets_what_was_not_published() {
        let (mut producer, mut consumer) = ring(8, u32::default);
        push(&mut producer, 1);
        producer.publish();
        push(&mut producer, 2);
        producer.unstage();
        push(&mut producer, 3);
        producer.publish();
        assert_eq!(consumer.refresh(), 2);
        assert_eq!(*consumer.get(1), 3);
    }

    #[test]
    fn a_ring_keeps_its_entries_when_it_grows_or_shrinks() {
        let (mut producer, mut consumer) = ring(4, u32::default);
        for value in 0..4 {
            push(&mut producer, value);
        }
        producer.publish();
        consumer.refresh();
        consumer.release_to(2);
        push(&mut producer, 4);
        assert!(!regrow(&mut producer, &mut consumer, 2, u32::default), "three entries do not fit into two");
        assert!(regrow(&mut producer, &mut consumer, 3, u32::default));
        assert_eq!((producer.capacity(), consumer.capacity()), (4, 4));
        assert!(regrow(&mut producer, &mut consumer, 16, u32::default));
        let tail = consumer.refresh();
        let seen: std::vec::Vec<u32> = (consumer.head()..tail).map(|index| *consumer.get(index)).collect();
        assert_eq!(seen, [2, 3], "what was staged is not seen");
        producer.publish();
        assert_eq!(consumer.refresh() - consumer.head(), 3);
        for value in 5..18 {
            assert!(push(&mut producer, value));
        }
        assert!(!push(&mut producer, 18), "sixteen entries");
    }

    #[test]
    #[should_panic(expected = "outside the published entries")]
    fn an_entry_that_was_not_published_cannot_be_read() {
        let (_producer, consumer) = ring(8, u32::default);
        consumer.get(0);
    }

    #[test]
    #[should_panic(expected = "outside the published entries")]
    fn a_released_entry_cannot_be_read() {
        let (mut producer, mut consumer) = ring(8, u32::default);
        push(&mut producer, 1);
        producer.publish();
        consumer.refresh();
        consumer.release_to(1);
        consumer.get(0);
    }

    #[test]
    fn two_threads_pass_every_value_in_order() {
        const COUNT: u32 = 100_000;
        let (mut producer, mut consumer) = ring(16, u32::default);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut value = 0;
                while value < COUNT {
                    if push(&mut producer, value) {
                        value += 1;
                        producer.publish();
                    } else {
                        std::thread::yield_now();
                    }
                }
            });
            let mut expected = 0;
            while expected < COUNT {
                let tail = consumer.refresh();
                for index in consumer.head()..tail {
                    assert_eq!(*consumer.get(index), expected);
                    expected += 1;
                }
                consumer.release_to(tail);
                std::thread::yield_now();
            }
        });
    }
}
