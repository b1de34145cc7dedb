//! The responder and RDMA READ.

use crate::common::*;
use Position::{First, Last, Middle, Only};

const MTU: usize = 1024;

/// A host whose first bytes are a pattern.
fn host_with_data(len: usize) -> (Host, Vec<u8>) {
    let host = Host::new();
    let data = pattern(len);
    host.fill(0, &data);
    (host, data)
}

/// A whole stream of responses to a READ of `data` at `psn`.
fn responses(psn: u32, msn: u32, data: &[u8]) -> Vec<Pkt> {
    let pieces: Vec<&[u8]> = if data.is_empty() { vec![data] } else { data.chunks(MTU).collect() };
    let last = pieces.len() - 1;
    let position = |index| match (index == 0, index == last) {
        (true, true) => Only,
        (true, false) => First,
        (false, true) => Last,
        (false, false) => Middle,
    };
    let packet =
        |(index, piece): (usize, &&[u8])| read_response(position(index), psn + index as u32, msn, piece);
    pieces.iter().enumerate().map(packet).collect()
}

#[test]
fn read_is_answered_by_position() {
    for len in [1, 3, MTU, MTU + 1, 2 * MTU, 5 * MTU + 5] {
        let (mut host, data) = host_with_data(len);
        host.recv(read(100, host.at(0), len as u32).ack_req());
        assert_eq!(host.sent(), responses(100, 1, &data), "{len}");
        host.recv(read(100 + len.div_ceil(MTU) as u32, host.at(0), 1));
        assert_eq!(host.sent().len(), 1, "{len}: it took as many PSNs as responses");
    }
}

#[test]
fn c22_zero_length_read_ignores_key_and_address_also_when_duplicated() {
    let mut host = Host::new();
    let nowhere = RemoteAddr { va: u64::MAX, rkey: 0xDEAD_BEEF };
    for _ in 0..2 {
        host.recv(read(100, nowhere, 0).ack_req());
        assert_eq!(host.sent(), [read_response(Only, 100, 1, b"")]);
    }
    host.recv(read(101, host.at(0), 1));
    assert_eq!(host.sent().len(), 1, "it took one PSN");
}

#[test]
fn future_read_is_a_gap() {
    let mut host = Host::new();
    host.recv(read(101, host.at(0), 1).ack_req());
    assert_eq!(host.sent(), [nak(100, NakCode::SequenceError, 0)]);
}

#[test]
fn p4_4_responses_leave_in_the_order_of_the_requests() {
    let (mut host, data) = host_with_data(2 * MTU);
    host.post_recv(1, 4096, 16);
    host.post_recv(2, 4096, 16);
    host.recv(send(Only, 100, b"a").ack_req());
    host.recv(read(101, host.at(0), 2 * MTU as u32).ack_req());
    host.recv(send(Only, 103, b"b").ack_req());
    host.recv(fetch_add(104, host.at(8192), 1).ack_req());
    let mut expected = vec![ack(100, 1)];
    expected.extend(responses(101, 2, &data));
    expected.extend([ack(103, 3), atomic_ack(104, 4, 0)]);
    assert_eq!(host.sent(), expected);
    assert_eq!(host.received(), ok([1, 2]));
}

#[test]
fn c18_duplicate_read_is_answered_with_the_memory_as_it_is() {
    let (mut host, _) = host_with_data(MTU);
    host.recv(read(100, host.at(0), 4).ack_req());
    assert_eq!(host.sent().len(), 1);
    host.fill(0, b"NEW!");
    host.recv(read(100, host.at(0), 4).ack_req());
    assert_eq!(host.sent(), [read_response(Only, 100, 1, b"NEW!")]);
}

