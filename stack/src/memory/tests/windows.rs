//! Memory windows: who may bind what, and what peers then reach.

use super::*;
use crate::error::Error;
use crate::memory::Crc;
use crate::work::Sge;

const BOTH: [MwType; 2] = [MwType::Type1, MwType::Type2];

/// Expects the bind to fail, and the window and the region to be as before.
fn assert_refused(host: &mut Host, by: Subject, bind: BindMw) {
    assert_eq!(host.memory.bind(by, &bind), REFUSED, "{bind:?}");
    assert!(!host.reads(by, bind.rkey) && !host.reads(by, bind.mw), "{bind:?}");
}

#[test]
fn a_bound_window_shows_its_part_of_the_region() {
    for kind in BOTH {
        let mut host = Host::new();
        let region = Region::alloc(LEN as usize);
        assert!(region.write_at(16, b"shown"));
        let mr = host.memory.register(&mut host.rng, PD, region.clone(), IOVA, BINDABLE).expect("room").lkey;
        let mw = host.window(kind);
        let bind = BindMw { addr: IOVA + 16, length: 5, ..bind(mw, mr) };
        assert_eq!(host.memory.bind(BY, &bind), Ok(()));

        let at = |va| RemoteAddr { va, rkey: bind.rkey };
        let mut out = [0; 5];
        assert!(host.memory.read_remote(BY, at(IOVA + 16), &mut out, Crc::new()).is_ok());
        assert_eq!(&out, b"shown");
        assert_eq!(host.memory.write_remote(BY, at(IOVA + 18), payload(b"ut!")), Ok(()));
        assert!(region.read_at(16, &mut out));
        assert_eq!(&out, b"shut!");
        for (va, len) in [(IOVA + 15, 1), (IOVA + 16, 6), (IOVA + 21, 1), (IOVA, LEN), (u64::MAX, 2)] {
            assert_eq!(
                host.memory.check_remote(BY, at(va), len, Access::REMOTE_READ),
                REFUSED,
                "{va:#x} {len}"
            );
        }
    }
}

#[test]
fn s05_a_type_2_window_opens_to_its_queue_pair_only() {
    let mut host = Host::new();
    let (_, one) = host.bound(MwType::Type1);
    let (_, two) = host.bound(MwType::Type2);
    let reads = |by, rkey| host.reads(by, rkey);
    assert_eq!([BY, NEIGHBOUR, STRANGER].map(|by| reads(by, one)), [true, true, false]);
    assert_eq!([BY, NEIGHBOUR, STRANGER].map(|by| reads(by, two)), [true, false, false]);
    let flush = |by| {
        host.memory.check_flush(by, RemoteAddr { va: 0, rkey: two }, 0, Default::default(), Access::empty())
    };
    assert_eq!(flush(NEIGHBOUR), REFUSED);
}

#[test]
fn c55_a_bind_needs_one_protection_domain() {
    for kind in BOTH {
        for (qp, mw, mr) in
            [(BY, PD, OTHER_PD), (BY, OTHER_PD, PD), (BY, OTHER_PD, OTHER_PD), (STRANGER, PD, PD)]
        {
            let mut host = Host::new();
            let (mr, mw) = (host.region_of(mr, BINDABLE), host.window_of(mw, kind));
            assert_refused(&mut host, qp, bind(mw, mr));
        }
    }
}

#[test]
fn c49_a_bind_stays_inside_its_region() {
    for kind in BOTH {
        let mut host = Host::new();
        let (mr, mw) = (host.region(BINDABLE), host.window(kind));
        for (addr, length) in [
            (u64::MAX, 1),
            (u64::MAX, 2),
            (IOVA - 1, 2),
            (IOVA, LEN + 1),
            (IOVA + 1, u64::MAX),
            (IOVA + LEN, 1),
        ] {
            assert_refused(&mut host, BY, BindMw { addr, length, ..bind(mw, mr) });
        }
    }
}

