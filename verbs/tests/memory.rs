//! Windows, invalidation, fast registration, re-registration, ATOMIC WRITE and FLUSH.

mod common;

use common::{ALL, both_kinds, connected, next, region, succeed};
use uroce::testing::{Connected, LinkModel};
use uroce::{
    Access, BindInfo, Context, DeviceConfig, Drive, Error, FlushPlacement, FlushScope, Link, MacAddr,
    MrChange, MwType, QpState, QpType, QueuePair, RecvWr, RemoteMr, SendWr, WcFlags, WcOpcode, WcStatus,
};

const RC: (QpType, QpType) = (QpType::Rc, QpType::Rc);
const BINDABLE: Access = ALL.union(Access::MW_BIND);

/// A fresh connection: whoever is refused something needs another one.
fn fresh(pair: &(Connected, Connected)) -> (QueuePair, QueuePair) {
    connected(pair, RC, |qp| qp.access(Access::REMOTE | Access::FLUSH_GLOBAL))
}

/// Whether the left end may write `text` through a key of the right one.
fn writes(pair: &(Connected, Connected), by: &QueuePair, text: &[u8], to: RemoteMr) -> bool {
    by.post_send(&[SendWr::rdma_write_inline(77, text, to).signaled()]).expect("room");
    match next(pair, &pair.0.cq).status {
        WcStatus::Success => true,
        WcStatus::RemAccessErr => false,
        other => panic!("{other}"),
    }
}

#[test]
fn a_type_1_window_opens_moves_and_closes() {
    for pair in both_kinds() {
        let (_, b) = &pair;
        let (left, right) = fresh(&pair);
        let mr = b.pd.alloc_mr(64, BINDABLE).expect("a region");
        let window = b.pd.alloc_mw(MwType::Type1).expect("a window");
        let mut keys = vec![window.rkey()];
        for part in [8..16, 16..24] {
            window.bind(&right, 1, BindInfo::new(&mr, part.clone(), Access::REMOTE_WRITE)).expect("room");
            assert_eq!(succeed(&pair, &b.cq).opcode, WcOpcode::BindMw);
            assert!(!keys.contains(&window.rkey()), "each binding has another key");
            keys.push(window.rkey());
            assert!(writes(&pair, &left, b"through ", window.remote()));
            assert_eq!(mr.to_vec(part).expect("written"), b"through ");
        }
        let last = window.remote();
        window.bind(&right, 2, BindInfo { len: 0, ..BindInfo::new(&mr, .., Access::empty()) }).expect("room");
        succeed(&pair, &b.cq);
        assert!(!writes(&pair, &left, b"too late", last));
    }
}

#[test]
fn a_type_2_window_opens_to_its_queue_pair_until_it_is_invalidated() {
    for pair in both_kinds() {
        let (_, b) = &pair;
        let (left, right) = fresh(&pair);
        let (other, _other_right) = fresh(&pair);
        let mr = b.pd.alloc_mr(64, BINDABLE).expect("a region");
        let window = b.pd.alloc_mw(MwType::Type2).expect("a window");
        for _ in 0..300 {
            // More often than there are tags: the keys come round.
            let info = BindInfo::new(&mr, 8..24, Access::REMOTE_WRITE | Access::ZERO_BASED);
            let bind = SendWr::bind_mw(1, &window, info).signaled();
            right.post_send(&[bind, SendWr::local_inv(2, window.rkey()).signaled()]).expect("room");
            let done = [succeed(&pair, &b.cq), succeed(&pair, &b.cq)].map(|wc| wc.opcode);
            assert_eq!(done, [WcOpcode::BindMw, WcOpcode::LocalInv]);
        }
        let info = BindInfo::new(&mr, 8..24, Access::REMOTE_WRITE | Access::ZERO_BASED);
        right.post_send(&[SendWr::bind_mw(3, &window, info).signaled()]).expect("room");
        succeed(&pair, &b.cq);
        assert_eq!((window.remote().addr, window.remote().len), (0, 16), "its addresses start at 0");
        assert!(writes(&pair, &left, b"window", window.remote()));
        assert_eq!(mr.to_vec(8..14).expect("written"), b"window");
        assert!(!writes(&pair, &other, b"x", window.remote()), "it opens to one queue pair");
        right.post_send(&[SendWr::local_inv(4, window.rkey()).signaled()]).expect("room");
        succeed(&pair, &b.cq);
        assert!(!writes(&pair, &left, b"x", window.remote()));
    }
}