#[test]
fn c18_the_tail_of_a_read_is_answered_like_a_new_read() {
    let (mut host, data) = host_with_data(4 * MTU);
    host.recv(read(100, host.at(0), 4096).ack_req());
    assert_eq!(host.sent().len(), 4);
    for skipped in [1, 2, 3, 0] {
        let from = skipped * MTU;
        host.recv(read(100 + skipped as u32, host.at(from as u64), (4096 - from) as u32).ack_req());
        assert_eq!(host.sent(), responses(100 + skipped as u32, 1, &data[from..]), "{skipped}");
    }
}

#[test]
fn c18_a_duplicate_that_is_no_tail_of_the_original_is_dropped() {
    let (mut host, _) = host_with_data(4 * MTU);
    host.recv(read(100, host.at(0), 4096));
    assert_eq!(host.sent().len(), 4);
    let other_key = RemoteAddr { rkey: !host.keys.rkey, ..host.at(2048) };
    let wraps = RemoteAddr { va: u64::MAX - 7, rkey: host.keys.rkey };
    for wrong in [
        read(102, host.at(2048), 4096),
        read(102, host.at(2048), 2047),
        read(102, host.at(1024), 3072),
        read(102, host.at(2049), 2047),
        read(102, host.at(4096), 0),
        read(102, other_key, 2048),
        read(102, wraps, 2048),
        read(102, wraps, u32::MAX),
        read(100, host.at(4096), 0),
        read(99, host.at(0), 4096),
        fetch_add(100, host.at(0), 1),
    ] {
        host.recv(wrong.clone());
        assert_eq!(host.sent(), [], "{wrong:?}");
    }
    assert_eq!(host.state(), QpState::Rts);
    assert_eq!(host.count(Counter::DuplicateDropped), 11);
}

#[test]
fn c18_c16_a_duplicate_read_is_found_across_the_wrap() {
    let mut host = Host::with(Setup { rq_psn: 0xFF_FFFE, ..Setup::default() });
    let data = pattern(4 * MTU);
    host.fill(0, &data);
    host.recv(read(0xFF_FFFE, host.at(0), 4096));
    assert_eq!(host.sent(), responses(0xFF_FFFE, 1, &data));
    host.recv(read(1, host.at(3072), 1024));
    assert_eq!(host.sent(), responses(1, 1, &data[3072..]));
    host.recv(read(2, host.at(0), 1));
    assert_eq!(host.sent().len(), 1, "the next PSN is 2");
}

#[test]
fn c18_as_many_reads_as_the_depth_can_be_asked_for_again() {
    let (mut host, data) = host_with_data(64);
    for n in 0..5 {
        host.recv(read(100 + n, host.at(u64::from(n)), 1));
        assert_eq!(host.sent().len(), 1);
    }
    host.recv(read(100, host.at(0), 1));
    assert_eq!(host.sent(), [], "the fifth took the place of the first");
    for n in 1..5 {
        host.recv(read(100 + n, host.at(u64::from(n)), 1));
        assert_eq!(host.sent(), responses(100 + n, 5, &data[n as usize..][..1]));
    }
}

#[test]
fn a_read_asked_for_again_while_it_is_answered_is_answered_once() {
    let (mut host, data) = host_with_data(4 * MTU);
    host.recv(read(100, host.at(0), 4096));
    let first = host.transmit().expect("the first response");
    host.recv(read(101, host.at(1024), 3072));
    let mut sent = vec![first];
    sent.extend(host.sent());
    assert_eq!(sent, responses(100, 1, &data));
}

#[test]
fn a_read_asked_for_again_from_what_was_sent_starts_again() {
    let (mut host, data) = host_with_data(4 * MTU);
    host.recv(read(100, host.at(0), 4096));
    host.transmit().expect("the first response");
    host.transmit().expect("the second response");
    host.recv(read(101, host.at(1024), 3072));
    assert_eq!(host.sent(), responses(101, 1, &data[1024..]));
}

