//! The requester and what is lost: timers, retries, their limits (protocol section 4.8).

use std::time::Duration;

use crate::common::*;
use Position::{First, Last, Middle, Only};

const MTU: usize = 1024;

fn host_that_retries(retry_cnt: u8) -> Host {
    Host::with(Setup { retry_cnt, ..Setup::default() })
}

#[test]
fn p4_8_a_timeout_sends_the_oldest_unacknowledged_again_and_waits() {
    let mut host = Host::new();
    for wr_id in 0..3 {
        host.post_send(wr_id, 4);
    }
    let sent = host.sent();
    host.recv(ack(500, 1));
    host.advance(TIMEOUT - Duration::from_nanos(1));
    assert_eq!(host.sent(), [], "not early");
    host.advance(Duration::from_nanos(1));
    assert_eq!(host.sent(), sent[1..2]);
    assert_eq!((host.count(Counter::LocalAckTimeoutErr), host.count(Counter::RetransmittedPkts)), (1, 1));
    host.recv(ack(502, 3));
    assert_eq!((host.sent(), host.done()), (vec![], ok([0, 1, 2])));
}

#[test]
fn p4_8_a_message_goes_on_in_its_middle_without_its_first_header() {
    let mut host = Host::new();
    let data = pattern(3 * MTU);
    host.fill(0, &data);
    host.post_write(1, data.len() as u32);
    let first = write(First, 500, FAR, 3072, &data[..MTU]);
    let rest =
        [write_more(Middle, 501, &data[MTU..2 * MTU]), write_more(Last, 502, &data[2 * MTU..]).ack_req()];
    assert_eq!(host.sent(), [std::slice::from_ref(&first), &rest[..]].concat());
    host.recv(nak(500, NakCode::SequenceError, 0));
    assert_eq!(host.sent(), [std::slice::from_ref(&first), &rest[..]].concat());
    host.recv(nak(501, NakCode::SequenceError, 0));
    assert_eq!(host.sent(), rest);
    host.recv(ack(501, 0));
    host.advance(TIMEOUT);
    assert_eq!(host.sent(), rest[1..]);
}

#[test]
fn p4_8_retry_cnt_is_the_number_of_repetitions() {
    for retry_cnt in [0, 1, 2, 6, 7] {
        let mut host = host_that_retries(retry_cnt);
        host.post_send(1, 4);
        host.post_send(2, 4);
        for transmission in 0..=retry_cnt {
            let packets = if transmission == 0 { 2 } else { 1 };
            assert_eq!(host.sent().len(), packets, "{transmission} of {retry_cnt}");
            assert_eq!((host.done(), host.state()), (vec![], QpState::Rts));
            host.advance(4 * TIMEOUT);
        }
        assert_eq!((host.sent(), host.state()), (vec![], QpState::Err));
        assert_eq!(host.done(), [(1, WcStatus::RetryExcErr), (2, WcStatus::WrFlushErr)]);
        assert_eq!(host.count(Counter::RetryExceededErr), 1);
    }
}

#[test]
fn p4_8_sequence_errors_use_up_the_same_retries() {
    let mut host = host_that_retries(1);
    host.post_send(1, 4);
    assert_eq!(host.sent().len(), 1);
    host.recv(nak(500, NakCode::SequenceError, 0));
    assert_eq!(host.sent().len(), 1);
    host.advance(TIMEOUT);
    assert_eq!((host.sent(), host.done()), (vec![], vec![(1, WcStatus::RetryExcErr)]));
}

#[test]
fn p4_8_progress_gives_the_retries_back() {
    let mut host = host_that_retries(1);
    for wr_id in 0..10 {
        host.post_send(wr_id, 4);
    }
    assert_eq!(host.sent().len(), 10);
    for wr_id in 0..10 {
        host.advance(TIMEOUT);
        assert_eq!(host.sent().len(), 1);
        host.recv(ack(500 + wr_id as u32, 1));
        assert_eq!((host.sent().len(), host.done()), (9 - wr_id as usize, ok([wr_id])), "the rest follows");
    }
}

#[test]
fn progress_inside_a_message_gives_the_retries_back() {
    let mut host = host_that_retries(1);
    host.post_send(1, 4 * MTU as u32);
    assert_eq!(host.sent().len(), 4);
    for psn in 500..503 {
        host.advance(TIMEOUT);
        host.recv(ack(psn, 0));
        assert!(!host.sent().is_empty());
    }
    host.recv(ack(503, 1));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1])));
}

#[test]
fn c39_timeout_0_never_fires() {
    let mut host = Host::with(Setup { timeout: 0, retry_cnt: 0, ..Setup::default() });
    host.post_send(1, 4);
    assert_eq!(host.sent().len(), 1);
    assert_eq!(host.engine.next_deadline(), None);
    host.advance(Duration::from_secs(100_000));
    assert_eq!((host.sent(), host.done(), host.state()), (vec![], vec![], QpState::Rts));
    host.recv(ack(500, 1));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1])));
}

