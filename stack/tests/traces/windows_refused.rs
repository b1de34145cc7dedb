//! Binds that are refused: each way to be wrong, and what they leave behind (protocol section 4.14; C49, C55).

use crate::common::*;
use uroce_stack::{BindMw, MwType};

const BOTH: [MwType; 2] = [MwType::Type1, MwType::Type2];

type Change = fn(BindMw) -> BindMw;

/// A bind that is wrong, by the way it is wrong.
type Wrong = (&'static str, fn(&mut Host, BindMw) -> BindMw);

fn wrong_binds() -> Vec<Wrong> {
    vec![
        ("C49 at the end of the address space", |_, bind| BindMw { addr: u64::MAX, ..bind }),
        ("C49 wraps", |_, bind| BindMw { addr: u64::MAX, length: 2, ..bind }),
        ("before the region", |_, bind| BindMw { addr: VA - 1, ..bind }),
        ("past its end", |_, bind| BindMw { length: AREA as u64 + 1, ..bind }),
        ("unknown window", |_, bind| BindMw { mw: !bind.mw, rkey: !bind.mw, ..bind }),
        ("former key of the window", |_, bind| BindMw { mw: retagged(bind.mw), ..bind }),
        ("another window's number", |_, bind| BindMw { rkey: !bind.rkey, ..bind }),
        ("unknown region", |_, bind| BindMw { mr: !bind.mr, ..bind }),
        ("the window as its region", |_, bind| BindMw { mr: bind.mw, ..bind }),
        ("the region as its window", |_, bind| BindMw { mw: bind.mr, rkey: retagged(bind.mr), ..bind }),
        ("a right no window has", |_, bind| BindMw { access: bind.access | Access::LOCAL_WRITE, ..bind }),
        ("a region without the right to it", |host, bind| {
            host.grant(Access::empty());
            bind
        }),
        ("a region that may not be written", |host, bind| {
            let access = Access::MW_BIND | Access::REMOTE_READ;
            let keys = host.engine.register_mr(host.pd, Region::alloc(64), VA, access).expect("room");
            BindMw { mr: keys.lkey, ..bind }
        }),
        ("a zero-based region", |host, bind| {
            let access = Access::LOCAL_WRITE | Access::MW_BIND | Access::ZERO_BASED;
            let keys = host.engine.register_mr(host.pd, Region::alloc(64), 0, access).expect("room");
            BindMw { mr: keys.lkey, addr: 0, ..bind }
        }),
    ]
}

#[test]
fn c49_s23_a_wrong_bind_fails_behind_what_was_posted_before_and_opens_nothing() {
    for kind in BOTH {
        for (name, spoil) in wrong_binds() {
            let mut host = Host::open();
            let mw = host.window(kind);
            let good = host.bind(mw, 0, 8);
            let wrong = spoil(&mut host, good);
            host.post_recv(9, 0, 8);
            host.post_send(1, 4);
            host.post_bare(2, SendOp::BindMw(wrong));
            host.post_send(3, 4);
            assert_eq!((host.sent().len(), host.done()), (1, vec![]), "{name}: {kind:?}");
            host.recv(ack(500, 1));
            assert_eq!(host.sent(), [], "{name}");
            let end = [(1, WcStatus::Success), (2, WcStatus::MwBindErr), (3, WcStatus::WrFlushErr)];
            assert_eq!((host.done(), host.received()), (end.to_vec(), flushed([9])), "{name}: {kind:?}");
            assert_eq!(host.state(), QpState::Err, "{name}");
            assert!(host.engine.revoke_mr(host.keys.lkey).is_ok(), "{name}");
        }
    }
}

#[test]
fn binds_that_one_type_alone_refuses() {
    let zero_based = |bind: BindMw| BindMw { access: bind.access | Access::ZERO_BASED, ..bind };
    let nothing = |bind: BindMw| BindMw { length: 0, ..bind };
    let same_key = |bind: BindMw| BindMw { rkey: bind.mw, ..bind };
    let cases: [(&str, Change, MwType); 3] = [
        ("type 1 is not zero-based", zero_based, MwType::Type1),
        ("type 2 is not bound to nothing", nothing, MwType::Type2),
        ("type 2 takes another tag", same_key, MwType::Type2),
    ];
    for (name, change, refuses) in cases {
        for kind in BOTH {
            let mut host = Host::open();
            let mw = host.window(kind);
            let bind = change(host.bind(mw, 0, 8));
            host.post_bare(1, SendOp::BindMw(bind));
            let status = if kind == refuses { WcStatus::MwBindErr } else { WcStatus::Success };
            assert_eq!((host.sent(), host.done()), (vec![], vec![(1, status)]), "{name}: {kind:?}");
        }
    }
}

#[test]
fn p4_14_a_bound_type_2_window_is_freed_before_it_is_bound_again() {
    let mut host = Host::open();
    let window = host.bound(MwType::Type2, 0, 8);
    host.post_bare(1, SendOp::LocalInvalidate { rkey: window.rkey });
    host.post_bare(2, SendOp::BindMw(host.bind(window.rkey, 8, 8)));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1, 2])));
    let again = retagged(window.rkey);
    host.post_bare(3, SendOp::BindMw(host.bind(again, 16, 8)));
    assert_eq!((host.sent(), host.done()), (vec![], vec![(3, WcStatus::MwBindErr)]));
}

/// Window, region and queue pair in every mix of two domains but one.
#[test]
fn c55_a_bind_needs_window_region_and_queue_pair_in_one_domain() {
    for kind in BOTH {
        for mix in 1..8 {
            let mut host = Host::open();
            let other = host.engine.alloc_pd().expect("room");
            let domain = |bit: u32| if mix >> bit & 1 == 1 { other } else { host.pd };
            let (mw_pd, mr_pd, qp_pd) = (domain(0), domain(1), domain(2));
            let is_one = [mw_pd, mr_pd, qp_pd] == [other; 3];
            let mw = host.engine.alloc_mw(mw_pd, kind).expect("room");
            let access = Access::LOCAL_WRITE | Access::MW_BIND;
            let mr = host.engine.register_mr(mr_pd, Region::alloc(64), VA, access).expect("room").lkey;
            let mut qp = host.neighbour(1, qp_pd);
            let bind = BindMw { mr, ..host.bind(mw, 0, 8) };
            post_to(&mut qp, 1, SendOp::BindMw(bind), &[]);
            let status = if is_one { WcStatus::Success } else { WcStatus::MwBindErr };
            assert_eq!((host.sent(), host.done()), (vec![], vec![(1, status)]), "{kind:?} {mix}");
            assert_eq!(
                host.engine.deregister_mr(mr).is_err(),
                is_one,
                "{kind:?} {mix}: a window is in the way"
            );
        }
    }
}
