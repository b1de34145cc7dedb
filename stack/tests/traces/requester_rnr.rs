//! The requester and a peer without a receive (protocol section 4.7).

use std::time::Duration;

use crate::common::*;
use Position::{First, Last, Only};

const NANO: Duration = Duration::from_nanos(1);
/// What timer code 14 asks for.
const WAIT: Duration = Duration::from_micros(1280);

fn host_with(rnr_retry: u8, retry_cnt: u8) -> Host {
    let mut host = Host::with(Setup { rnr_retry, retry_cnt, ..Setup::default() });
    for wr_id in 0..3 {
        host.post_send(wr_id, 4);
    }
    assert_eq!(host.sent().len(), 3);
    host
}

fn packets(psns: std::ops::Range<u32>) -> Vec<Pkt> {
    psns.map(|psn| send(Only, psn, &[0; 4]).ack_req()).collect()
}

#[test]
fn p4_7_it_waits_as_long_as_it_is_told_and_sends_again_from_there() {
    let mut host = host_with(3, 3);
    host.recv(rnr(501, 14, 1));
    assert_eq!((host.sent(), host.done()), (vec![], ok([0])), "what is before is acknowledged");
    host.advance(WAIT - NANO);
    assert_eq!(host.sent(), []);
    host.advance(NANO);
    assert_eq!(host.sent(), packets(501..503));
    host.recv(ack(502, 3));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1, 2])));
    assert_eq!(host.count(Counter::RcvdRnrErr), 1);
}

#[test]
fn p2_5_each_timer_code_has_its_time() {
    for (timer, micros) in [(0, 655_360), (1, 10), (2, 20), (3, 30), (12, 640), (20, 10_240), (31, 491_520)] {
        let mut host = host_with(7, 0);
        host.recv(rnr(500, timer, 0));
        let wait = Duration::from_micros(micros);
        host.advance(wait - NANO);
        assert_eq!(host.sent(), []);
        host.advance(NANO);
        assert_eq!(host.sent(), packets(500..503), "{timer}");
    }
}

#[test]
fn c36_the_ack_timer_does_not_cut_the_wait_short_and_no_retry_is_used_up() {
    let mut host = host_with(7, 0);
    for _ in 0..3 {
        host.recv(rnr(500, 30, 0));
        for _ in 0..78 {
            host.advance(TIMEOUT);
            assert_eq!(host.sent(), []);
        }
        host.advance(TIMEOUT);
        assert_eq!(host.sent(), packets(500..503), "327.68 ms");
    }
    assert_eq!(host.count(Counter::LocalAckTimeoutErr), 0);
    host.advance(TIMEOUT);
    assert_eq!(host.sent(), []);
    assert_eq!(host.done()[0], (0, WcStatus::RetryExcErr), "the ACK timer runs again afterwards");
}

#[test]
fn c37_seven_is_for_ever() {
    let mut host = host_with(7, 0);
    for _ in 0..1000 {
        host.recv(rnr(500, 1, 0));
        host.advance(Duration::from_micros(10));
        assert_eq!(host.sent().len(), 3);
    }
    assert_eq!((host.done(), host.state()), (vec![], QpState::Rts));
}

#[test]
fn c37_rnr_retry_is_the_number_of_repetitions() {
    for rnr_retry in 0..7 {
        let mut host = host_with(rnr_retry, 3);
        for _ in 0..rnr_retry {
            host.recv(rnr(500, 1, 0));
            host.advance(Duration::from_micros(10));
            assert_eq!((host.sent().len(), host.done()), (3, vec![]));
        }
        host.recv(rnr(500, 1, 0));
        assert_eq!((host.sent(), host.state()), (vec![], QpState::Err));
        let flush = WcStatus::WrFlushErr;
        assert_eq!(host.done(), [(0, WcStatus::RnrRetryExcErr), (1, flush), (2, flush)], "{rnr_retry}");
        assert_eq!(host.count(Counter::RetryRnrExceededErr), 1);
    }
}

#[test]
fn c37_the_counter_is_reloaded_by_progress() {
    let mut host = host_with(1, 3);
    for psn in 500..503 {
        host.recv(rnr(psn, 1, 0));
        host.advance(Duration::from_micros(10));
        assert_eq!(host.sent(), packets(psn..503));
    }
    host.recv(ack(502, 3));
    assert_eq!((host.sent(), host.done()), (vec![], ok([0, 1, 2])));
}

#[test]
fn p9_1_rxe_follows_with_a_sequence_error_which_is_ignored() {
    let mut host = host_with(3, 0);
    host.recv(rnr(500, 14, 0));
    host.recv(nak(500, NakCode::SequenceError, 0));
    assert_eq!((host.sent(), host.state()), (vec![], QpState::Rts));
    host.advance(WAIT - NANO);
    assert_eq!(host.sent(), []);
    host.advance(NANO);
    assert_eq!(host.sent(), packets(500..503));
}

#[test]
fn the_same_refusal_twice_is_one_wait() {
    let mut host = host_with(1, 3);
    host.recv(rnr(500, 14, 0));
    host.advance(WAIT / 2);
    host.recv(rnr(500, 14, 0));
    host.advance(WAIT / 2);
    assert_eq!((host.sent(), host.state()), (packets(500..503), QpState::Rts));
}

#[test]
fn new_work_waits_with_the_rest() {
    let mut host = host_with(3, 3);
    host.recv(rnr(500, 14, 0));
    host.post_send(3, 4);
    assert_eq!(host.sent(), []);
    host.advance(WAIT);
    assert_eq!(host.sent(), packets(500..504));
}

#[test]
fn c32_only_the_last_packet_of_a_write_with_immediate_is_sent_again() {
    let mut host = Host::new();
    let data = pattern(1028);
    host.fill(0, &data);
    host.post(1, SendOp::Write { remote: FAR, immediate: Some(5) }, SendFlags::empty(), &[host.sge(0, 1028)]);
    let last = write_more(Last, 501, &data[1024..]).imm(5).ack_req();
    assert_eq!(host.sent(), [write(First, 500, FAR, 1028, &data[..1024]), last.clone()]);
    host.recv(rnr(501, 14, 0));
    host.advance(WAIT);
    assert_eq!(host.sent(), [last]);
}

#[test]
fn a_fatal_refusal_during_the_wait_ends_it() {
    let mut host = host_with(3, 3);
    host.recv(rnr(500, 14, 0));
    host.recv(nak(500, NakCode::RemoteOperationalError, 0));
    assert_eq!((host.sent(), host.done()[0]), (vec![], (0, WcStatus::RemOpErr)));
    host.advance(WAIT);
    assert_eq!((host.sent(), host.state(), host.engine.next_deadline()), (vec![], QpState::Err, None));
}