#[test]
fn the_peer_invalidates_what_it_was_given() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let (left, right) = fresh(&pair);
        let mr = b.pd.alloc_mr(64, BINDABLE).expect("a region");
        let window = b.pd.alloc_mw(MwType::Type2).expect("a window");
        let bind = SendWr::bind_mw(1, &window, BindInfo::new(&mr, .., Access::REMOTE_READ)).signaled();
        right.post_send(&[bind]).expect("room");
        succeed(&pair, &b.cq);
        right.post_recv(&[RecvWr::new(2, [])]).expect("a receive");
        left.post_send(&[SendWr::send_with_inv(3, [], window.rkey()).signaled()]).expect("room");
        succeed(&pair, &a.cq);
        let received = succeed(&pair, &b.cq);
        assert_eq!(received.invalidated_rkey, Some(window.rkey()));
        assert!(received.flags.contains(WcFlags::WITH_INV));
        let bind = SendWr::bind_mw(4, &window, BindInfo::new(&mr, .., Access::REMOTE_READ)).signaled();
        right.post_send(&[bind]).expect("room");
        assert_eq!(succeed(&pair, &b.cq).wr_id, 4, "it was closed, so it may be bound");
    }
}

#[test]
fn a_binding_that_must_not_be_fails_and_leaves_the_key() {
    for pair in both_kinds() {
        let (_, b) = &pair;
        let (left, right) = fresh(&pair);
        let closed = b.pd.alloc_mr(64, ALL).expect("a region without MW_BIND");
        let open = b.pd.alloc_mr(64, BINDABLE).expect("a region");
        let window = b.pd.alloc_mw(MwType::Type1).expect("a window");
        let former = window.rkey();
        window.bind(&right, 1, BindInfo::new(&closed, .., Access::REMOTE_READ)).expect("room");
        assert_eq!(next(&pair, &b.cq).status, WcStatus::MwBindErr);
        assert_eq!(right.state(), QpState::Err);
        window.set_rkey(former);
        drop((left, right));
        let (left, right) = fresh(&pair);
        window.bind(&right, 2, BindInfo::new(&open, .., Access::REMOTE_WRITE)).expect("room");
        assert_eq!(succeed(&pair, &b.cq).wr_id, 2, "under the next key");
        assert!(writes(&pair, &left, b"x", window.remote()));
        let key = window.rkey();
        right.modify(&uroce::QpAttr::to(QpState::Reset)).expect("reset");
        window
            .bind(&right, 3, BindInfo::new(&open, .., Access::REMOTE_WRITE))
            .expect_err("nothing is posted in RESET");
        assert_eq!(window.rkey(), key);
    }
}

#[test]
fn a_region_with_windows_is_busy_and_dropping_it_closes_them() {
    for pair in both_kinds() {
        let (_, b) = &pair;
        let (left, right) = fresh(&pair);
        let mut mr = b.pd.alloc_mr(64, BINDABLE).expect("a region");
        let window = b.pd.alloc_mw(MwType::Type1).expect("a window");
        window.bind(&right, 1, BindInfo::new(&mr, .., Access::REMOTE_WRITE)).expect("room");
        succeed(&pair, &b.cq);
        assert_eq!(mr.try_destroy().expect_err("a window is bound").errno(), libc::EBUSY);
        assert_eq!(mr.reregister(MrChange::new().access(ALL)).expect_err("busy").errno(), libc::EBUSY);
        assert!(writes(&pair, &left, b"x", window.remote()), "it is as it was");
        drop(mr);
        assert!(!writes(&pair, &left, b"x", window.remote()));
        let free = b.pd.alloc_mr(64, BINDABLE).expect("a region");
        free.try_destroy().expect("no window");
        free.try_destroy().expect("gone already");
    }
}

