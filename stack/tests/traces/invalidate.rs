//! SEND with invalidate, both sides, and keys that end while they are used (protocol sections 4.14 and 5.2; C20, C52,
//! C53).

use crate::common::*;
use Position::{First, Last, Only};
use uroce_stack::MwType;

const REFUSED: NakCode = NakCode::RemoteAccessError;

/// A host with a receive of 2000 bytes, and a key of it that peers may invalidate.
fn host_with_key(key: fn(&mut Host) -> RemoteAddr) -> (Host, RemoteAddr) {
    let mut host = Host::open();
    let at = key(&mut host);
    host.post_recv(1, 32_768, 2000);
    (host, at)
}

fn bound(host: &mut Host) -> RemoteAddr {
    host.bound(MwType::Type2, 0, 4096)
}

fn registered(host: &mut Host) -> RemoteAddr {
    host.registered(4096).1
}

const KEYS: [fn(&mut Host) -> RemoteAddr; 2] = [bound, registered];

/// The one receive that completed.
fn completion(host: &mut Host) -> Completion {
    let [completion] = host.recv_completions()[..] else { panic!("one completion") };
    completion
}

#[test]
fn send_in_order_invalidates_and_tells_the_receiver() {
    for key in KEYS {
        let (mut host, at) = host_with_key(key);
        host.recv(send_invalidate(Only, 100, at.rkey, b"over").ack_req());
        assert_eq!((host.sent(), host.bytes(32_768, 4)), (vec![ack(100, 1)], b"over".to_vec()));
        let completion = completion(&mut host);
        assert_eq!((completion.wr_id, completion.status), (1, WcStatus::Success));
        assert_eq!((completion.opcode, completion.byte_len), (WcOpcode::Recv, 4));
        assert_eq!(completion.flags, WcFlags::GRH | WcFlags::WITH_INV);
        assert_eq!((completion.invalidated_rkey, completion.immediate), (Some(at.rkey), None));
        host.recv(write(Only, 101, at, 1, b"a"));
        assert_eq!(host.sent(), [nak(101, REFUSED, 1)], "C52: access ends with it");
    }
}

#[test]
fn a_long_message_invalidates_with_its_last_packet() {
    for key in KEYS {
        let (mut host, at) = host_with_key(key);
        host.recv(send(First, 100, &[1; 1024]));
        host.recv(send_invalidate(Last, 101, at.rkey, &[2; 100]).ack_req());
        assert_eq!(host.sent(), [ack(101, 1)]);
        let completion = completion(&mut host);
        assert_eq!((completion.byte_len, completion.invalidated_rkey), (1124, Some(at.rkey)));
    }
}

#[test]
fn until_the_last_packet_the_key_is_open() {
    let (mut host, at) = host_with_key(registered);
    host.recv(send(First, 100, &[1; 1024]));
    assert_still_open(&mut host, at);
    host.recv(send_invalidate(Last, 101, at.rkey, b"over").ack_req());
    assert_eq!((host.sent(), host.received()), (vec![ack(101, 1)], ok([1])));
}

#[test]
fn duplicate_is_acknowledged_and_invalidates_nothing() {
    let (mut host, at) = host_with_key(bound);
    host.post_recv(2, 40_960, 2000);
    host.recv(send_invalidate(Only, 100, at.rkey, b"a").ack_req());
    assert_eq!((host.sent(), host.received()), (vec![ack(100, 1)], ok([1])));
    let again = host.bind(at.rkey, 0, 8);
    host.carry_out(SendOp::BindMw(again));
    for rkey in [at.rkey, again.rkey] {
        host.recv(send_invalidate(Only, 100, rkey, b"a").ack_req());
        assert_eq!((host.sent(), host.received()), (vec![ack(100, 1)], vec![]));
    }
    host.recv(read(101, RemoteAddr { rkey: again.rkey, ..at }, 1));
    assert_eq!(host.sent(), [read_response(Only, 101, 2, &[0])], "the new binding stands");
}

#[test]
fn future_is_a_gap_and_invalidates_nothing() {
    let (mut host, at) = host_with_key(bound);
    host.recv(send_invalidate(Only, 101, at.rkey, b"a").ack_req());
    assert_eq!((host.sent(), host.received()), (vec![nak(100, NakCode::SequenceError, 0)], vec![]));
    host.recv(read(100, at, 1));
    assert_eq!(host.sent(), [read_response(Only, 100, 1, &[0])]);
}

