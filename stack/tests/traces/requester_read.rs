//! The requester and READ, and the retry of part of it (protocol sections 4.8 and 5.5).

use crate::common::*;
use Position::{First, Last, Middle, Only};

const MTU: usize = 1024;

fn far(offset: usize) -> RemoteAddr {
    RemoteAddr { va: FAR.va + offset as u64, rkey: FAR.rkey }
}

/// A host that has asked for 4096 bytes with PSNs 500 to 503.
fn host_reading() -> (Host, Vec<u8>) {
    let mut host = Host::new();
    host.post_read(1, 4096);
    assert_eq!(host.sent(), [read(500, FAR, 4096).ack_req()]);
    (host, pattern(4096))
}

fn piece(data: &[u8], index: usize) -> &[u8] {
    &data[index * MTU..(index + 1) * MTU]
}

#[test]
fn read_in_order_is_placed_and_completed() {
    let (mut host, data) = host_reading();
    for (index, position) in [First, Middle, Middle].into_iter().enumerate() {
        host.recv(read_response(position, 500 + index as u32, 1, piece(&data, index)));
        assert_eq!((host.sent(), host.done()), (vec![], vec![]));
    }
    host.recv(read_response(Last, 503, 1, piece(&data, 3)));
    let sent = host.sent();
    let [completion] = host.send_completions()[..] else { panic!("one completion") };
    assert_eq!((sent, completion.wr_id, completion.status), (vec![], 1, WcStatus::Success));
    assert_eq!((completion.opcode, completion.byte_len), (WcOpcode::RdmaRead, 4096));
    assert_eq!(host.bytes(0, 4096), data);
}

#[test]
fn read_is_scattered_over_its_entries() {
    let mut host = Host::new();
    let pieces: Vec<Sge> = (0..32).map(|index| host.sge(100 * (31 - index), 40)).collect();
    host.post(1, SendOp::Read { remote: FAR }, SendFlags::empty(), &pieces);
    assert_eq!(host.sent(), [read(500, FAR, 1280).ack_req()]);
    let data = pattern(1280);
    host.recv(read_response(First, 500, 1, &data[..MTU]));
    host.recv(read_response(Last, 501, 1, &data[MTU..]));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1])));
    for index in 0..32 {
        assert_eq!(host.bytes(100 * (31 - index), 40), data[40 * index..][..40]);
    }
}

#[test]
fn read_of_nothing_takes_one_psn() {
    let mut host = Host::new();
    host.post_read(1, 0);
    host.post_send(2, 1);
    assert_eq!(host.sent(), [read(500, FAR, 0).ack_req(), send(Only, 501, &[0]).ack_req()]);
    host.recv(read_response(Only, 500, 1, b""));
    host.recv(ack(501, 2));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1, 2])));
}

#[test]
fn responses_of_the_past_are_dropped() {
    let (mut host, data) = host_reading();
    host.recv(read_response(First, 500, 1, piece(&data, 0)));
    host.fill(0, &[0; MTU]);
    host.recv(read_response(First, 500, 1, piece(&data, 0)));
    assert_eq!(
        (host.sent(), host.bytes(0, MTU), host.count(Counter::StaleResponse)),
        (vec![], vec![0; MTU], 1)
    );
}

#[test]
fn a_gap_in_the_responses_asks_for_the_rest_at_once() {
    let (mut host, data) = host_reading();
    host.recv(read_response(First, 500, 1, piece(&data, 0)));
    host.recv(read_response(Middle, 502, 1, piece(&data, 2)));
    assert_eq!(host.sent(), [read(501, far(1024), 3072).ack_req()]);
    host.recv(read_response(Last, 503, 1, piece(&data, 3)));
    assert_eq!(host.sent(), [], "once");
    assert_eq!((host.bytes(1024, 3072), host.count(Counter::ImpliedNakSeqErr)), (vec![0; 3072], 2));
    for (index, position) in [(1, First), (2, Middle), (3, Last)] {
        host.recv(read_response(position, 500 + index as u32, 1, piece(&data, index)));
    }
    assert_eq!((host.sent(), host.done(), host.bytes(0, 4096)), (vec![], ok([1]), data));
}