#[test]
fn a_window_that_is_dropped_is_closed() {
    for pair in both_kinds() {
        let (_, b) = &pair;
        let (left, right) = fresh(&pair);
        let mr = b.pd.alloc_mr(64, BINDABLE).expect("a region");
        let window = b.pd.alloc_mw(MwType::Type2).expect("a window");
        right
            .post_send(
                &[SendWr::bind_mw(1, &window, BindInfo::new(&mr, .., Access::REMOTE_WRITE)).signaled()],
            )
            .expect("room");
        succeed(&pair, &b.cq);
        let remote = window.remote();
        drop(window);
        assert!(!writes(&pair, &left, b"x", remote));
        mr.try_destroy().expect("nothing is bound any more");
    }
}

#[test]
fn a_fast_region_is_opened_and_closed_by_work_requests() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let (left, right) = fresh(&pair);
        let fast = b.pd.alloc_fast_mr(4096).expect("a region");
        for (round, part) in [(0, 0..4096), (1, 1024..2048), (2, 100..228)] {
            let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
            right.post_send(&[SendWr::reg_mr(1, &fast, part.clone(), access).signaled()]).expect("room");
            assert_eq!(succeed(&pair, &b.cq).opcode, WcOpcode::RegMr);
            assert_eq!(fast.remote().len, part.len() as u64);
            let text = [b'0' + round; 8];
            assert!(writes(&pair, &left, &text, fast.remote()));
            assert_eq!(fast.to_vec(part.start..part.start + 8).expect("written"), text);
            right.post_recv(&[RecvWr::new(2, fast.sge(8..16))]).expect("a receive");
            left.post_send(&[SendWr::send_inline(3, b"received").signaled()]).expect("room");
            succeed(&pair, &b.cq);
            succeed(&pair, &a.cq);
            assert_eq!(fast.to_vec(part.start + 8..part.start + 16).expect("received"), b"received");
            right.post_send(&[SendWr::local_inv(4, fast.lkey()).signaled()]).expect("room");
            succeed(&pair, &b.cq);
        }
        assert!(!writes(&pair, &left, b"x", fast.remote()), "it is closed");
    }
}

#[test]
fn a_fast_region_that_is_open_cannot_be_opened_again() {
    for pair in both_kinds() {
        let (_, b) = &pair;
        let (left, right) = fresh(&pair);
        let fast = b.pd.alloc_fast_mr(64).expect("a region");
        let zero_based = Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::ZERO_BASED;
        right.post_send(&[SendWr::reg_mr(1, &fast, 16.., zero_based).signaled()]).expect("room");
        succeed(&pair, &b.cq);
        let remote = fast.remote();
        assert_eq!((remote.addr, remote.len), (0, 48));
        assert!(writes(&pair, &left, b"abc", remote));
        assert_eq!(fast.to_vec(16..19).expect("written"), b"abc");
        right.post_send(&[SendWr::reg_mr(2, &fast, .., ALL).signaled()]).expect("room");
        assert_ne!(next(&pair, &b.cq).status, WcStatus::Success);
        fast.set_rkey(remote.rkey);
        assert_eq!(fast.rkey(), remote.rkey);
    }
}

