//! Every memory region and window of an engine, found by key.

use alloc::vec::Vec;
use core::ops::Range;

use super::Keys;
use super::object::{AccessError, Binding, Kind, Object, View};
use crate::engine::Pd;
use crate::error::Error;
use crate::rng::Rng;
use crate::slab::Slab;

/// The low bits of a key, which its owner may change from one use of the object to the next; the others number the
/// object as long as it lives (IBTA, key and index portion).
const TAG_BITS: u32 = 8;

/// The numbers of objects: all of 24 bits but 0, so that no key is 0.
const NUMBERS: Range<u32> = 1..1 << (u32::BITS - TAG_BITS);

/// Every memory region and memory window of an engine.
#[derive(Debug)]
pub(crate) struct Memory {
    /// The number in each key, and where its object is.
    numbers: Keys,
    objects: Slab<Object>,
    regions: Quota,
    windows: Quota,
}

/// How many objects of a class there are, and may be.
#[derive(Debug)]
struct Quota {
    what: &'static str,
    limit: u32,
    used: u32,
}

impl Memory {
    /// Room for `max_mr` regions and `max_mw` windows.
    pub(crate) fn new(max_mr: u32, max_mw: u32) -> Self {
        Self {
            numbers: Keys::default(),
            objects: Slab::new(max_mr.saturating_add(max_mw)),
            regions: Quota { what: "memory region", limit: max_mr, used: 0 },
            windows: Quota { what: "memory window", limit: max_mw, used: 0 },
        }
    }

    /// Whether regions or windows belong to `pd`.
    pub(crate) fn uses(&self, pd: Pd) -> bool {
        self.objects.iter().any(|object| object.pd == pd)
    }

    /// The object whose key this is, to the last bit.
    #[inline]
    pub(super) fn object(&self, key: u32) -> Result<&Object, AccessError> {
        let object = self.numbers.get(number(key)).and_then(|place| self.objects.get(place));
        object.filter(|object| object.key == key).ok_or(AccessError::Refused)
    }

    /// The object that has or had this key. For control calls: they name the object, and work requests that have
    /// not been carried out yet may change its tag at any time.
    pub(super) fn owned(&mut self, key: u32) -> Option<&mut Object> {
        self.objects.get_mut(self.numbers.get(number(key))?)
    }

    /// Adds an object; tells its key.
    pub(super) fn insert(
        &mut self,
        rng: &mut Rng,
        pd: Pd,
        kind: Kind,
        view: Option<View>,
    ) -> Result<u32, Error> {
        let quota = if matches!(kind, Kind::Window(_)) { &mut self.windows } else { &mut self.regions };
        let exhausted = quota.exhausted();
        if quota.used == quota.limit {
            return Err(exhausted);
        }
        let place = self.objects.vacant().ok_or_else(|| exhausted.clone())?;
        let number = self.numbers.insert(rng, NUMBERS.start, NUMBERS.end, place).ok_or(exhausted)?;
        let key = number << TAG_BITS | rng.below(1 << TAG_BITS);
        self.objects.insert(Object { key, pd, view, kind, windows: 0 });
        quota.used += 1;
        Ok(key)
    }

    /// Takes an object away; nothing finds its number any more.
    pub(super) fn remove(&mut self, key: u32) -> Option<Object> {
        let place = self.numbers.remove(number(key))?;
        let object = self.objects.remove(place)?;
        let quota = if object.is_window() { &mut self.windows } else { &mut self.regions };
        quota.used -= 1;
        Some(object)
    }

    /// Points a window at other bytes or at none, and keeps count at the regions behind.
    pub(super) fn show(&mut self, window: u32, view: Option<View>) {
        self.count(view.as_ref(), 1);
        let Some(window) = self.owned(window) else { return };
        let former = core::mem::replace(&mut window.view, view);
        self.count(former.as_ref(), -1);
    }

    /// Unbinds the windows whose binding `is_meant`.
    pub(super) fn unbind(&mut self, is_meant: impl Fn(Binding) -> bool) {
        if self.windows.used == 0 {
            return;
        }
        let is_bound =
            |object: &&Object| object.view.as_ref().and_then(|view| view.binding).is_some_and(&is_meant);
        let bound: Vec<u32> = self.objects.iter().filter(is_bound).map(|window| window.key).collect();
        for window in bound {
            self.show(window, None);
        }
    }

    fn count(&mut self, view: Option<&View>, change: i32) {
        let Some(Binding { mr, .. }) = view.and_then(|view| view.binding) else { return };
        let Some(region) = self.owned(mr) else { return };
        region.windows = region.windows.saturating_add_signed(change);
    }
}

impl Quota {
    const fn exhausted(&self) -> Error {
        Error::Exhausted { what: self.what, limit: self.limit }
    }
}

/// Whether two keys can be of one object.
pub(super) const fn same_number(one: u32, other: u32) -> bool {
    number(one) == number(other)
}

const fn number(key: u32) -> u32 {
    key >> TAG_BITS
}