#[test]
fn a_bind_needs_the_rights_of_the_region() {
    use Access as A;
    for (region, window, is_allowed) in [
        (BINDABLE, A::REMOTE, true),
        (A::MW_BIND, A::REMOTE_READ, true),
        (OPEN, A::REMOTE_READ, false),
        (A::MW_BIND, A::REMOTE_WRITE, false),
        (A::MW_BIND, A::REMOTE_ATOMIC, false),
        (A::MW_BIND, A::FLUSH_GLOBAL, true),
        (BINDABLE, A::LOCAL_WRITE, false),
        (BINDABLE, A::MW_BIND, false),
        (BINDABLE, A::FLUSH_PERSISTENT, false),
    ] {
        for kind in BOTH {
            let mut host = Host::new();
            let (mr, mw) = (host.region(region), host.window(kind));
            let bind = BindMw { access: window, ..bind(mw, mr) };
            assert_eq!(host.memory.bind(BY, &bind).is_ok(), is_allowed, "{region:?} {window:?} {kind:?}");
        }
    }
}

#[test]
fn a_window_grants_what_its_bind_named_and_no_more() {
    let mut host = Host::new();
    let mr = host.region(OPEN | Access::MW_BIND);
    for right in [Access::REMOTE_READ, Access::REMOTE_WRITE, Access::REMOTE_ATOMIC, Access::FLUSH_GLOBAL] {
        let mw = host.window(MwType::Type2);
        let bind = BindMw { access: right, ..bind(mw, mr) };
        assert_eq!(host.memory.bind(BY, &bind), Ok(()));
        for asked in [Access::REMOTE_READ, Access::REMOTE_WRITE, Access::REMOTE_ATOMIC, Access::FLUSH_GLOBAL]
        {
            let at = RemoteAddr { va: IOVA, rkey: bind.rkey };
            assert_eq!(
                host.memory.check_remote(BY, at, 1, asked).is_ok(),
                asked == right,
                "{right:?} {asked:?}"
            );
        }
    }
}

#[test]
fn a_bind_names_both_keys_to_the_last_bit() {
    for kind in BOTH {
        let mut host = Host::new();
        let (mr, mw) = (host.region(BINDABLE), host.window(kind));
        let good = bind(mw, mr);
        let unbindable = host.region(OPEN);
        for bad in [
            BindMw { mw: mw ^ 1, ..good },
            BindMw { mr: mr ^ 1, ..good },
            BindMw { rkey: good.rkey ^ 0x100, ..good },
            BindMw { mw: mr, rkey: next_tag(mr), ..good },
            BindMw { mr: mw, ..good },
            BindMw { mr: unbindable, ..good },
        ] {
            assert_eq!(host.memory.bind(BY, &bad), REFUSED, "{bad:?}");
        }
        assert_eq!(host.memory.bind(BY, &good), Ok(()));
        assert_eq!(host.memory.bind(BY, &good), REFUSED, "the key has changed");
    }
}

#[test]
fn the_former_key_opens_nothing_after_a_bind() {
    for kind in BOTH {
        let mut host = Host::new();
        let (mr, mw) = (host.region(BINDABLE), host.window(kind));
        let bind = bind(mw, mr);
        assert_eq!(host.memory.bind(BY, &bind), Ok(()));
        assert_eq!((host.reads(BY, mw), host.reads(BY, bind.rkey)), (false, true));
    }
}

#[test]
fn type_1_rebinds_in_place_and_unbinds_by_length_0() {
    let mut host = Host::new();
    let (first, mw) = host.bound(MwType::Type1);
    let second = host.region(BINDABLE);
    let again = BindMw { addr: IOVA + 8, length: 8, ..bind(mw, second) };
    assert_eq!(host.memory.bind(NEIGHBOUR, &again), Ok(()), "any queue pair of the protection domain");
    assert!(host.memory.deregister(first).is_ok(), "the first region is free again");
    assert!(!host.reads(BY, again.rkey), "it shows the other part");
    let at = RemoteAddr { va: IOVA + 8, rkey: again.rkey };
    assert_eq!(host.memory.check_remote(BY, at, 8, Access::REMOTE_WRITE), Ok(()));

    let none = BindMw { mr: 0, length: 0, ..bind(again.rkey, 0) };
    assert_eq!(host.memory.bind(BY, &none), Ok(()), "the region is not looked at");
    assert_eq!(
        host.memory.check_remote(BY, RemoteAddr { rkey: none.rkey, ..at }, 0, Access::empty()),
        REFUSED
    );
    assert!(host.memory.deregister(second).is_ok());
}