#[test]
fn rights_memory_and_domain_change_under_the_same_key() {
    for pair in both_kinds() {
        let (_, b) = &pair;
        let (left, _right) = fresh(&pair);
        let mut mr = b.pd.alloc_mr(64, ALL).expect("a region");
        let key = mr.rkey();
        assert!(writes(&pair, &left, b"first", mr.remote()));
        mr.reregister(MrChange::new().alloc(128).expect("memory").access(ALL)).expect("other memory");
        assert_eq!((mr.rkey(), mr.len(), mr.to_vec(..5).expect("fresh")), (key, 128, vec![0; 5]));
        assert!(writes(&pair, &left, b"second", mr.remote().at(100)));
        assert_eq!(mr.to_vec(100..106).expect("written"), b"second");
        mr.reregister(MrChange::new().access(Access::LOCAL_WRITE)).expect("no right for peers");
        assert!(!writes(&pair, &left, b"x", mr.remote()));
        let (left, _right) = fresh(&pair);
        let other = b.ctx.alloc_pd().expect("a domain");
        mr.reregister(MrChange::new().access(ALL).pd(&other)).expect("another domain");
        drop(other);
        assert!(!writes(&pair, &left, b"x", mr.remote()), "the queue pair is of the former domain");
        let (left, _right) = fresh(&pair);
        mr.reregister(MrChange::new().pd(&b.pd)).expect("back again");
        assert!(writes(&pair, &left, b"third", mr.remote()));
        let refused =
            mr.reregister(MrChange::new().access(Access::REMOTE_WRITE)).expect_err("needs LOCAL_WRITE");
        assert_eq!(refused.errno(), libc::EINVAL);
        assert!(writes(&pair, &left, b"fourth", mr.remote()), "it is as it was");
        let foreign = pair.0.ctx.alloc_pd().expect("a domain");
        assert!(matches!(mr.reregister(MrChange::new().pd(&foreign)), Err(Error::OtherDevice)));
    }
}

#[test]
fn raw_memory_that_was_lent_for_reading_is_never_written() {
    for (_, b) in both_kinds() {
        let memory = *b"constant";
        // SAFETY: the array outlives the region and is not written by anybody: the region has no right to write.
        let mr = unsafe { b.pd.reg_mr_raw(memory.as_ptr().cast_mut(), memory.len(), Access::REMOTE_READ) };
        let mut mr = mr.expect("a region");
        assert!(matches!(mr.write_at(0, b"x"), Err(Error::ReadOnly)));
        assert!(matches!(mr.reregister(MrChange::new().access(ALL)), Err(Error::ReadOnly)));
        let mut writable = [0_u8; 8];
        // SAFETY: the array outlives the region and is not touched while it is registered.
        let change = unsafe { MrChange::new().raw(writable.as_mut_ptr(), 8, 0x1000) }.expect("not null");
        mr.reregister(change.access(ALL)).expect("other memory, which is writable");
        assert_eq!(mr.addr(), 0x1000);
        mr.write_at(0, b"y").expect("writable");
        drop(mr);
        assert_eq!((writable[0], &memory), (b'y', b"constant"));
    }
}

#[test]
fn zero_based_regions_start_at_0() {
    for pair in both_kinds() {
        let (_, b) = &pair;
        let (left, _right) = fresh(&pair);
        let mr = b.pd.alloc_mr(64, ALL | Access::ZERO_BASED).expect("a region");
        assert_eq!((mr.addr(), mr.sge(8..).addr), (0, 8));
        assert!(writes(&pair, &left, b"offset", mr.remote().at(16)));
        assert_eq!(mr.to_vec(16..22).expect("written"), b"offset");
    }
}

#[test]
fn more_memory_than_there_is_is_refused() {
    let [(a, _b), _] = both_kinds();
    let refused = a.pd.alloc_mr(usize::MAX, ALL).expect_err("more than the address space");
    assert_eq!(refused.errno(), libc::ENOMEM);
    assert!(a.pd.alloc_mr(isize::MAX as usize - 4096, ALL).is_err());
    assert!(a.pd.alloc_fast_mr(usize::MAX).is_err());
}

