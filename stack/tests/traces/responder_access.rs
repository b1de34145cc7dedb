//! What the peer may touch, and what a receive may be (protocol sections 4.14 and 5.2).

use crate::common::*;
use Position::Only;

const MTU: usize = 1024;
const ACCESS: NakCode = NakCode::RemoteAccessError;

#[test]
fn s05_a_key_of_another_protection_domain_opens_nothing() {
    let mut host = Host::new();
    let other = host.engine.alloc_pd().expect("room for a protection domain");
    let keys = host
        .engine
        .register_mr(other, Region::alloc(64), VA, Access::LOCAL_WRITE | Access::REMOTE)
        .expect("room for a region");
    host.recv(write(Only, 100, RemoteAddr { va: VA, rkey: keys.rkey }, 1, b"a"));
    assert_eq!(host.sent(), [nak(100, ACCESS, 0)]);
}

#[test]
fn p4_14_each_right_of_the_region_is_needed() {
    type Request = fn(RemoteAddr) -> Pkt;
    let requests: [(Access, Request); 3] = [
        (Access::REMOTE_WRITE, |remote| write(Only, 100, remote, 1, b"a")),
        (Access::REMOTE_READ, |remote| read(100, remote, 1)),
        (Access::REMOTE_ATOMIC, |remote| fetch_add(100, remote, 1)),
    ];
    for (right, request) in requests {
        for (access, granted) in [
            (Access::LOCAL_WRITE | Access::REMOTE, true),
            ((Access::LOCAL_WRITE | Access::REMOTE) - right, false),
        ] {
            let mut host = Host::new();
            let keys =
                host.engine.register_mr(host.pd, Region::alloc(64), 0, access).expect("room for a region");
            host.recv(request(RemoteAddr { va: 0, rkey: keys.rkey }).ack_req());
            let refused = host.sent() == [nak(100, ACCESS, 0)];
            assert_eq!((refused, host.state() == QpState::Rts), (!granted, granted), "{right:?}");
        }
    }
}

#[test]
fn p5_2_9b_a_receive_that_may_not_be_written_is_an_operational_error() {
    type Receive = fn(&mut Host) -> Sge;
    let cases: [(&str, Receive); 3] = [
        ("unknown key", |host| Sge { lkey: !host.keys.lkey, ..host.sge(0, 64) }),
        ("past the end", |host| host.sge(AREA as u64 - 32, 64)),
        ("not for writing", |host| {
            let region = Region::alloc(64);
            let keys =
                host.engine.register_mr(host.pd, region, 0, Access::REMOTE_READ).expect("room for a region");
            Sge { addr: 0, length: 64, lkey: keys.lkey }
        }),
    ];
    for (name, sge) in cases {
        let mut host = Host::new();
        let sge = sge(&mut host);
        host.try_post_recv(1, &[sge]).expect("keys are looked at when data comes");
        host.post_recv(2, 0, 64);
        host.recv(send(Only, 100, &[1; 64]).ack_req());
        assert_eq!(host.sent(), [nak(100, NakCode::RemoteOperationalError, 0)], "{name}");
        assert_eq!(host.received(), [(1, WcStatus::LocProtErr), (2, WcStatus::WrFlushErr)], "{name}");
        assert_eq!(host.state(), QpState::Err, "{name}");
    }
}

#[test]
fn p4_3_a_refusal_carries_the_messages_completed_before_it() {
    let mut host = Host::new();
    host.recv(write(Only, 100, host.at(0), 1, b"a").ack_req());
    host.recv(write(Only, 101, host.at(0), 1, b"b"));
    host.recv(write(Only, 102, FAR, 1, b"c").ack_req());
    assert_eq!(host.sent(), [ack(100, 1), nak(102, ACCESS, 2)]);
    assert_eq!(host.bytes(0, 1), b"b");
}

#[test]
fn p5_2_the_receive_is_missed_before_the_length() {
    let mut host = Host::new();
    host.recv(send(Only, 100, &[0; MTU + 1]));
    assert_eq!((host.sent(), host.state()), (vec![rnr(100, 14, 0)], QpState::Rts));
}

#[test]
fn p4_15_rights_of_the_queue_pair_change_while_it_is_ready() {
    let mut host = Host::new();
    host.recv(write(Only, 100, host.at(0), 1, b"a").ack_req());
    assert_eq!(host.sent(), [ack(100, 1)]);
    host.modify(&QpAttr { access: Some(Access::REMOTE_READ), ..QpAttr::default() });
    host.recv(read(101, host.at(0), 1));
    assert_eq!(host.sent(), [read_response(Only, 101, 2, b"a")]);
    host.recv(write(Only, 102, host.at(0), 1, b"b"));
    assert_eq!((host.sent(), host.bytes(0, 1)), (vec![nak(102, NakCode::InvalidRequest, 2)], b"a".to_vec()));
}
