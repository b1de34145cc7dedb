//! LOCAL_INV and SEND_WITH_INV: the key fits to the last bit, and the object is one that can be invalidated.

use super::*;

#[test]
fn c52_a_fast_registered_region_is_closed_once() {
    let mut host = Host::new();
    let mr = host.fast_region();
    let reg = register(mr);
    assert_eq!(host.memory.fast_register(BY, &reg), Ok(()));
    assert_eq!(host.memory.invalidate(BY, reg.key ^ 1), REFUSED, "the wrong tag");
    assert_eq!(host.memory.invalidate(STRANGER, reg.key), REFUSED, "another protection domain");
    assert!(host.reads(BY, reg.key), "still valid");
    assert_eq!(host.memory.invalidate(NEIGHBOUR, reg.key), Ok(()));
    assert!(!host.reads(BY, reg.key));
    assert_eq!(host.memory.invalidate(BY, reg.key), REFUSED, "nothing is left to invalidate");
}

#[test]
fn c52_a_type_2_window_is_closed_by_its_own_queue_pair() {
    let mut host = Host::new();
    let (mr, mw) = host.bound(MwType::Type2);
    for (by, key) in [(BY, mw ^ 1), (NEIGHBOUR, mw), (STRANGER, mw)] {
        assert_eq!(host.memory.invalidate(by, key), REFUSED, "{by:?}");
        assert!(host.reads(BY, mw));
    }
    assert_eq!(host.memory.invalidate(BY, mw), Ok(()));
    assert!(!host.reads(BY, mw));
    assert_eq!(host.memory.invalidate(BY, mw), REFUSED);
    assert!(host.memory.deregister(mr).is_ok(), "the region is free of it");
}

#[test]
fn c52_nothing_else_can_be_invalidated() {
    let mut host = Host::new();
    let ordinary = host.region(OPEN);
    let (_, type_1) = host.bound(MwType::Type1);
    let (unbound, unregistered) = (host.window(MwType::Type2), host.fast_region());
    for key in [ordinary, type_1, unbound, unregistered, 0, u32::MAX] {
        assert_eq!(host.memory.invalidate(BY, key), REFUSED, "{key:#x}");
    }
    assert!(host.reads(BY, ordinary) && host.reads(BY, type_1));
}

#[test]
fn c52_a_region_behind_a_window_stays_until_the_window_is_closed() {
    let mut host = Host::new();
    let (mr, mw) = (host.fast_region(), host.window(MwType::Type2));
    let reg = register(mr);
    assert_eq!(host.memory.fast_register(BY, &reg), Ok(()));
    let bind = bind(mw, reg.key);
    assert_eq!(host.memory.bind(BY, &bind), Ok(()));
    assert_eq!(host.memory.invalidate(BY, reg.key), REFUSED);
    assert!(host.reads(BY, bind.rkey) && host.reads(BY, reg.key));
    assert_eq!(host.memory.invalidate(BY, bind.rkey), Ok(()));
    assert_eq!(host.memory.invalidate(BY, reg.key), Ok(()));
}
