//! Regions that control calls register.

use super::*;
use crate::error::Error;
use crate::memory::Reregister;
use crate::work::Sge;

#[test]
fn c49_no_address_wraps() {
    let mut host = Host::new();
    let rkey = host.region(OPEN);
    for (va, len) in [
        (u64::MAX - 7, 16),
        (IOVA, u64::from(u32::MAX)),
        (IOVA - 1, 1),
        (IOVA, LEN + 1),
        (IOVA + LEN, 1),
        (IOVA + LEN - 1, 2),
        (IOVA, u64::MAX),
        (0, u64::MAX),
    ] {
        let found = host.memory.check_remote(BY, RemoteAddr { va, rkey }, len, Access::REMOTE_WRITE);
        assert_eq!(found, REFUSED, "{va:#x} {len}");
    }
    let whole = RemoteAddr { va: IOVA, rkey };
    assert_eq!(host.memory.check_remote(BY, whole, LEN, Access::REMOTE_WRITE), Ok(()));
}

#[test]
fn c49_a_region_that_passes_the_end_of_the_address_space_is_refused() {
    let mut host = Host::new();
    let mut register =
        |iova| host.memory.register(&mut host.rng, PD, Region::alloc(16), iova, Access::empty()).is_ok();
    assert_eq!([14, 15, 16].map(|below| register(u64::MAX - below)), [false, false, true]);
}

#[test]
fn remote_change_needs_local_write() {
    let mut host = Host::new();
    let mut register = |access| host.memory.register(&mut host.rng, PD, Region::alloc(16), 0, access).is_ok();
    for access in [Access::REMOTE_WRITE, Access::REMOTE_ATOMIC, Access::REMOTE_WRITE | Access::REMOTE_READ] {
        assert!(!register(access), "{access:?}");
        assert!(register(access | Access::LOCAL_WRITE), "{access:?}");
    }
    assert!(register(Access::REMOTE_READ));
}

#[test]
fn what_no_memory_here_can_do_is_refused_in_words() {
    let mut host = Host::new();
    let persistent = host.memory.register(&mut host.rng, PD, Region::alloc(16), 0, Access::FLUSH_PERSISTENT);
    assert!(matches!(persistent, Err(Error::Invalid(why)) if why.contains("FLUSH_PERSISTENT")));
}

#[test]
fn zero_based_regions_count_from_0() {
    let mut host = Host::new();
    let access = OPEN | Access::ZERO_BASED;
    let mut register = |iova| host.memory.register(&mut host.rng, PD, Region::alloc(16), iova, access);
    assert!(matches!(register(8), Err(Error::Invalid(why)) if why.contains("iova")));
    let rkey = register(0).expect("a region").rkey;
    let check = |va| host.memory.check_remote(BY, RemoteAddr { va, rkey }, 8, Access::REMOTE_READ).is_ok();
    assert_eq!([0, 8, 9].map(check), [true, true, false]);
}

#[test]
fn s05_a_key_of_another_protection_domain_opens_nothing() {
    let mut host = Host::new();
    let key = host.region(OPEN);
    let remote = RemoteAddr { va: IOVA, rkey: key };
    let sge = Sge { addr: IOVA, length: 1, lkey: key };
    assert_eq!(host.memory.check_remote(STRANGER, remote, 1, Access::empty()), REFUSED);
    assert_eq!(host.memory.check_local(OTHER_PD, &[sge], Access::empty()), REFUSED);
    assert!(host.reads(NEIGHBOUR, key), "a region is for every queue pair of its protection domain");
}

#[test]
fn s06_a_key_opens_the_range_of_its_region_and_nothing_around() {
    let mut host = Host::new();
    let keys = [host.region(OPEN), host.region(OPEN)];
    for rkey in keys {
        let check =
            |va| host.memory.check_remote(BY, RemoteAddr { va, rkey }, 1, Access::REMOTE_READ).is_ok();
        assert_eq!((0..IOVA + 2 * LEN).filter(|va| check(*va)).count() as u64, LEN);
    }
}

#[test]
fn deregistering_revokes_and_hands_the_memory_back() {
    let mut host = Host::new();
    let region = Region::alloc(16);
    let key = host.memory.register(&mut host.rng, PD, region.clone(), IOVA, OPEN).expect("a region").lkey;
    assert!(host.reads(BY, key));
    assert_eq!(host.memory.deregister(key).map(|region| region.addr()), Ok(region.addr()));
    assert!(!host.reads(BY, key));
    assert_eq!(host.memory.deregister(key).map(drop), Err(Error::NotFound("memory region")));
}