#[test]
fn without_a_receive_nothing_is_invalidated() {
    let mut host = Host::open();
    let at = bound(&mut host);
    host.recv(send_invalidate(Only, 100, at.rkey, b"a").ack_req());
    assert_eq!(host.sent(), [rnr(100, 14, 0)]);
    host.post_recv(1, 32_768, 8);
    host.recv(send_invalidate(Only, 100, at.rkey, b"a").ack_req());
    assert_eq!((host.sent(), host.received()), (vec![ack(100, 1)], ok([1])));
}

#[test]
fn a_message_that_does_not_fit_invalidates_nothing() {
    let (mut host, at) = host_with_key(registered);
    host.recv(send(First, 100, &[0; 1024]));
    host.recv(send_invalidate(Last, 101, at.rkey, &[0; 977]).ack_req());
    assert_eq!(host.sent(), [nak(101, NakCode::InvalidRequest, 0)]);
    assert_eq!(host.received(), [(1, WcStatus::LocLenErr)]);
    assert_still_open(&mut host, at);
}

/// A neighbour in the same protection domain gets in.
fn assert_still_open(host: &mut Host, at: RemoteAddr) {
    let neighbour = host.neighbours(1).remove(0);
    host.recv(read(100, at, 1).at(&neighbour));
    assert_eq!(host.sent(), [read_response(Only, 100, 1, &[0]).to_neighbour(1)]);
}

/// Makes a key that a peer may not invalidate, from the one that it may.
type WrongKey = fn(&mut Host, RemoteAddr) -> u32;

fn wrong_keys() -> Vec<(&'static str, WrongKey)> {
    vec![
        ("another tag", |_, at| at.rkey ^ 1),
        ("another number", |_, at| at.rkey ^ 1 << 8),
        ("an ordinary region", |host, _| host.keys.rkey),
        ("a type 1 window", |host, _| host.bound(MwType::Type1, 0, 8).rkey),
        ("a window that is not bound", |host, _| host.window(MwType::Type2)),
        ("a region that is not registered", |host, _| host.allocated(64).1),
        ("0", |_, _| 0),
    ]
}

/// The specification has this as a responder error of class J: the receive ends in error, and the peer is told with NAK
/// 0x63. rxe acknowledges the SEND and falls silent, so that the sender believes in a success that the receiver does
/// not see (section 9.1, 15): we say it.
#[test]
fn c52_a_wrong_key_ends_the_connection_and_what_it_may_have_meant_stays_open() {
    for (name, wrong) in wrong_keys() {
        let (mut host, at) = host_with_key(registered);
        let rkey = wrong(&mut host, at);
        host.post_recv(2, 40_960, 8);
        host.post_send(3, 4);
        host.recv(send_invalidate(Only, 100, rkey, b"a").ack_req());
        assert_eq!(host.sent(), [nak(100, NakCode::RemoteOperationalError, 0)], "{name}");
        assert_eq!(host.received(), [(1, WcStatus::RemInvReqErr), (2, WcStatus::WrFlushErr)], "{name}");
        assert_eq!((host.done(), host.state()), (flushed([3]), QpState::Err), "{name}");
        assert_still_open(&mut host, at);
    }
}

#[test]
fn c52_a_type_2_window_is_invalidated_through_its_own_queue_pair_only() {
    let (mut host, at) = host_with_key(bound);
    let mut neighbour = host.neighbours(1).remove(0);
    neighbour.recv.push(5, &[host.sge(40_960, 8)]).expect("room");
    neighbour.recv.ring_doorbell();
    host.recv(send_invalidate(Only, 100, at.rkey, b"a").ack_req().at(&neighbour));
    assert_eq!(host.sent(), [nak(100, NakCode::RemoteOperationalError, 0).to_neighbour(1)]);
    assert_eq!(host.received(), [(5, WcStatus::RemInvReqErr)]);
    host.recv(send_invalidate(Only, 100, at.rkey, b"a").ack_req());
    assert_eq!((host.sent(), host.received()), (vec![ack(100, 1)], ok([1])));
}

#[test]
fn c52_a_key_is_invalidated_once() {
    for key in KEYS {
        let (mut host, at) = host_with_key(key);
        host.post_recv(2, 40_960, 8);
        host.recv(send_invalidate(Only, 100, at.rkey, b"a"));
        host.recv(send_invalidate(Only, 101, at.rkey, b"a"));
        assert_eq!(host.sent(), [nak(101, NakCode::RemoteOperationalError, 1)]);
        assert_eq!(host.received(), [(1, WcStatus::Success), (2, WcStatus::RemInvReqErr)]);
    }
}

