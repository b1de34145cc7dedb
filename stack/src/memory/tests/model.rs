//! Random control calls and work requests, against a model that knows the rules and nothing of how they are kept.

mod attempts;
mod dice;
mod rules;

use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, any, proptest};
use std::vec::Vec;

use super::*;
use crate::memory::Reregister;
use dice::{ACCESSES, ADDRESSES, Dice, LENGTHS};
use rules::{Class, Shown, Thing, registered};

/// The real thing and its model, side by side.
struct World {
    host: Host,
    things: Vec<Thing>,
    /// Every key that ever was.
    keys: Vec<u32>,
    made: usize,
}

impl World {
    fn new() -> Self {
        let host = Host { memory: Memory::new(6, 6), rng: Rng::new([5; 32]) };
        Self { host, things: Vec::new(), keys: Vec::new(), made: 0 }
    }

    /// Memory whose bytes differ from those of other memory.
    fn fresh(&mut self) -> Region {
        self.made += 1;
        let region = Region::alloc(LEN as usize);
        let bytes: Vec<u8> = (0..LEN as usize).map(|at| (at * 7 + self.made * 31) as u8).collect();
        assert!(region.write_at(0, &bytes));
        region
    }

    fn close_windows(&mut self, is_meant: impl Fn(&Shown) -> bool) {
        for thing in &mut self.things {
            thing.shown.take_if(|shown| shown.behind.is_some() && is_meant(shown));
        }
    }

    fn add(&mut self, key: Option<u32>, pd: Pd, class: Class, shown: Option<Shown>) {
        let Some(key) = key else { return };
        self.made += 1;
        self.keys.push(key);
        self.things.push(Thing { id: self.made, key, pd, class, shown });
    }

    /// Puts a thing in the place of its former self, if it changes.
    fn put(&mut self, changed: Option<Thing>) {
        let Some(thing) = changed else { return };
        self.keys.push(thing.key);
        self.things.retain(|other| other.id != thing.id);
        self.things.push(thing);
    }

    fn has_room(&self, for_window: bool) -> bool {
        let is_window = |thing: &&Thing| matches!(thing.class, Class::Window(_)) == for_window;
        self.things.iter().filter(is_window).count() < 6
    }

    fn step(&mut self, mut dice: Dice<'_>) {
        match dice.roll() % 22 {
            0 | 1 => self.register(&mut dice),
            2 | 3 => self.allocate(&mut dice),
            4 => self.deregister(&mut dice),
            5 => self.revoke(&mut dice),
            6 => self.reregister(&mut dice),
            7 | 8 => self.alloc_mw(&mut dice),
            9 => self.dealloc_mw(&mut dice),
            10..=14 => self.bind(&mut dice),
            15..=18 => self.fast_register(&mut dice),
            19 | 20 => self.invalidate(&mut dice),
            _ => self.destroy_qp(&mut dice),
        }
    }

    fn register(&mut self, dice: &mut Dice<'_>) {
        let (pd, region, access) = (dice.pd(), self.fresh(), dice.mostly(&ACCESSES));
        let iova = if access.contains(Access::ZERO_BASED) {
            dice.mostly(&[0, 8])
        } else {
            dice.mostly(&[IOVA, u64::MAX])
        };
        let shown = registered(&region, 0, LEN, iova, access).filter(|_| self.has_room(false));
        let found = self.host.memory.register(&mut self.host.rng, pd, region, iova, access);
        assert_eq!(found.is_ok(), shown.is_some(), "{found:?}");
        self.add(found.ok().map(|keys| keys.lkey), pd, Class::Plain, shown);
    }

    fn allocate(&mut self, dice: &mut Dice<'_>) {
        let (pd, region) = (dice.pd(), self.fresh());
        let found = self.host.memory.allocate(&mut self.host.rng, pd, region.clone());
        assert_eq!(found.is_ok(), self.has_room(false));
        self.add(found.ok().map(|keys| keys.lkey), pd, Class::Fast(region), None);
    }

    fn deregister(&mut self, dice: &mut Dice<'_>) {
        let key = dice.key(self, false);
        let meant = self.named(key, false).filter(|thing| !self.is_behind_a_window(thing.id));
        assert_eq!(self.host.memory.deregister(key).is_ok(), meant.is_some());
        self.things.retain(|thing| meant.as_ref().is_none_or(|meant| thing.id != meant.id));
    }

    fn revoke(&mut self, dice: &mut Dice<'_>) {
        let key = dice.key(self, false);
        let meant = self.named(key, false);
        assert_eq!(self.host.memory.revoke(key).is_ok(), meant.is_some());
        if let Some(meant) = meant {
            self.close_windows(|shown| shown.behind == Some(meant.id));
            self.things.retain(|thing| thing.id != meant.id);
        }
    }