#[test]
fn a_region_with_windows_stays_until_they_are_unbound_or_revoked() {
    for kind in [MwType::Type1, MwType::Type2] {
        let mut host = Host::new();
        let (mr, mw) = host.bound(kind);
        assert_eq!(host.memory.deregister(mr).map(drop), Err(Error::Busy("memory region")));
        assert!(host.reads(BY, mw), "nothing has changed");
        assert!(host.memory.revoke(mr).is_ok());
        assert!(!host.reads(BY, mw));
        assert_eq!(host.memory.dealloc_mw(mw), Ok(()), "the window itself is still there");
    }
}

#[test]
fn revoking_leaves_windows_of_other_regions_bound() {
    let mut host = Host::new();
    let (first, of_first) = host.bound(MwType::Type2);
    let (second, of_second) = host.bound(MwType::Type1);
    assert!(host.memory.revoke(first).is_ok());
    assert_eq!((host.reads(BY, of_first), host.reads(BY, of_second)), (false, true));
    assert!(host.memory.deregister(second).is_err(), "its window still counts");
}

#[test]
fn reregistering_changes_what_it_names_and_nothing_else() {
    let mut host = Host::new();
    let key = host.region(Access::REMOTE_READ);
    let change = Reregister { pd: Some(OTHER_PD), ..Reregister::default() };
    assert!(matches!(host.memory.reregister(key, change), Ok(None)));
    assert_eq!((host.reads(BY, key), host.reads(STRANGER, key)), (false, true));

    let change = Reregister { access: Some(Access::LOCAL_WRITE), ..Reregister::default() };
    assert!(matches!(host.memory.reregister(key, change), Ok(None)));
    assert!(!host.reads(STRANGER, key));

    let memory = Region::alloc(8);
    let change = Reregister {
        memory: Some((memory, IOVA - 4)),
        access: Some(Access::REMOTE_READ),
        ..Reregister::default()
    };
    let former = host.memory.reregister(key, change).expect("a change");
    assert_eq!(former.map(|region| region.len() as u64), Some(LEN), "the former memory comes back");
    let check = |va| host.memory.check_remote(STRANGER, RemoteAddr { va, rkey: key }, 1, Access::REMOTE_READ);
    assert_eq!((check(IOVA - 4), check(IOVA + 4)), (Ok(()), REFUSED));
}

#[test]
fn a_reregistration_that_is_refused_changes_nothing() {
    let mut host = Host::new();
    let key = host.region(Access::REMOTE_READ);
    for (iova, access) in
        [(u64::MAX, None), (IOVA, Some(Access::REMOTE_WRITE)), (IOVA, Some(Access::ZERO_BASED))]
    {
        let change = Reregister { pd: Some(OTHER_PD), memory: Some((Region::alloc(8), iova)), access };
        assert!(
            matches!(host.memory.reregister(key, change), Err(Error::Invalid(_))),
            "{iova:#x} {access:?}"
        );
        assert!(host.reads(BY, key));
    }
    let (mr, mw) = host.bound(MwType::Type1);
    let change = Reregister { pd: Some(OTHER_PD), ..Reregister::default() };
    assert!(matches!(host.memory.reregister(mr, change), Err(Error::Busy(_))));
    assert!(host.reads(BY, mw));
}

#[test]
fn control_calls_know_regions_from_windows() {
    let mut host = Host::new();
    let (mr, mw) = (host.region(OPEN), host.window(MwType::Type1));
    let not_found = Err(Error::NotFound("memory region"));
    assert_eq!(host.memory.deregister(mw).map(drop), not_found);
    assert_eq!(host.memory.revoke(mw).map(drop), not_found);
    assert_eq!(host.memory.reregister(mw, Reregister::default()).map(drop), not_found);
    assert_eq!(host.memory.dealloc_mw(mr), Err(Error::NotFound("memory window")));
}

#[test]
fn a_protection_domain_is_in_use_while_anything_belongs_to_it() {
    let mut host = Host::new();
    assert!(!host.memory.uses(PD));
    let mw = host.window(MwType::Type1);
    assert!(host.memory.uses(PD) && !host.memory.uses(OTHER_PD));
    host.memory.dealloc_mw(mw).expect("a window");
    let mr = host.fast_region();
    assert!(host.memory.uses(PD));
    host.memory.deregister(mr).expect("a region");
    assert!(!host.memory.uses(PD));
}