#[test]
fn c35_a_timeout_asks_for_what_is_missing() {
    let (mut host, data) = host_reading();
    host.recv(read_response(First, 500, 1, piece(&data, 0)));
    host.recv(read_response(Middle, 501, 1, piece(&data, 1)));
    host.fill(0, &[0xEE; 2048]);
    for _ in 0..3 {
        host.advance(4 * TIMEOUT);
        assert_eq!(host.sent(), [read(502, far(2048), 2048).ack_req()], "the base does not move");
    }
    host.recv(read_response(First, 502, 1, piece(&data, 2)));
    host.advance(TIMEOUT);
    assert_eq!(host.sent(), [read(503, far(3072), 1024).ack_req()]);
    host.recv(read_response(Only, 503, 1, piece(&data, 3)));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1])));
    assert_eq!(host.bytes(0, 2048), [0xEE; 2048], "what had arrived is not written again");
    assert_eq!(host.bytes(2048, 2048), data[2048..]);
}

#[test]
fn p9_1_rxe_answers_a_retry_as_if_it_went_on() {
    let (mut host, data) = host_reading();
    host.recv(read_response(First, 500, 1, piece(&data, 0)));
    host.advance(TIMEOUT);
    assert_eq!(host.sent(), [read(501, far(1024), 3072).ack_req()]);
    for (index, position) in [(1, Middle), (2, Middle), (3, Last)] {
        host.recv(read_response(position, 500 + index as u32, 1, piece(&data, index)));
    }
    assert_eq!((host.sent(), host.done(), host.bytes(0, 4096)), (vec![], ok([1]), data));
}

#[test]
fn answers_that_were_slow_are_taken_after_the_retry() {
    let (mut host, data) = host_reading();
    host.advance(TIMEOUT);
    assert_eq!(host.sent(), [read(500, FAR, 4096).ack_req()]);
    for (index, position) in [First, Middle, Middle, Last].into_iter().enumerate() {
        host.recv(read_response(position, 500 + index as u32, 1, piece(&data, index)));
    }
    host.recv(read_response(First, 500, 1, &[0; MTU]));
    assert_eq!((host.sent(), host.done(), host.bytes(0, 4096)), (vec![], ok([1]), data));
}

#[test]
fn a_response_acknowledges_what_came_before_the_read() {
    let mut host = Host::new();
    host.post_send(1, 4);
    host.post_write(2, 4);
    host.post_read(3, 4);
    assert_eq!(host.sent().len(), 3);
    host.recv(read_response(Only, 502, 3, b"data"));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1, 2, 3])));
}

#[test]
fn c33_an_acknowledgement_beyond_a_read_does_not_complete_it() {
    let mut host = Host::new();
    host.post_write(40, 4);
    host.post_read(41, 4);
    host.post_write(42, 4);
    assert_eq!(host.sent().len(), 3);
    host.recv(ack(502, 3));
    let again = [read(501, FAR, 4).ack_req(), write(Only, 502, FAR, 4, &[0; 4]).ack_req()];
    assert_eq!((host.sent(), host.done()), (again.to_vec(), ok([40])));
    host.recv(read_response(Only, 501, 2, b"data"));
    assert_eq!((host.sent(), host.done()), (vec![], ok([41])));
    host.recv(ack(502, 3));
    assert_eq!((host.sent(), host.done()), (vec![], ok([42])));
}

#[test]
fn p9_1_a_plain_acknowledgement_of_a_read_is_no_answer() {
    let mut host = Host::new();
    host.post_read(1, 4);
    assert_eq!(host.sent().len(), 1);
    host.recv(ack(500, 1));
    assert_eq!((host.sent(), host.done()), (vec![read(500, FAR, 4).ack_req()], vec![]));
    host.recv(read_response(Only, 500, 1, b"data"));
    assert_eq!((host.sent(), host.done(), host.bytes(0, 4)), (vec![], ok([1]), b"data".to_vec()));
}

