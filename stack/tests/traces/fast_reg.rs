//! Regions for fast registration: opened and closed in the order of the send queue (protocol section 4.14).

use crate::common::*;
use Position::Only;
use uroce_stack::{BindMw, MwType, RegisterMr};

const LEN: u64 = 4096;
const REFUSED: NakCode = NakCode::RemoteAccessError;

/// Makes a registration wrong.
type Spoil = fn(&Host, RegisterMr) -> RegisterMr;

#[test]
fn a_registration_reports_itself_and_takes_no_packet() {
    let mut host = Host::open();
    let (_, mr) = host.allocated(4096);
    host.post_bare(7, SendOp::RegisterMr(register(mr, LEN)));
    let sent = host.sent();
    let [completion] = host.send_completions()[..] else { panic!("one completion") };
    assert_eq!((sent, completion.wr_id, completion.status), (vec![], 7, WcStatus::Success));
    assert_eq!((completion.opcode, completion.byte_len), (WcOpcode::RegMr, 0));
}

#[test]
fn peers_reach_what_is_registered() {
    let mut host = Host::open();
    let (region, at) = host.registered(4096);
    assert!(region.write_at(8, b"register"));
    host.recv(write(Only, 100, at, 8, b"written.").ack_req());
    host.recv(read(101, RemoteAddr { va: VA + 8, ..at }, 8));
    assert_eq!(host.sent(), [ack(100, 1), read_response(Only, 101, 2, b"register")]);
    let mut bytes = [0; 8];
    assert!(region.read_at(0, &mut bytes));
    assert_eq!(&bytes, b"written.");
}

/// Register, use and tell the peer, all in one doorbell: each sees what was done before it.
#[test]
fn what_follows_a_registration_may_use_it() {
    let mut host = Host::open();
    let (region, mr) = host.allocated(4096);
    assert!(region.write_at(0, b"fast"));
    let register = register(mr, LEN);
    host.post_bare(1, SendOp::RegisterMr(register));
    let sge = Sge { addr: VA, length: 4, lkey: register.key };
    host.post(2, SendOp::Send { immediate: None }, SendFlags::empty(), &[sge]);
    assert_eq!(host.sent(), [send(Only, 500, b"fast").ack_req()]);
    host.recv(ack(500, 1));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1, 2])));
}

#[test]
fn before_it_is_registered_a_region_opens_nothing() {
    let mut host = Host::open();
    let (_, mr) = host.allocated(4096);
    host.recv(read(100, RemoteAddr { va: 0, rkey: mr }, 1));
    assert_eq!(host.sent(), [nak(100, REFUSED, 0)]);
    let mut host = Host::open();
    let (_, mr) = host.allocated(4096);
    let sge = Sge { addr: 0, length: 1, lkey: mr };
    host.post(1, SendOp::Send { immediate: None }, SendFlags::empty(), &[sge]);
    assert_eq!((host.sent(), host.done()), (vec![], vec![(1, WcStatus::LocProtErr)]));
}

#[test]
fn a_part_of_the_memory_is_registered_at_any_address() {
    let mut host = Host::open();
    let (region, mr) = host.allocated(4096);
    assert!(region.write_at(1000, b"part"));
    let part = RegisterMr { offset: 1000, length: 4, iova: 0xABC, ..register(mr, LEN) };
    host.carry_out(SendOp::RegisterMr(part));
    host.recv(read(100, RemoteAddr { va: 0xABC, rkey: part.key }, 4));
    assert_eq!(host.sent(), [read_response(Only, 100, 1, b"part")]);
    host.recv(read(101, RemoteAddr { va: 0xABC, rkey: part.key }, 5));
    assert_eq!(host.sent(), [nak(101, REFUSED, 1)]);
}

#[test]
fn a_region_is_registered_anew_after_its_invalidation_and_the_former_key_is_dead() {
    for key_is_new in [true, false] {
        let mut host = Host::open();
        let (_, first) = host.registered(4096);
        host.post_bare(1, SendOp::LocalInvalidate { rkey: first.rkey });
        let again = RegisterMr { key: first.rkey ^ 1, ..register(first.rkey, LEN) };
        host.post_bare(2, SendOp::RegisterMr(again));
        assert_eq!((host.sent(), host.done()), (vec![], ok([1, 2])));
        let rkey = if key_is_new { again.key } else { first.rkey };
        host.recv(read(100, RemoteAddr { rkey, ..first }, 1));
        let answer = if key_is_new { read_response(Only, 100, 1, &[0]) } else { nak(100, REFUSED, 0) };
        assert_eq!(host.sent(), [answer]);
    }
}