#[test]
fn an_atomic_write_stores_a_word() {
    for pair in both_kinds() {
        let (a, b) = &pair;
        let (left, _right) = fresh(&pair);
        let (source, target) = (region(a, &[0; 8]), region(b, &[0; 24]));
        source.store_u64(0, 1).expect("a word");
        let by_memory = SendWr::atomic_write(1, source.sge(..), target.remote()).signaled();
        let by_number = SendWr::atomic_write(2, 2, target.remote().at(8)).signaled();
        let by_bytes = SendWr::atomic_write(3, *b"8 bytes!", target.remote().at(16)).signaled();
        left.post_send(&[by_memory, by_number, by_bytes]).expect("room");
        let done = [succeed(&pair, &a.cq), succeed(&pair, &a.cq), succeed(&pair, &a.cq)];
        assert_eq!(done.map(|wc| wc.opcode), [WcOpcode::AtomicWrite; 3]);
        assert_eq!([target.load_u64(0), target.load_u64(8)].map(|word| word.expect("a word")), [1, 2]);
        assert_eq!(target.to_vec(16..).expect("written"), b"8 bytes!");
        assert!(
            left.post_send(&[SendWr::atomic_write(4, source.sge(..4), target.remote())]).is_err(),
            "8 bytes"
        );
        left.post_send(&[SendWr::atomic_write(5, 3, target.remote().at(4))]).expect("room");
        assert_eq!(next(&pair, &a.cq).status, WcStatus::RemInvReqErr, "not aligned");
    }
}

/// Writes, flushes every way that is allowed, and then the one that is not.
fn flush(pair: &(Connected, Connected)) {
    let (a, b) = pair;
    let (left, _right) = fresh(pair);
    let target = b.pd.alloc_mr(4096, ALL | Access::FLUSH_GLOBAL).expect("a region");
    let write = SendWr::rdma_write_inline(1, b"to be seen", target.remote());
    let range = SendWr::flush(2, target.remote(), 10, FlushPlacement::Global, FlushScope::Range).signaled();
    let whole = SendWr::flush(3, target.remote(), 0, FlushPlacement::Global, FlushScope::Region).signaled();
    left.post_send(&[write, range, whole]).expect("room");
    assert_eq!([succeed(pair, &a.cq), succeed(pair, &a.cq)].map(|wc| wc.opcode), [WcOpcode::Flush; 2]);
    assert_eq!(target.to_vec(..10).expect("written"), b"to be seen");
    let persistent = SendWr::flush(4, target.remote(), 8, FlushPlacement::Persistent, FlushScope::Range);
    left.post_send(&[persistent]).expect("room");
    assert_ne!(next(pair, &a.cq).status, WcStatus::Success, "no region allows it");
}

#[test]
fn a_flush_follows_what_was_written() {
    both_kinds().iter().for_each(flush);
}

/// Two devices that are opened with what `refine` says.
fn on_cable(drive: Drive, refine: [fn(DeviceConfig) -> DeviceConfig; 2]) -> (Connected, Connected) {
    let (left, right) = uroce_nic::cable::pair_with_fd(256, 4096 + 128).expect("a cable");
    let open = |nic: uroce_nic::Cable, number: u8, refine: fn(DeviceConfig) -> DeviceConfig| {
        let address = |number: u8| std::net::IpAddr::from([192, 0, 2, number]);
        let mac = |number| MacAddr([2, 0, 0, 0, 0, number]);
        let other = 3 - number;
        let neighbours = vec![(address(other), mac(other))];
        let link = Link { mac: mac(number), addresses: vec![address(number)], mtu: 4200, neighbours };
        Context::open(refine(DeviceConfig::with_nic(Box::new(nic), link).drive(drive))).expect("a device")
    };
    let (left, right) = (open(left, 1, refine[0]), open(right, 2, refine[1]));
    uroce::testing::connect(&left, &right).expect("connected")
}

#[test]
fn a_flush_in_the_form_of_rxe_is_understood_by_who_was_told() {
    let rxe: fn(DeviceConfig) -> DeviceConfig = |config| config.rxe_flush_icrc(true);
    for drive in [LinkModel::default().drive, Drive::Inline] {
        flush(&on_cable(drive, [rxe, rxe]));
        flush(&on_cable(drive, [|config| config, rxe]));
    }
}

#[test]
fn a_device_for_the_privileged_takes_controlled_qkeys() {
    let privileged: fn(DeviceConfig) -> DeviceConfig = |config| config.controlled_qkeys(true);
    let (a, _b) = on_cable(Drive::Inline, [privileged, |config| config]);
    let qp = a.pd.create_qp(QpType::Ud, &a.cq, &a.cq).build().expect("a queue pair");
    assert_eq!(qp.activate(0x8001_0000).expect("allowed here").state(), QpState::Rts);
}
