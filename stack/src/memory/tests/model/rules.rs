//! The rules, in plain words.

use super::World;
use crate::memory::tests::*;

/// A region or a window. `id` stays the same whatever happens to the key.
#[derive(Clone)]
pub(super) struct Thing {
    pub(super) id: usize,
    pub(super) key: u32,
    pub(super) pd: Pd,
    pub(super) class: Class,
    pub(super) shown: Option<Shown>,
}

#[derive(Clone)]
pub(super) enum Class {
    Plain,
    Fast(Region),
    Window(MwType),
}

/// Bytes `skip..skip + len` of `memory`, the first of them at the address `first`.
#[derive(Clone)]
pub(super) struct Shown {
    pub(super) memory: Region,
    pub(super) skip: u64,
    pub(super) first: u64,
    pub(super) len: u64,
    pub(super) access: Access,
    pub(super) only: Option<Qpn>,
    pub(super) behind: Option<usize>,
}

/// Whether `addr..addr + len` is inside `first..first + room`.
pub(super) fn inside(addr: u64, len: u64, first: u64, room: u64) -> bool {
    let [addr, len, first, room] = [addr, len, first, room].map(i128::from);
    first <= addr && addr + len <= first + room
}

/// What a registration of `memory` shows, if it is allowed.
pub(super) fn registered(memory: &Region, skip: u64, len: u64, first: u64, access: Access) -> Option<Shown> {
    let changes = access.intersects(Access::REMOTE_WRITE | Access::REMOTE_ATOMIC);
    let is_allowed = (!changes || access.contains(Access::LOCAL_WRITE))
        && (!access.contains(Access::ZERO_BASED) || first == 0)
        && inside(first, len, 0, u64::MAX)
        && inside(skip, len, 0, memory.len() as u64);
    let memory = memory.clone();
    is_allowed.then_some(Shown { memory, skip, first, len, access, only: None, behind: None })
}

impl World {
    pub(super) fn find(&self, key: u32) -> Option<Thing> {
        self.things.iter().find(|thing| thing.key == key).cloned()
    }

    /// The thing that a control call means.
    pub(super) fn named(&self, key: u32, is_window: bool) -> Option<Thing> {
        let is_class = |thing: &&Thing| matches!(thing.class, Class::Window(_)) == is_window;
        self.things.iter().filter(is_class).find(|thing| thing.key >> 8 == key >> 8).cloned()
    }

    pub(super) fn is_behind_a_window(&self, id: usize) -> bool {
        self.things.iter().any(|thing| thing.shown.as_ref().is_some_and(|shown| shown.behind == Some(id)))
    }

    /// The window after the bind, if it is allowed.
    pub(super) fn may_bind(&self, by: Subject, bind: &BindMw) -> Option<Thing> {
        let window = self.find(bind.mw)?;
        let Class::Window(kind) = window.class else { return None };
        let is_zero_based = bind.access.contains(Access::ZERO_BASED);
        let is_allowed = match kind {
            MwType::Type1 => !is_zero_based,
            MwType::Type2 => window.shown.is_none() && bind.length != 0 && bind.rkey != bind.mw,
        };
        let fits = window.pd == by.pd && bind.rkey >> 8 == bind.mw >> 8;
        if !is_allowed || !fits || bind.access.intersects(Access::LOCAL_WRITE | Access::MW_BIND) {
            return None;
        }
        let shown = if bind.length == 0 { None } else { Some(self.may_show(by, kind, bind)?) };
        Some(Thing { key: bind.rkey, shown, ..window })
    }

    pub(super) fn may_show(&self, by: Subject, kind: MwType, bind: &BindMw) -> Option<Shown> {
        let region = self.find(bind.mr)?;
        let bytes =
            region.shown.filter(|_| !matches!(region.class, Class::Window(_)) && region.pd == by.pd)?;
        let changes = bind.access.intersects(Access::REMOTE_WRITE | Access::REMOTE_ATOMIC);
        let is_allowed = bytes.access.contains(Access::MW_BIND)
            && !bytes.access.contains(Access::ZERO_BASED)
            && (!changes || bytes.access.contains(Access::LOCAL_WRITE))
            && inside(bind.addr, bind.length, bytes.first, bytes.len);
        is_allowed.then(|| Shown {
            skip: bytes.skip + (bind.addr - bytes.first),
            first: if bind.access.contains(Access::ZERO_BASED) { 0 } else { bind.addr },
            len: bind.length,
            access: bind.access,
            only: (kind == MwType::Type2).then_some(by.qp),
            behind: Some(region.id),
            memory: bytes.memory,
        })
    }

    /// Where the bytes are that a peer, or without a queue pair the local side, reaches.
    pub(super) fn reached(
        &self,
        pd: Pd,
        qp: Option<Qpn>,
        key: u32,
        at: (u64, u64),
        rights: Access,
    ) -> Option<(Region, u64)> {
        let thing = self.find(key).filter(|thing| thing.pd == pd)?;
        let shown = thing.shown.filter(|shown| shown.access.contains(rights))?;
        let is_open = match qp {
            Some(qp) => shown.only.is_none_or(|only| only == qp),
            None => shown.behind.is_none(),
        };
        let is_inside = inside(at.0, at.1, shown.first, shown.len);
        (is_open && is_inside).then(|| (shown.memory, shown.skip + (at.0 - shown.first)))
    }
}
