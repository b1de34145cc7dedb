//! Regions for fast registration.

use super::*;
use crate::memory::Reregister;
use crate::work::Sge;

#[test]
fn nothing_is_open_before_it_is_registered() {
    let mut host = Host::new();
    let mr = host.fast_region();
    let sge = Sge { addr: 0, length: 1, lkey: mr };
    assert_eq!(host.memory.check_local(PD, &[sge], Access::empty()), REFUSED);
    assert_eq!(host.memory.check_remote(BY, RemoteAddr { va: 0, rkey: mr }, 0, Access::empty()), REFUSED);
    let mw = host.window(MwType::Type1);
    assert_eq!(host.memory.bind(BY, &bind(mw, mr)), REFUSED);
}

#[test]
fn registration_shows_the_part_it_names_under_its_key() {
    let mut host = Host::new();
    let region = Region::alloc(LEN as usize);
    assert!(region.write_at(100, b"part"));
    let mr = host.memory.allocate(&mut host.rng, PD, region).expect("room").lkey;
    let reg = RegisterMr { offset: 100, length: 4, ..register(mr) };
    assert_eq!(host.memory.fast_register(BY, &reg), Ok(()));
    let mut out = [0; 4];
    let remote = RemoteAddr { va: IOVA, rkey: reg.key };
    assert!(host.memory.read_remote(NEIGHBOUR, remote, &mut out, Default::default()).is_ok());
    assert_eq!(&out, b"part");
    let sge = |length, lkey| [Sge { addr: IOVA, length, lkey }];
    assert_eq!(host.memory.check_local(PD, &sge(4, reg.key), Access::LOCAL_WRITE), Ok(()));
    assert_eq!(host.memory.check_local(PD, &sge(5, reg.key), Access::LOCAL_WRITE), REFUSED);
    assert_eq!(host.memory.check_local(PD, &sge(4, mr), Access::LOCAL_WRITE), REFUSED, "the former key");
}

#[test]
fn c49_registration_stays_inside_what_was_allocated() {
    let mut host = Host::new();
    let mr = host.fast_region();
    for (offset, length, iova) in [
        (0, LEN + 1, 0),
        (LEN, 1, 0),
        (u64::MAX, 1, 0),
        (1, u64::MAX, 0),
        (0, 2, u64::MAX - 1),
        (0, 1, u64::MAX),
    ] {
        let reg = RegisterMr { offset, length, iova, ..register(mr) };
        assert_eq!(host.memory.fast_register(BY, &reg), REFUSED, "{reg:?}");
    }
}

#[test]
fn registration_follows_the_rules_of_every_registration() {
    let mut host = Host::new();
    let mr = host.fast_region();
    for access in [Access::REMOTE_WRITE, Access::REMOTE_ATOMIC, Access::FLUSH_PERSISTENT, Access::ZERO_BASED]
    {
        assert_eq!(
            host.memory.fast_register(BY, &RegisterMr { access, ..register(mr) }),
            REFUSED,
            "{access:?}"
        );
    }
    let zero = RegisterMr { access: OPEN | Access::ZERO_BASED, iova: 0, ..register(mr) };
    assert_eq!(host.memory.fast_register(BY, &zero), Ok(()));
}

#[test]
fn only_a_free_fast_region_of_ours_is_registered() {
    let mut host = Host::new();
    let mr = host.fast_region();
    let (ordinary, window) = (host.region(OPEN), host.window(MwType::Type2));
    let good = register(mr);
    assert_eq!(host.memory.fast_register(STRANGER, &good), REFUSED);
    assert_eq!(host.memory.fast_register(BY, &register(ordinary)), REFUSED);
    assert_eq!(host.memory.fast_register(BY, &register(window)), REFUSED);
    assert_eq!(host.memory.fast_register(BY, &RegisterMr { mr: mr ^ 1, ..good }), REFUSED);
    assert_eq!(host.memory.fast_register(BY, &RegisterMr { key: good.key ^ 0x100, ..good }), REFUSED);
    assert_eq!(host.memory.fast_register(BY, &good), Ok(()));
    assert_eq!(host.memory.fast_register(BY, &register(good.key)), REFUSED, "not free");
    assert_eq!(host.memory.invalidate(BY, good.key), Ok(()));
    let same_key = RegisterMr { key: good.key, ..register(good.key) };
    assert_eq!(host.memory.fast_register(BY, &same_key), Ok(()), "the tag is the owner's choice");
}

#[test]
fn control_calls_find_it_under_any_of_its_keys() {
    let mut host = Host::new();
    let region = Region::alloc(LEN as usize);
    let mr = host.memory.allocate(&mut host.rng, PD, region.clone()).expect("room").lkey;
    let reg = RegisterMr { offset: 8, length: 8, ..register(mr) };
    assert_eq!(host.memory.fast_register(BY, &reg), Ok(()));
    assert!(host.memory.reregister(mr, Reregister::default()).is_err(), "work requests only");
    let back = host.memory.deregister(mr).expect("a region");
    assert_eq!((back.addr(), back.len()), (region.addr(), region.len()), "all that was allocated");
    assert!(!host.reads(BY, reg.key));
}
