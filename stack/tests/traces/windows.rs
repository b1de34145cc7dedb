//! Memory windows: bound by work requests, reached by peers (protocol section 4.14).

use crate::common::*;
use Position::Only;
use uroce_stack::{BindMw, MwType};

const BOTH: [MwType; 2] = [MwType::Type1, MwType::Type2];
const REFUSED: NakCode = NakCode::RemoteAccessError;

type Request = fn(RemoteAddr) -> Pkt;

/// The peer writes `data` to `remote` with PSN 100, and the window shows it.
fn assert_written(host: &mut Host, remote: RemoteAddr, data: &[u8; 8]) {
    host.recv(write(Only, 100, remote, 8, data).ack_req());
    assert_eq!(host.sent(), [ack(100, 1)]);
}

/// The first packet of the peer asks for what it may not have.
fn assert_refused(mut host: Host, request: Pkt) {
    host.recv(request.clone());
    assert_eq!(host.sent(), [nak(100, REFUSED, 0)], "{request:?}");
    assert_eq!((host.state(), host.events()), (QpState::Err, vec![AsyncEvent::QpAccessErr(host.qpn)]));
}

#[test]
fn a_bind_takes_no_packet_and_reports_itself() {
    for kind in BOTH {
        let mut host = Host::open();
        let mw = host.window(kind);
        host.post_bare(7, SendOp::BindMw(host.bind(mw, 0, 8)));
        let sent = host.sent();
        let [completion] = host.send_completions()[..] else { panic!("one completion") };
        assert_eq!((sent, completion.wr_id, completion.status), (vec![], 7, WcStatus::Success));
        assert_eq!((completion.opcode, completion.byte_len), (WcOpcode::BindMw, 0));
        host.post_send(8, 4);
        assert_eq!(host.sent()[0].psn, 500, "no PSN was used up");
    }
}

#[test]
fn a_peer_reaches_the_part_that_a_window_shows() {
    for kind in BOTH {
        let mut host = Host::open();
        let window = host.bound(kind, 64, 8);
        assert_written(&mut host, window, b"a window");
        host.recv(read(101, window, 8).ack_req());
        assert_eq!(host.sent(), [read_response(Only, 101, 2, b"a window")]);
        host.recv(fetch_add(102, window, 1).ack_req());
        let former = u64::from_ne_bytes(*b"a window");
        assert_eq!(host.sent(), [atomic_ack(102, 3, former)]);
        assert_eq!((host.word(64), host.bytes(72, 8)), (former + 1, vec![0; 8]));
    }
}

#[test]
fn what_lies_around_a_window_is_refused_though_the_region_has_it() {
    for kind in BOTH {
        for (offset, length) in [(63, 1), (64, 9), (71, 2), (72, 1), (0, 1)] {
            let mut host = Host::open();
            let window = host.bound(kind, 64, 8);
            assert_refused(host, read(100, RemoteAddr { va: VA + offset, ..window }, length));
        }
    }
}

#[test]
fn p4_14_each_right_of_the_window_is_needed() {
    let requests: [(Access, Request); 5] = [
        (Access::REMOTE_WRITE, |at| write(Only, 100, at, 8, &[1; 8])),
        (Access::REMOTE_READ, |at| read(100, at, 8)),
        (Access::REMOTE_ATOMIC, |at| fetch_add(100, at, 1)),
        (Access::REMOTE_WRITE, |at| atomic_write(100, at, &[1; 8])),
        (Access::FLUSH_GLOBAL, |at| flush(100, at, 8)),
    ];
    for (right, request) in requests {
        for is_granted in [true, false] {
            let mut host = Host::open();
            let mw = host.window(MwType::Type2);
            let mut bind = host.bind(mw, 0, 8);
            bind.access.set(right, is_granted);
            host.carry_out(SendOp::BindMw(bind));
            let request = request(RemoteAddr { va: VA, rkey: bind.rkey });
            if is_granted {
                host.recv(request);
                assert_eq!(host.state(), QpState::Rts);
            } else {
                assert_refused(host, request);
            }
        }
    }
}

#[test]
fn a_zero_based_window_counts_from_its_first_byte() {
    let mut host = Host::open();
    let mw = host.window(MwType::Type2);
    let bind = host.bind(mw, 64, 8);
    host.carry_out(SendOp::BindMw(BindMw { access: bind.access | Access::ZERO_BASED, ..bind }));
    assert_written(&mut host, RemoteAddr { va: 0, rkey: bind.rkey }, b"from 0..");
    assert_eq!(host.bytes(64, 8), b"from 0..");
}

