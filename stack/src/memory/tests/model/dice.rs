//! Random choices.

use std::vec::Vec;

use super::World;
use super::rules::{Class, Thing};
use crate::memory::tests::*;

pub(super) const SUBJECTS: [Subject; 3] = [BY, NEIGHBOUR, STRANGER];
pub(super) const RIGHTS: [Access; 6] = [
    Access::REMOTE_READ,
    Access::empty(),
    Access::REMOTE_WRITE,
    Access::REMOTE_ATOMIC,
    Access::LOCAL_WRITE,
    Access::MW_BIND,
];
pub(super) const ACCESSES: [Access; 8] = [
    OPEN.union(Access::MW_BIND),
    BINDABLE,
    Access::REMOTE,
    Access::REMOTE_READ,
    Access::REMOTE_READ.union(Access::MW_BIND),
    Access::REMOTE_WRITE,
    OPEN.union(Access::ZERO_BASED),
    Access::REMOTE_READ.union(Access::ZERO_BASED),
];
pub(super) const ADDRESSES: [u64; 8] =
    [IOVA, 0, IOVA + 64, IOVA - 1, IOVA + LEN - 8, IOVA + LEN, u64::MAX - 7, u64::MAX];
pub(super) const LENGTHS: [u64; 8] = [LEN, 8, 0, 1, LEN - 64, LEN + 1, u64::MAX, 64];

/// Random bytes, of which each choice takes one.
pub(super) struct Dice<'a>(pub(super) &'a [u8]);

impl Dice<'_> {
    pub(super) fn roll(&mut self) -> usize {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        usize::from(*first)
    }

    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.roll() % from.len()]
    }

    /// The first as often as all others together.
    pub(super) fn mostly<T: Copy>(&mut self, from: &[T]) -> T {
        if self.roll().is_multiple_of(2) { from[0] } else { self.pick(from) }
    }

    /// The key of a region or of a window if there is one, else any that ever was; at times with another tag.
    pub(super) fn key(&mut self, world: &World, of_window: bool) -> u32 {
        let is_meant = |thing: &&Thing| matches!(thing.class, Class::Window(_)) == of_window;
        let live: Vec<u32> = world.things.iter().filter(is_meant).map(|thing| thing.key).collect();
        let from = if live.is_empty() || self.roll().is_multiple_of(8) { &world.keys } else { &live };
        let key = if from.is_empty() { 0 } else { self.pick(from) };
        if self.roll().is_multiple_of(16) { key ^ 1 } else { key }
    }

    pub(super) fn pd(&mut self) -> Pd {
        self.pick(&[PD, PD, PD, OTHER_PD])
    }

    pub(super) fn by(&mut self) -> Subject {
        self.pick(&[BY, BY, BY, NEIGHBOUR, STRANGER])
    }
}