#[test]
fn type_2_is_free_before_it_is_bound_and_bound_to_some_bytes() {
    let mut host = Host::new();
    let (mr, mw) = host.bound(MwType::Type2);
    assert_eq!(host.memory.bind(BY, &bind(mw, mr)), REFUSED);
    assert!(host.reads(BY, mw), "still bound as it was");
    assert_eq!(host.memory.invalidate(BY, mw), Ok(()));
    assert_eq!(host.memory.bind(BY, &BindMw { length: 0, ..bind(mw, mr) }), REFUSED);
    assert_eq!(
        host.memory.bind(BY, &BindMw { rkey: mw, ..bind(mw, mr) }),
        REFUSED,
        "its former holders know it"
    );
    assert_eq!(host.memory.bind(NEIGHBOUR, &bind(mw, mr)), Ok(()));
    assert!(host.reads(NEIGHBOUR, next_tag(mw)) && !host.reads(BY, next_tag(mw)));
}

#[test]
fn zero_based_is_for_type_2_over_a_region_with_addresses() {
    let access = Access::REMOTE | Access::ZERO_BASED;
    let mut host = Host::new();
    let mr = host.region(BINDABLE);
    let one = host.window(MwType::Type1);
    assert_refused(&mut host, BY, BindMw { access, ..bind(one, mr) });

    let two = host.window(MwType::Type2);
    let zero = Access::ZERO_BASED | BINDABLE;
    let zero_mr = host.memory.register(&mut host.rng, PD, Region::alloc(16), 0, zero).expect("room").lkey;
    assert_refused(&mut host, BY, BindMw { addr: 0, length: 8, ..bind(two, zero_mr) });

    let bind = BindMw { access, addr: IOVA + 64, length: 16, ..bind(two, mr) };
    assert_eq!(host.memory.bind(BY, &bind), Ok(()));
    let check =
        |va| host.memory.check_remote(BY, RemoteAddr { va, rkey: bind.rkey }, 8, Access::REMOTE_READ).is_ok();
    assert_eq!([0, 8, 9, IOVA + 64].map(check), [true, true, false, false]);
}

#[test]
fn c56_a_window_is_no_local_key() {
    for kind in BOTH {
        let mut host = Host::new();
        let (mr, mw) = host.bound(kind);
        let sge = |lkey| Sge { addr: IOVA, length: 1, lkey };
        assert_eq!(host.memory.check_local(PD, &[sge(mr)], Access::LOCAL_WRITE), Ok(()));
        assert_eq!(host.memory.check_local(PD, &[sge(mw)], Access::empty()), REFUSED);
        assert!(host.memory.gather(PD, &[sge(mw)], 0, &mut [0], Crc::new()).is_err());
        assert_eq!(host.memory.scatter(PD, &[sge(mw)], 0, payload(b"x")), REFUSED);
    }
}

#[test]
fn a_destroyed_queue_pair_frees_its_type_2_windows() {
    let mut host = Host::new();
    let (region_of_one, one) = host.bound(MwType::Type1);
    let (region_of_two, two) = host.bound(MwType::Type2);
    host.memory.unbind_queue_pair(NEIGHBOUR.qp);
    assert!(host.reads(BY, one) && host.reads(BY, two));
    host.memory.unbind_queue_pair(BY.qp);
    assert!(host.reads(BY, one) && !host.reads(BY, two));
    assert!(host.memory.deregister(region_of_one).is_err());
    assert!(host.memory.deregister(region_of_two).is_ok());
    let other = host.region(BINDABLE);
    assert_eq!(host.memory.bind(NEIGHBOUR, &bind(two, other)), Ok(()));
}

#[test]
fn a_window_ends_bound_or_not_under_any_of_its_keys() {
    let mut host = Host::new();
    let unbound = host.window(MwType::Type1);
    assert_eq!(host.memory.dealloc_mw(unbound), Ok(()));
    assert_eq!(host.memory.dealloc_mw(unbound), Err(Error::NotFound("memory window")));

    let (mr, mw) = (host.region(BINDABLE), host.window(MwType::Type2));
    let bind = bind(mw, mr);
    assert_eq!(host.memory.bind(BY, &bind), Ok(()));
    assert_eq!(host.memory.dealloc_mw(mw), Ok(()), "the key that it was allocated with");
    assert!(!host.reads(BY, bind.rkey));
    assert!(host.memory.deregister(mr).is_ok());
}