#[test]
fn c49_a_wrong_registration_fails_and_opens_nothing() {
    let cases: [(&str, Spoil); 9] = [
        ("longer than the memory", |_, reg| RegisterMr { length: LEN + 1, ..reg }),
        ("past its end", |_, reg| RegisterMr { offset: 1, ..reg }),
        ("wraps", |_, reg| RegisterMr { offset: u64::MAX, length: 2, ..reg }),
        ("C49 passes the address space", |_, reg| RegisterMr { iova: u64::MAX - LEN + 2, ..reg }),
        ("another number", |_, reg| RegisterMr { key: !reg.key, ..reg }),
        ("unknown region", |_, reg| RegisterMr { mr: !reg.mr, key: !reg.mr, ..reg }),
        ("former tag", |_, reg| RegisterMr { mr: reg.mr ^ 1, ..reg }),
        ("an ordinary region", |host, reg| RegisterMr { mr: host.keys.lkey, key: host.keys.lkey, ..reg }),
        ("remote write alone", |_, reg| RegisterMr { access: Access::REMOTE_WRITE, ..reg }),
    ];
    for (name, spoil) in cases {
        let mut host = Host::open();
        let (_, mr) = host.allocated(4096);
        let wrong = spoil(&host, register(mr, LEN));
        host.post_bare(1, SendOp::RegisterMr(wrong));
        host.post_send(2, 4);
        let end = [(1, WcStatus::LocQpOpErr), (2, WcStatus::WrFlushErr)];
        assert_eq!((host.sent(), host.done()), (vec![], end.to_vec()), "{name}");
        let mut heir = host.neighbours(1).remove(0);
        post_to(&mut heir, 3, SendOp::RegisterMr(register(mr, LEN)), &[]);
        assert_eq!((host.sent(), host.done()), (vec![], ok([3])), "{name}: the region is as it was");
    }
}

#[test]
fn what_is_registered_is_invalidated_before_it_is_registered_again() {
    let mut host = Host::open();
    let (_, at) = host.registered(4096);
    host.post_bare(1, SendOp::RegisterMr(register(at.rkey, LEN)));
    assert_eq!((host.sent(), host.done()), (vec![], vec![(1, WcStatus::LocQpOpErr)]));
}

#[test]
fn s05_a_region_of_another_domain_cannot_be_registered() {
    let mut host = Host::open();
    let (_, mr) = host.allocated(4096);
    let pd = host.engine.alloc_pd().expect("room");
    let mut stranger = host.neighbour(1, pd);
    post_to(&mut stranger, 1, SendOp::RegisterMr(register(mr, LEN)), &[]);
    assert_eq!((host.sent(), host.done()), (vec![], vec![(1, WcStatus::LocQpOpErr)]));
    host.carry_out(SendOp::RegisterMr(register(mr, LEN)));
}

#[test]
fn c52_a_region_behind_a_window_is_not_invalidated() {
    let mut host = Host::open();
    let (_, mr) = host.allocated(4096);
    let access = register(mr, LEN).access | Access::MW_BIND;
    let register = RegisterMr { access, ..register(mr, LEN) };
    host.carry_out(SendOp::RegisterMr(register));
    let mw = host.window(MwType::Type2);
    let bind = BindMw { mr: register.key, ..host.bind(mw, 0, 8) };
    host.carry_out(SendOp::BindMw(bind));
    host.post_bare(1, SendOp::LocalInvalidate { rkey: bind.rkey });
    host.post_bare(2, SendOp::LocalInvalidate { rkey: register.key });
    assert_eq!((host.sent(), host.done()), (vec![], ok([1, 2])), "the window first");

    host.carry_out(SendOp::RegisterMr(RegisterMr { mr: register.key, key: mr, ..register }));
    host.carry_out(SendOp::BindMw(BindMw { mr, ..host.bind(bind.rkey, 0, 8) }));
    host.post_bare(3, SendOp::LocalInvalidate { rkey: mr });
    assert_eq!((host.sent(), host.done()), (vec![], vec![(3, WcStatus::LocQpOpErr)]));
}

#[test]
fn deregistering_takes_any_tag_and_closes_the_region() {
    let mut host = Host::open();
    let (_, mr) = host.allocated(4096);
    let register = register(mr, LEN);
    host.carry_out(SendOp::RegisterMr(register));
    assert!(host.engine.deregister_mr(mr).is_ok(), "the application may not know of the new tag yet");
    host.recv(read(100, RemoteAddr { va: VA, rkey: register.key }, 1));
    assert_eq!(host.sent(), [nak(100, REFUSED, 0)]);
}
