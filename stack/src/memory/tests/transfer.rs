//! Bytes in and out, and the rights that each access takes.

use std::vec::Vec;

use super::*;
use crate::memory::{AtomicOp, Crc};
use crate::work::{FlushScope, Sge};

#[test]
fn each_right_is_needed_for_its_access() {
    let rights = [
        Access::REMOTE_READ,
        Access::REMOTE_WRITE,
        Access::REMOTE_ATOMIC,
        Access::REMOTE_WRITE,
        Access::FLUSH_GLOBAL,
    ];
    for granted in [Access::empty()].into_iter().chain(rights) {
        let mut host = Host::new();
        let (memory, at) = (host.region(granted | Access::LOCAL_WRITE), IOVA);
        let (remote, memory) = (RemoteAddr { va: at, rkey: memory }, host.memory);
        let allowed = [
            memory.read_remote(BY, remote, &mut [0], Crc::new()).is_ok(),
            memory.write_remote(BY, remote, payload(b"x")).is_ok(),
            memory.atomic(BY, remote, AtomicOp::FetchAdd { add: 1 }).is_ok(),
            memory.atomic_write(BY, remote, [0; 8]).is_ok(),
            memory.check_flush(BY, remote, 1, FlushScope::Range, Access::FLUSH_GLOBAL).is_ok(),
        ];
        assert_eq!(allowed, rights.map(|right| right == granted), "{granted:?}");
    }
}

#[test]
fn local_writing_takes_its_right_and_reading_none() {
    let mut host = Host::new();
    let sge = [Sge { addr: IOVA, length: 1, lkey: host.region(Access::empty()) }];
    assert!(host.memory.gather(PD, &sge, 0, &mut [0], Crc::new()).is_ok());
    assert_eq!(host.memory.scatter(PD, &sge, 0, payload(b"x")), REFUSED);
}

#[test]
fn c56_a_wrong_or_revoked_local_key_is_refused_when_the_bytes_move() {
    let mut host = Host::new();
    let lkey = host.region(OPEN);
    let sge = |lkey| [Sge { addr: IOVA, length: 8, lkey }];
    assert_eq!(host.memory.scatter(PD, &sge(lkey), 0, payload(b"response")), Ok(()));
    assert_eq!(host.memory.scatter(PD, &sge(lkey ^ 1), 0, payload(b"response")), REFUSED);
    assert!(host.memory.deregister(lkey).is_ok());
    assert_eq!(host.memory.scatter(PD, &sge(lkey), 0, payload(b"response")), REFUSED);
    assert!(host.memory.gather(PD, &sge(lkey), 0, &mut [0; 8], Crc::new()).is_err());
}

#[test]
fn c59_atomics_need_their_alignment_after_their_key() {
    let mut host = Host::new();
    let rkey = host.region(OPEN);
    let add = AtomicOp::FetchAdd { add: 5 };
    let at = |va, rkey| RemoteAddr { va: IOVA + va, rkey };
    let atomic = |remote, op| host.memory.atomic(BY, remote, op);
    assert_eq!(atomic(at(4, rkey), add), Err(AccessError::Misaligned));
    assert_eq!(atomic(at(4, rkey ^ 1), add), Err(AccessError::Refused));
    assert_eq!(atomic(at(8, rkey), add), Ok(0));
    assert_eq!(atomic(at(8, rkey), AtomicOp::CompareSwap { compare: 5, swap: 1 }), Ok(5));
    assert_eq!(atomic(at(8, rkey), add), Ok(1));
    assert_eq!(atomic(at(LEN - 4, rkey), add), Err(AccessError::Refused), "not all inside");
}

#[test]
fn an_atomic_write_stores_its_bytes_in_order() {
    let mut host = Host::new();
    let rkey = host.region(OPEN);
    let write = |va, rkey| host.memory.atomic_write(BY, RemoteAddr { va, rkey }, *b"at once!");
    assert_eq!(write(IOVA + 8, rkey), Ok(()));
    assert_eq!(write(IOVA + 4, rkey), Err(AccessError::Misaligned));
    assert_eq!(write(IOVA + 4, rkey ^ 1), REFUSED);
    assert_eq!(write(IOVA + LEN, rkey), REFUSED);
    let mut out = [0; 24];
    assert!(host.memory.read_remote(BY, RemoteAddr { va: IOVA, rkey }, &mut out, Crc::new()).is_ok());
    assert_eq!(&out, b"\0\0\0\0\0\0\0\0at once!\0\0\0\0\0\0\0\0");
}

#[test]
fn an_aligned_address_over_memory_that_is_not_is_misaligned() {
    let mut host = Host::new();
    let mr = host.fast_region();
    let reg = RegisterMr { offset: 1, length: 64, ..register(mr) };
    assert_eq!(host.memory.fast_register(BY, &reg), Ok(()));
    let remote = RemoteAddr { va: IOVA, rkey: reg.key };
    assert_eq!(host.memory.atomic_write(BY, remote, [1; 8]), Err(AccessError::Misaligned));
}

#[test]
fn a_flush_of_a_whole_region_is_checked_by_its_key_alone() {
    let mut host = Host::new();
    let rkey = host.region(Access::FLUSH_GLOBAL);
    let flush = |by, va, len, rkey, scope| {
        host.memory.check_flush(by, RemoteAddr { va, rkey }, len, scope, Access::FLUSH_GLOBAL)
    };
    assert_eq!(flush(BY, IOVA, LEN, rkey, FlushScope::Range), Ok(()));
    assert_eq!(flush(BY, IOVA, LEN + 1, rkey, FlushScope::Range), REFUSED);
    assert_eq!(flush(BY, 0, u64::MAX, rkey, FlushScope::Region), Ok(()));
    assert_eq!(flush(BY, IOVA, LEN, rkey ^ 1, FlushScope::Region), REFUSED);
    assert_eq!(flush(STRANGER, IOVA, LEN, rkey, FlushScope::Region), REFUSED);
}

#[test]
fn gather_and_scatter_cross_every_boundary() {
    let mut host = Host::new();
    let lkey = host.region(OPEN);
    let sge = |offset, length| Sge { addr: IOVA + offset, length, lkey };
    let sges = [sge(40, 3), sge(0, 0), sge(8, 1), sge(20, 6)];
    let bytes: Vec<u8> = (1..=10).collect();
    for offset in 0..=10usize {
        for len in 0..=10 - offset {
            let part = &bytes[offset..offset + len];
            host.memory.scatter(PD, &sges, offset as u64, payload(part)).unwrap();
            let mut out = std::vec![0; len];
            let crc = host.memory.gather(PD, &sges, offset as u64, &mut out, Crc::new()).unwrap();
            assert_eq!(out, part, "{offset} {len}");
            assert_eq!(crc.finish(), Crc::new().update(part).finish());
        }
    }
}