#[test]
fn c20_a_key_that_ends_while_a_read_is_answered_ends_the_answer() {
    let ends: [fn(&mut Host, RemoteAddr); 3] = [
        |host, at| host.post_bare(2, SendOp::LocalInvalidate { rkey: at.rkey }),
        |host, at| host.recv(send_invalidate(Only, 104, at.rkey, b"a").ack_req()),
        |host, at| match host.engine.dealloc_mw(at.rkey) {
            Ok(()) => {}
            Err(_) => drop(host.engine.deregister_mr(at.rkey).expect("it is a window or a region")),
        },
    ];
    for key in KEYS {
        for end in ends {
            let (mut host, at) = host_with_key(key);
            host.recv(read(100, at, 4096).ack_req());
            for psn in [100, 101] {
                assert_eq!(host.transmit().map(|packet| packet.psn), Some(psn));
            }
            end(&mut host, at);
            let sent = host.sent();
            let last = sent.last().expect("a refusal").clone();
            assert_eq!(sent.len() as u32, last.psn - 101, "at most what left before the key ended");
            assert!(last.psn <= 103, "{last:?}");
            assert_eq!(last, nak(last.psn, REFUSED, 1));
            assert_eq!(host.state(), QpState::Err);
        }
    }
}

#[test]
fn c20_a_read_is_not_answered_again_once_its_key_has_ended() {
    for key in KEYS {
        let (mut host, at) = host_with_key(key);
        host.recv(read(100, at, 4));
        assert_eq!(host.sent(), [read_response(Only, 100, 1, &[0; 4])]);
        host.carry_out(SendOp::LocalInvalidate { rkey: at.rkey });
        host.recv(read(100, at, 4));
        assert_eq!((host.sent(), host.state()), (vec![nak(100, REFUSED, 1)], QpState::Err));
    }
}

/// The range of a WRITE is checked when it opens; each packet of it looks the key up again.
#[test]
fn c20_a_key_that_ends_in_the_middle_of_a_write_ends_the_write() {
    for key in KEYS {
        let (mut host, at) = host_with_key(key);
        host.recv(write(First, 100, at, 2048, &[1; 1024]));
        host.carry_out(SendOp::LocalInvalidate { rkey: at.rkey });
        host.recv(write_more(Last, 101, &[2; 1024]).ack_req());
        assert_eq!((host.sent(), host.bytes(1024, 1024)), (vec![nak(101, REFUSED, 0)], vec![0; 1024]));
    }
}

const INVALIDATE: SendOp = SendOp::SendInvalidate { rkey: 0xF00D };

#[test]
fn c53_the_sender_names_the_key_in_the_last_packet() {
    let mut host = Host::new();
    host.fill(0, &pattern(1500));
    host.post(1, INVALIDATE, SendFlags::empty(), &[host.sge(0, 4)]);
    host.post(2, INVALIDATE, SendFlags::SOLICITED, &[host.sge(0, 1500)]);
    host.post(3, INVALIDATE, SendFlags::empty(), &[]);
    let data = pattern(1500);
    let sent = [
        send_invalidate(Only, 500, 0xF00D, &data[..4]).ack_req(),
        send(First, 501, &data[..1024]),
        send_invalidate(Last, 502, 0xF00D, &data[1024..]).ack_req().solicited(),
        send_invalidate(Only, 503, 0xF00D, b"").ack_req(),
    ];
    assert_eq!(host.sent(), sent);
    host.recv(ack(503, 3));
    assert_eq!(host.sent(), []);
    let completions = host.send_completions();
    let told: Vec<_> = completions.iter().map(|wc| (wc.wr_id, wc.opcode, wc.status)).collect();
    assert_eq!(told, [1, 2, 3].map(|wr_id| (wr_id, WcOpcode::Send, WcStatus::Success)));
}

#[test]
fn c53_a_lost_packet_is_sent_again_as_it_was() {
    let mut host = Host::new();
    host.post(1, INVALIDATE, SendFlags::empty(), &[host.sge(0, 1500)]);
    let sent = host.sent();
    host.recv(nak(501, NakCode::SequenceError, 0));
    assert_eq!(host.sent(), sent[1..]);
    host.recv(ack(501, 1));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1])));
}

#[test]
fn a_peer_that_refuses_the_key_fails_the_send() {
    let mut host = Host::new();
    host.post(1, INVALIDATE, SendFlags::empty(), &[host.sge(0, 4)]);
    host.post_send(2, 4);
    assert_eq!(host.sent().len(), 2);
    host.recv(nak(500, NakCode::RemoteOperationalError, 0));
    assert_eq!(host.sent(), []);
    assert_eq!(host.done(), [(1, WcStatus::RemOpErr), (2, WcStatus::WrFlushErr)]);
}