#[test]
fn s28_a_response_of_the_wrong_kind_or_length_is_bad() {
    let data = pattern(MTU + 4);
    let (full, rest) = data.split_at(MTU);
    let first = || vec![read_response(First, 500, 1, full)];
    let refused = |syndrome| {
        let mut packet = read_response(Only, 500, 1, full);
        packet.operation = uroce_stack::wire::Operation::ReadResponse {
            position: First,
            aeth: Some(uroce_stack::wire::Aeth { syndrome, msn: 1 }),
        };
        packet
    };
    let cases = [
        ("MIDDLE for FIRST", vec![], read_response(Middle, 500, 1, full)),
        ("LAST for FIRST", vec![], read_response(Last, 500, 1, full)),
        ("ONLY for FIRST", vec![], read_response(Only, 500, 1, full)),
        ("FIRST for LAST", first(), read_response(First, 501, 1, rest)),
        ("MIDDLE for LAST", first(), read_response(Middle, 501, 1, rest)),
        ("short FIRST", vec![], read_response(First, 500, 1, &full[4..])),
        ("long FIRST", vec![], read_response(First, 500, 1, &[0; MTU + 4])),
        ("short LAST", first(), read_response(Last, 501, 1, &rest[1..])),
        ("long LAST", first(), read_response(Last, 501, 1, &[0; 5])),
        ("empty LAST", first(), read_response(Last, 501, 1, b"")),
        ("NAK inside", vec![], refused(Syndrome::Nak(NakCode::RemoteAccessError))),
        ("RNR inside", vec![], refused(Syndrome::Rnr { timer: 1 })),
        ("atomic", vec![], atomic_ack(500, 1, 0)),
    ];
    for (name, before, response) in cases {
        let mut host = Host::new();
        host.post_read(1, data.len() as u32);
        host.post_send(2, 4);
        assert_eq!(host.sent().len(), 2);
        host.recv_all(before);
        host.recv(response);
        assert_eq!((host.sent(), host.state()), (vec![], QpState::Err), "{name}");
        assert_eq!(host.done(), [(1, WcStatus::BadRespErr), (2, WcStatus::WrFlushErr)], "{name}");
        assert_eq!(host.count(Counter::BadRespErr), 1, "{name}");
    }
}

#[test]
fn p5_5_only_is_not_last() {
    let mut host = Host::new();
    host.post_read(1, 4);
    assert_eq!(host.sent().len(), 1);
    host.recv(read_response(Last, 500, 1, b"data"));
    assert_eq!((host.sent(), host.done()), (vec![], vec![(1, WcStatus::BadRespErr)]));
}

#[test]
fn a_refusal_in_the_middle_of_the_responses_fails_the_read() {
    let (mut host, data) = host_reading();
    host.recv(read_response(First, 500, 1, piece(&data, 0)));
    host.recv(nak(501, NakCode::RemoteAccessError, 0));
    assert_eq!(
        (host.sent(), host.done()),
        (vec![], vec![(1, WcStatus::RemAccessErr)]),
        "C20, the other side"
    );
}

#[test]
fn c56_memory_revoked_before_the_response_is_a_local_error() {
    let (mut host, data) = host_reading();
    host.post_send(2, 0);
    assert_eq!(host.sent().len(), 1);
    host.recv(read_response(First, 500, 1, piece(&data, 0)));
    host.engine.deregister_mr(host.keys.lkey).expect("the region is registered");
    host.recv(read_response(Middle, 501, 1, piece(&data, 1)));
    assert_eq!((host.sent(), host.state()), (vec![], QpState::Err));
    assert_eq!(host.done(), [(1, WcStatus::LocProtErr), (2, WcStatus::WrFlushErr)]);
    assert_eq!(host.bytes(1024, MTU), [0; MTU]);
}