    fn reregister(&mut self, dice: &mut Dice<'_>) {
        let (key, new) = (dice.key(self, false), self.fresh());
        let memory = dice.pick(&[None, Some(IOVA), Some(0)]).map(|iova| (new, iova));
        let pd = dice.pick(&[None, Some(PD), Some(OTHER_PD)]);
        let access = dice.pick(&[None, Some(ACCESSES[0]), Some(ACCESSES[5]), Some(ACCESSES[6])]);
        let is_meant =
            |thing: &Thing| matches!(thing.class, Class::Plain) && !self.is_behind_a_window(thing.id);
        let changed = self.named(key, false).filter(is_meant).and_then(|thing| {
            let former = thing.shown.clone()?;
            let (memory, first) = memory.clone().unwrap_or((former.memory, former.first));
            let shown = registered(&memory, 0, LEN, first, access.unwrap_or(former.access))?;
            Some(Thing { pd: pd.unwrap_or(thing.pd), shown: Some(shown), ..thing })
        });
        let found = self.host.memory.reregister(key, Reregister { pd, memory, access });
        assert_eq!(found.is_ok(), changed.is_some(), "{found:?}");
        self.put(changed);
    }

    fn alloc_mw(&mut self, dice: &mut Dice<'_>) {
        let (pd, kind) = (dice.pd(), dice.pick(&[MwType::Type1, MwType::Type2]));
        let found = self.host.memory.alloc_mw(&mut self.host.rng, pd, kind);
        assert_eq!(found.is_ok(), self.has_room(true));
        self.add(found.ok(), pd, Class::Window(kind), None);
    }

    fn dealloc_mw(&mut self, dice: &mut Dice<'_>) {
        let key = dice.key(self, true);
        let meant = self.named(key, true);
        assert_eq!(self.host.memory.dealloc_mw(key).is_ok(), meant.is_some());
        self.things.retain(|thing| meant.as_ref().is_none_or(|meant| thing.id != meant.id));
    }

    fn bind(&mut self, dice: &mut Dice<'_>) {
        let (by, mw, mr) = (dice.by(), dice.key(self, true), dice.key(self, false));
        let rkey = dice.pick(&[next_tag(mw), next_tag(mw), next_tag(mw), mw, mw ^ 0x100]);
        let (addr, length) = (dice.mostly(&ADDRESSES), dice.mostly(&LENGTHS));
        let bind = BindMw { mw, rkey, mr, addr, length, access: dice.mostly(&ACCESSES) };
        let expected = self.may_bind(by, &bind);
        assert_eq!(self.host.memory.bind(by, &bind).is_ok(), expected.is_some(), "{bind:?}");
        self.put(expected);
    }

    fn fast_register(&mut self, dice: &mut Dice<'_>) {
        let (by, mr) = (dice.by(), dice.key(self, false));
        let key = dice.pick(&[next_tag(mr), next_tag(mr), mr, mr ^ 0x100]);
        let (offset, length) = (dice.mostly(&[0, 64, LEN, u64::MAX]), dice.mostly(&LENGTHS));
        let reg = RegisterMr {
            mr,
            key,
            offset,
            length,
            iova: dice.mostly(&ADDRESSES),
            access: dice.mostly(&ACCESSES),
        };
        let expected = self.find(mr).and_then(|thing| {
            let Class::Fast(memory) = &thing.class else { return None };
            let shown = registered(memory, offset, length, reg.iova, reg.access)?;
            let is_allowed = thing.pd == by.pd && thing.shown.is_none() && key >> 8 == mr >> 8;
            is_allowed.then_some(Thing { key, shown: Some(shown), ..thing })
        });
        assert_eq!(self.host.memory.fast_register(by, &reg).is_ok(), expected.is_some(), "{reg:?}");
        self.put(expected);
    }

    fn invalidate(&mut self, dice: &mut Dice<'_>) {
        let (by, of_window) = (dice.by(), dice.pick(&[false, true]));
        let key = dice.key(self, of_window);
        let expected = self.find(key).filter(|thing| {
            let shown = thing.shown.as_ref().filter(|_| thing.pd == by.pd);
            shown.is_some_and(|shown| match thing.class {
                Class::Plain | Class::Window(MwType::Type1) => false,
                Class::Fast(_) => !self.is_behind_a_window(thing.id),
                Class::Window(MwType::Type2) => shown.only == Some(by.qp),
            })
        });
        assert_eq!(self.host.memory.invalidate(by, key).is_ok(), expected.is_some());
        self.put(expected.map(|thing| Thing { shown: None, ..thing }));
    }

    fn destroy_qp(&mut self, dice: &mut Dice<'_>) {
        let qp = dice.by().qp;
        self.host.memory.unbind_queue_pair(qp);
        self.close_windows(|shown| shown.only == Some(qp));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn who_reaches_what_is_as_the_rules_say(steps in vec(any::<[u8; 20]>(), 1..150)) {
        let mut world = World::new();
        for step in steps {
            world.step(Dice(&step[..16]));
            world.try_everything(Dice(&step[16..]));
        }
    }
}
