//! Keys: nobody guesses them, and no two objects share one.

use std::collections::HashSet;
use std::vec::Vec;

use super::*;
use crate::error::Error;

/// More objects than the 16 bits that some devices number them with.
const MANY: u32 = 70_000;

fn writes(memory: &Memory, rkey: u32) -> bool {
    memory.write_remote(BY, RemoteAddr { va: IOVA, rkey }, payload(b"through")).is_ok()
}

#[test]
fn c51_70_000_regions_and_windows_live_side_by_side() {
    let (mut memory, mut rng) = (Memory::new(MANY, MANY), Rng::new([1; 32]));
    let region = Region::alloc(LEN as usize);
    let mut keys = Vec::new();
    for number in 0..MANY {
        let access = OPEN | Access::MW_BIND;
        let mr = memory.register(&mut rng, PD, region.clone(), IOVA, access).expect("room").lkey;
        let kind = if number % 2 == 0 { MwType::Type1 } else { MwType::Type2 };
        let bind = bind(memory.alloc_mw(&mut rng, PD, kind).expect("room"), mr);
        assert_eq!(memory.bind(BY, &bind), Ok(()));
        keys.extend([mr, bind.rkey]);
    }
    assert!(keys.iter().all(|key| writes(&memory, *key)));
    assert_eq!(keys.iter().map(|key| key >> 8).collect::<HashSet<_>>().len(), keys.len());
}

#[test]
fn c51_70_000_regions_and_windows_one_after_the_other() {
    let (mut memory, mut rng) = (Memory::new(2, 2), Rng::new([2; 32]));
    let region = Region::alloc(LEN as usize);
    for _ in 0..MANY {
        let access = OPEN | Access::MW_BIND;
        let mr = memory.register(&mut rng, PD, region.clone(), IOVA, access).expect("room").lkey;
        let bind = bind(memory.alloc_mw(&mut rng, PD, MwType::Type2).expect("room"), mr);
        assert_eq!(memory.bind(BY, &bind), Ok(()));
        assert!(writes(&memory, mr) && writes(&memory, bind.rkey));
        assert_eq!(memory.dealloc_mw(bind.rkey), Ok(()));
        assert!(memory.deregister(mr).is_ok());
        assert!(!writes(&memory, mr) && !writes(&memory, bind.rkey));
    }
}

#[test]
fn each_class_has_its_own_limit() {
    let (mut memory, mut rng) = (Memory::new(1, 2), Rng::new([3; 32]));
    let mut window = || memory.alloc_mw(&mut rng, PD, MwType::Type1);
    let first = window().expect("room");
    assert!(window().is_ok());
    assert_eq!(window(), Err(Error::Exhausted { what: "memory window", limit: 2 }));
    let mut region = || memory.allocate(&mut rng, PD, Region::alloc(1));
    assert!(region().is_ok());
    assert_eq!(region(), Err(Error::Exhausted { what: "memory region", limit: 1 }));
    memory.dealloc_mw(first).expect("a window");
    assert!(memory.alloc_mw(&mut rng, PD, MwType::Type2).is_ok());
}

#[test]
fn s01_keys_are_spread_over_all_32_bits() {
    let mut host = Host::new();
    let (mut ones, mut steps) = ([0u32; 32], [0u32; 32]);
    let mut former = 0;
    for _ in 0..100_000 {
        let key = host.window(MwType::Type1);
        host.memory.dealloc_mw(key).expect("a window");
        for bit in 0..32 {
            ones[bit] += key >> bit & 1;
            steps[bit] += (key ^ former) >> bit & 1;
        }
        former = key;
    }
    let is_even = |count: &u32| (49_000..51_000).contains(count);
    assert!(ones.iter().chain(&steps).all(is_even), "{ones:?} {steps:?}");
}

#[test]
fn s01_a_freed_number_is_not_used_again_soon() {
    let mut host = Host::new();
    let mut used = HashSet::new();
    for _ in 0..4096 {
        let key = host.window(MwType::Type1);
        host.memory.dealloc_mw(key).expect("a window");
        assert!(used.insert(key >> 8));
    }
}

#[test]
fn s01_another_seed_gives_other_keys() {
    let first = |seed| {
        let mut host = Host { memory: Memory::new(64, 64), rng: Rng::new([seed; 32]) };
        (0..64).map(|_| host.window(MwType::Type1)).collect::<HashSet<_>>()
    };
    assert_eq!(first(1), first(1));
    assert!(first(1).is_disjoint(&first(2)));
}

#[test]
fn s01_65_536_guesses_hit_nothing() {
    let mut host = Host::new();
    let keys = [host.region(OPEN), host.bound(MwType::Type1).1];
    let mut guesses = Rng::new([9; 32]);
    assert!((0..1 << 16).all(|_| !writes(&host.memory, guesses.next_u32())));
    for key in keys {
        assert!(
            (0..32).all(|bit| !writes(&host.memory, key ^ 1 << bit)),
            "a neighbour of a key that is known"
        );
        assert!(writes(&host.memory, key));
    }
}
