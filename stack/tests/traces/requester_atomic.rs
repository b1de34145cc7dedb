//! The requester and atomic operations.

use crate::common::*;
use Position::Only;

#[test]
fn the_former_value_lands_in_host_order() {
    let mut host = Host::new();
    host.post_fetch_add(1, 16);
    assert_eq!(host.sent(), [fetch_add(500, FAR, 1).ack_req()]);
    host.recv(atomic_ack(500, 1, 0x0102_0304_0506_0708));
    let sent = host.sent();
    let [completion] = host.send_completions()[..] else { panic!("one completion") };
    assert_eq!((sent, completion.wr_id, completion.opcode), (vec![], 1, WcOpcode::FetchAdd));
    assert_eq!((completion.status, completion.byte_len), (WcStatus::Success, 8));
    assert_eq!(host.word(16), 0x0102_0304_0506_0708, "C59");
}

#[test]
fn compare_swap_carries_both_values() {
    let mut host = Host::new();
    let op = SendOp::CompareSwap { remote: FAR, compare: 5, swap: 6 };
    host.post(1, op, SendFlags::empty(), &[host.sge(0, 3), host.sge(8, 5)]);
    assert_eq!(host.sent(), [compare_swap(500, FAR, 5, 6).ack_req()]);
    host.recv(atomic_ack(500, 1, u64::from_ne_bytes(*b"ABCDEFGH")));
    assert_eq!(host.sent(), []);
    let completions = host.send_completions();
    assert_eq!((completions[0].opcode, completions[0].status), (WcOpcode::CompSwap, WcStatus::Success));
    assert_eq!((host.bytes(0, 3), host.bytes(8, 5)), (b"ABC".to_vec(), b"DEFGH".to_vec()));
}

#[test]
fn p4_8_a_lost_answer_repeats_the_request_as_it_was() {
    let mut host = Host::new();
    host.post_fetch_add(1, 0);
    host.post_send(2, 4);
    let sent = host.sent();
    host.advance(TIMEOUT);
    assert_eq!(host.sent(), sent[..1]);
    host.recv(atomic_ack(500, 1, 7));
    host.recv(atomic_ack(500, 1, 8));
    host.recv(ack(501, 2));
    assert_eq!((host.sent(), host.done(), host.word(0)), (vec![], ok([1, 2]), 7));
}

#[test]
fn c33_a_later_answer_does_not_complete_an_atomic() {
    let mut host = Host::new();
    host.post_fetch_add(1, 0);
    host.post_fetch_add(2, 8);
    let sent = host.sent();
    host.recv(atomic_ack(501, 2, 8));
    assert_eq!((host.sent(), host.done(), host.word(8)), (sent, vec![], 0), "both are asked for again");
    host.recv(atomic_ack(500, 1, 7));
    host.recv(atomic_ack(501, 2, 8));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1, 2])));
    assert_eq!((host.word(0), host.word(8)), (7, 8));
}

#[test]
fn a_plain_acknowledgement_of_an_atomic_is_no_answer() {
    let mut host = Host::new();
    host.post_fetch_add(1, 0);
    let sent = host.sent();
    host.recv(ack(500, 1));
    assert_eq!((host.sent(), host.done()), (sent, vec![]));
}

#[test]
fn p5_5_data_of_a_read_does_not_answer_an_atomic() {
    let mut host = Host::new();
    host.post_fetch_add(1, 0);
    assert_eq!(host.sent().len(), 1);
    host.recv(read_response(Only, 500, 1, &[1; 8]));
    assert_eq!((host.sent(), host.done(), host.word(0)), (vec![], vec![(1, WcStatus::BadRespErr)], 0));
}

#[test]
fn c27_a_refused_atomic_fails_with_its_status() {
    let mut host = Host::new();
    host.post_fetch_add(1, 0);
    assert_eq!(host.sent().len(), 1);
    host.recv(nak(500, NakCode::RemoteAccessError, 0));
    assert_eq!((host.sent(), host.done(), host.word(0)), (vec![], vec![(1, WcStatus::RemAccessErr)], 0));
}

#[test]
fn p5_5_a_refusal_in_the_answer_to_an_atomic_is_a_bad_response() {
    let mut host = Host::new();
    host.post_fetch_add(1, 0);
    assert_eq!(host.sent().len(), 1);
    let aeth = uroce_stack::wire::Aeth { syndrome: Syndrome::Nak(NakCode::RemoteAccessError), msn: 0 };
    host.recv(Pkt::new(500, uroce_stack::wire::Operation::AtomicAcknowledge { aeth, original: 1 }, &[]));
    assert_eq!((host.sent(), host.done(), host.word(0)), (vec![], vec![(1, WcStatus::BadRespErr)], 0));
}

#[test]
fn c56_an_atomic_whose_result_has_no_place_any_more_fails_locally() {
    let mut host = Host::new();
    host.post_fetch_add(1, 0);
    host.post_fetch_add(2, 8);
    assert_eq!(host.sent().len(), 2);
    host.engine.deregister_mr(host.keys.lkey).expect("the region is registered");
    host.recv(atomic_ack(500, 1, 7));
    assert_eq!(host.sent(), []);
    assert_eq!(host.done(), [(1, WcStatus::LocProtErr), (2, WcStatus::WrFlushErr)]);
    assert_eq!(host.word(0), 0);
}