#[test]
fn c39_timeouts_are_4096_nanoseconds_times_a_power_of_two() {
    for timeout in [1, 8, 14, 20, 31] {
        let mut host = Host::with(Setup { timeout, ..Setup::default() });
        host.post_send(1, 4);
        assert_eq!(host.sent().len(), 1);
        let wait = Duration::from_nanos(4096 << timeout);
        assert_eq!(host.engine.next_deadline(), Some(host.now + wait));
        host.advance(wait - Duration::from_nanos(1));
        assert_eq!(host.sent(), []);
        host.advance(Duration::from_nanos(1));
        assert_eq!(host.sent().len(), 1);
    }
}

#[test]
fn p4_8_the_interval_grows_to_the_fourfold_that_the_specification_allows() {
    let mut host = host_that_retries(7);
    host.post_send(1, 4);
    assert_eq!(host.sent().len(), 1);
    for factor in [1, 2, 4, 4, 4, 4, 4] {
        assert_eq!(host.engine.next_deadline(), Some(host.now + factor * TIMEOUT));
        host.advance(factor * TIMEOUT);
        assert_eq!(host.sent().len(), 1);
    }
}

#[test]
fn c41_the_timer_stops_when_nothing_is_outstanding() {
    let mut host = Host::new();
    host.post_send(1, 4);
    assert_eq!(host.sent().len(), 1);
    host.recv(ack(500, 1));
    host.advance(Duration::from_secs(10));
    assert_eq!((host.sent(), host.engine.next_deadline()), (vec![], None));
    assert_eq!(host.count(Counter::LocalAckTimeoutErr), 0);
}

#[test]
fn an_acknowledgement_starts_the_timer_anew_and_a_new_send_does_not() {
    let mut host = Host::new();
    host.post_send(1, 4);
    host.post_send(2, 4);
    assert_eq!(host.sent().len(), 2);
    host.advance(TIMEOUT / 2);
    host.recv(ack(500, 1));
    host.advance(TIMEOUT / 2);
    assert_eq!(host.sent(), []);
    host.post_send(3, 4);
    assert_eq!(host.sent().len(), 1);
    host.advance(TIMEOUT / 2);
    assert_eq!(host.sent(), [send(Only, 501, &[0; 4]).ack_req()]);
}

#[test]
fn memory_is_read_again_for_each_transmission() {
    let mut host = Host::new();
    host.fill(0, b"old!");
    host.post_send(1, 4);
    assert_eq!(host.sent(), [send(Only, 500, b"old!").ack_req()]);
    host.fill(0, b"new!");
    host.advance(TIMEOUT);
    assert_eq!(host.sent(), [send(Only, 500, b"new!").ack_req()]);
}

#[test]
fn a_late_acknowledgement_stops_the_repetition_where_it_stands() {
    let mut host = Host::new();
    for wr_id in 0..4 {
        host.post_send(wr_id, 4);
    }
    let sent = host.sent();
    host.advance(TIMEOUT);
    assert_eq!(host.transmit().as_ref(), Some(&sent[0]));
    host.recv(ack(502, 3));
    assert_eq!((host.sent(), host.done()), (sent[3..].to_vec(), ok([0, 1, 2])));
}

#[test]
fn new_work_follows_what_is_repeated() {
    let mut host = Host::new();
    host.post_send(1, 4);
    assert_eq!(host.sent().len(), 1);
    host.advance(TIMEOUT);
    host.post_send(2, 4);
    assert_eq!(host.sent(), [send(Only, 500, &[0; 4]).ack_req()]);
    host.recv(ack(500, 1));
    assert_eq!(host.sent(), [send(Only, 501, &[0; 4]).ack_req()]);
    assert_eq!(host.count(Counter::RetransmittedPkts), 1);
}

#[test]
fn the_window_is_kept_when_sending_again() {
    let mut host = Host::with(Setup { mtu: Mtu::B256, window: 4, ..Setup::default() });
    host.post_send(1, 10 * 256);
    assert_eq!(host.sent().len(), 4);
    host.advance(TIMEOUT);
    assert_eq!(host.sent(), [send(First, 500, &[0; 256]).ack_req()]);
    host.recv(ack(500, 0));
    let sent = host.sent();
    assert_eq!(sent.iter().map(|packet| packet.psn).collect::<Vec<_>>(), [501, 502, 503, 504]);
    assert!(sent[3].ack_request, "the packet before the stall asks again");
}

#[test]
fn retries_that_run_out_end_the_receives_too() {
    let mut host = host_that_retries(0);
    host.post_recv(9, 0, 4);
    host.post_read(1, 4);
    assert_eq!(host.sent().len(), 1);
    host.advance(TIMEOUT);
    assert_eq!(host.sent(), []);
    assert_eq!((host.done(), host.received()), (vec![(1, WcStatus::RetryExcErr)], flushed([9])));
    assert_eq!(host.engine.next_deadline(), None);
}