#[test]
fn c20_a_region_revoked_during_a_read_ends_it_with_the_psn_that_failed() {
    let (mut host, data) = host_with_data(4 * MTU);
    host.post_recv(1, 0, 16);
    host.recv(read(100, host.at(0), 4096).ack_req());
    let stream = responses(100, 1, &data);
    assert_eq!(host.transmit().as_ref(), Some(&stream[0]));
    assert_eq!(host.transmit().as_ref(), Some(&stream[1]));
    host.engine.deregister_mr(host.keys.lkey).expect("the region is registered");
    assert_eq!(host.sent(), [nak(102, NakCode::RemoteAccessError, 1)]);
    assert_eq!((host.state(), host.received()), (QpState::Err, flushed([1])));
    assert_eq!(host.events(), [AsyncEvent::QpAccessErr(host.qpn)]);
}

#[test]
fn c20_a_replay_after_the_region_was_revoked_is_refused() {
    let (mut host, _) = host_with_data(MTU);
    host.recv(read(100, host.at(0), 4).ack_req());
    assert_eq!(host.sent().len(), 1);
    host.engine.deregister_mr(host.keys.lkey).expect("the region is registered");
    host.recv(read(100, host.at(0), 4).ack_req());
    assert_eq!(host.sent(), [nak(100, NakCode::RemoteAccessError, 1)]);
    assert_eq!(host.state(), QpState::Err);
}

#[test]
fn c30_one_read_more_than_agreed_is_an_invalid_request() {
    let mut host = Host::with(Setup { max_dest_rd_atomic: 8, ..Setup::default() });
    host.recv_all((0..9).map(|n| read(100 + n, host.at(0), 1).ack_req()).collect::<Vec<_>>());
    let sent = host.sent();
    assert_eq!(sent.len(), 9, "eight answers come first");
    assert_eq!(sent[8], nak(108, NakCode::InvalidRequest, 8));
    assert_eq!(host.state(), QpState::Err);
}

#[test]
fn c30_an_answered_read_does_not_count() {
    let mut host = Host::with(Setup { max_dest_rd_atomic: 1, ..Setup::default() });
    for n in 0..20 {
        host.recv(read(100 + n, host.at(0), 1).ack_req());
        assert_eq!(host.sent().len(), 1);
    }
    assert_eq!(host.state(), QpState::Rts);
}

/// The answer was slow and the peer asked again; then the answer arrived and the peer went on.
#[test]
fn c30_a_late_duplicate_does_not_count() {
    let mut host = Host::with(Setup { max_dest_rd_atomic: 1, ..Setup::default() });
    host.recv(read(100, host.at(0), 1).ack_req());
    assert_eq!(host.sent(), [read_response(Only, 100, 1, &[0])]);
    host.recv(read(100, host.at(0), 1).ack_req());
    host.recv(read(101, host.at(0), 1).ack_req());
    assert_eq!(host.sent().last(), Some(&read_response(Only, 101, 2, &[0])));
    assert_eq!(host.state(), QpState::Rts);
}

/// rxe takes a plain acknowledgement that names a READ for its answer (section 9.1, 11; probe p3).
#[test]
fn p9_1_a_duplicate_behind_a_read_is_not_acknowledged_with_the_psn_of_the_read() {
    let mut host = Host::new();
    host.post_recv(1, 4096, 16);
    host.recv(send(Only, 100, b"a"));
    host.recv(read(101, host.at(0), 0).ack_req());
    assert_eq!(host.sent(), [read_response(Only, 101, 2, b"")]);
    host.recv(send(Only, 100, b"a").ack_req());
    assert_eq!(host.sent(), [ack(100, 2)], "probe: SEND, zero READ, duplicate SEND");
}

#[test]
fn p9_1_before_any_send_or_write_a_duplicate_is_acknowledged_with_what_was_never_sent() {
    let mut host = Host::new();
    host.recv(read(100, host.at(0), 0));
    assert_eq!(host.sent().len(), 1);
    host.recv(send(Only, 99, b"a").ack_req());
    assert_eq!(host.sent(), [ack(99, 1)]);
}