/// What a peer reaches through the queue pair beside the one that bound the window.
#[test]
fn s05_a_type_2_window_opens_to_the_queue_pair_that_bound_it() {
    for kind in BOTH {
        let mut host = Host::open();
        let window = host.bound(kind, 0, 8);
        let neighbour = host.neighbours(1).remove(0);
        host.recv(write(Only, 100, window, 8, b"neighbor").ack_req().at(&neighbour));
        let (answer, state) = match kind {
            MwType::Type1 => (ack(100, 1), QpState::Rts),
            MwType::Type2 => (nak(100, REFUSED, 0), QpState::Err),
        };
        assert_eq!(host.sent(), [answer.to_neighbour(1)], "{kind:?}");
        assert_eq!((host.state_of(neighbour.qpn), host.state()), (state, QpState::Rts), "{kind:?}");
        assert_eq!(host.word(0) != 0, kind == MwType::Type1);
        assert_written(&mut host, window, b"its own.");
    }
}

#[test]
fn s05_a_window_is_closed_to_other_protection_domains() {
    for kind in BOTH {
        let mut host = Host::open();
        let window = host.bound(kind, 0, 8);
        let pd = host.engine.alloc_pd().expect("room");
        let stranger = host.neighbour(1, pd);
        host.recv(read(100, window, 8).ack_req().at(&stranger));
        assert_eq!(host.sent(), [nak(100, REFUSED, 0).to_neighbour(1)], "{kind:?}");
    }
}

#[test]
fn a_window_that_is_not_bound_opens_nothing() {
    for kind in BOTH {
        let mut host = Host::open();
        let mw = host.window(kind);
        assert_refused(host, read(100, RemoteAddr { va: VA, rkey: mw }, 1));
    }
}

#[test]
fn binding_type_1_again_replaces_what_it_shows() {
    let rebound = || {
        let mut host = Host::open();
        let first = host.bound(MwType::Type1, 0, 8);
        let again = host.bind(first.rkey, 64, 8);
        host.carry_out(SendOp::BindMw(again));
        (host, first, RemoteAddr { va: again.addr, rkey: again.rkey })
    };
    let (mut host, _, second) = rebound();
    assert_written(&mut host, second, b"again...");
    assert_eq!(host.bytes(64, 8), b"again...");
    let (host, first, _) = rebound();
    assert_refused(host, read(100, first, 1));
    let (host, first, second) = rebound();
    assert_refused(host, read(100, RemoteAddr { va: first.va, ..second }, 1));
}

#[test]
fn binding_type_1_to_nothing_closes_it() {
    let mut host = Host::open();
    let window = host.bound(MwType::Type1, 0, 8);
    host.carry_out(SendOp::BindMw(BindMw { rkey: window.rkey, ..host.bind(window.rkey, 0, 0) }));
    assert_refused(host, read(100, window, 1));
}

#[test]
fn p4_14_a_region_stays_while_a_window_is_bound_to_it() {
    for kind in BOTH {
        let mut host = Host::open();
        let window = host.bound(kind, 0, 8);
        assert!(host.engine.deregister_mr(host.keys.lkey).is_err());
        assert_written(&mut host, window, b"as ever.");
        host.engine.dealloc_mw(window.rkey).expect("the window exists");
        assert!(host.engine.deregister_mr(host.keys.lkey).is_ok());
        host.recv(read(101, window, 8));
        assert_eq!(host.sent(), [nak(101, REFUSED, 1)]);
    }
}

#[test]
fn a_revoked_region_takes_its_windows_along() {
    for kind in BOTH {
        let mut host = Host::open();
        let window = host.bound(kind, 0, 8);
        host.engine.revoke_mr(host.keys.lkey).expect("the region exists");
        assert_refused(host, read(100, window, 8));
    }
}

#[test]
fn a_queue_pair_that_ends_frees_its_type_2_windows() {
    let mut host = Host::open();
    let window = host.bound(MwType::Type2, 0, 8);
    let mut heir = host.neighbours(1).remove(0);
    host.engine.destroy_qp(host.qpn).expect("it exists");
    let bind = host.bind(window.rkey, 0, 8);
    post_to(&mut heir, 1, SendOp::BindMw(bind), &[]);
    assert_eq!((host.sent(), host.done()), (vec![], ok([1])), "it can be bound anew at once");
    host.recv(read(100, RemoteAddr { rkey: bind.rkey, ..window }, 1).at(&heir));
    assert_eq!(host.sent(), [read_response(Only, 100, 1, &[0]).to_neighbour(1)]);
}

#[test]
fn c56_a_window_is_no_local_key() {
    let mut host = Host::open();
    let window = host.bound(MwType::Type1, 0, 8);
    let sge = Sge { addr: window.va, length: 8, lkey: window.rkey };
    host.post(1, SendOp::Send { immediate: None }, SendFlags::empty(), &[sge]);
    assert_eq!((host.sent(), host.done()), (vec![], vec![(1, WcStatus::LocProtErr)]));
}
