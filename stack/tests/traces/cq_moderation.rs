//! Moderated notifications: one for several completions, or after a time (IBTA, Modify CQ).

use std::time::Duration;

use crate::common::*;
use uroce_stack::{Error, Instant};

const PERIOD: Duration = Duration::from_micros(50);

/// A host whose send completions notify in fours, or after [`PERIOD`]. No other timer runs.
fn moderated() -> Host {
    let mut host = Host::with(Setup { timeout: 0, ..Setup::default() });
    moderate(&mut host, 4, PERIOD);
    assert!(!host.send_reader.arm(false));
    host
}

fn moderate(host: &mut Host, count: u16, period: Duration) {
    host.engine.modify_cq(host.send_cq, count, period).expect("the queue exists");
}

/// As many sends complete in a round of their own.
fn complete(host: &mut Host, count: u32) {
    for _ in 0..count {
        host.post_send(1, 4);
    }
    assert_eq!(host.sent().len() as u32, count);
    let last = host.count(Counter::RdmaSends) as u32;
    host.recv(ack(499 + last, last));
    host.advance(Duration::ZERO);
    assert_eq!(host.sent(), []);
}

/// How many notifications there were since the last look.
fn notified(host: &mut Host) -> usize {
    let queues = std::mem::take(&mut host.notified);
    assert!(queues.iter().all(|cq| *cq == host.send_cq));
    queues.len()
}

fn after(host: &Host, time: Duration) -> Option<Instant> {
    Some(host.now + time)
}

#[test]
fn the_count_notifies_and_starts_again() {
    let mut host = moderated();
    complete(&mut host, 3);
    assert_eq!(notified(&mut host), 0);
    assert_eq!(host.done(), ok([1; 3]), "they are visible all the same");
    complete(&mut host, 1);
    assert_eq!(notified(&mut host), 1);
    assert!(host.send_reader.arm(false));
    complete(&mut host, 3);
    assert_eq!(notified(&mut host), 0);
    complete(&mut host, 5);
    assert_eq!(notified(&mut host), 1, "once however many");
}

#[test]
fn many_at_once_notify_at_once() {
    let mut host = moderated();
    complete(&mut host, 9);
    assert_eq!(notified(&mut host), 1);
}

#[test]
fn the_period_runs_from_the_first_completion() {
    let mut host = moderated();
    assert_eq!(host.engine.next_deadline(), None);
    complete(&mut host, 1);
    assert_eq!(host.engine.next_deadline(), after(&host, PERIOD));
    host.advance(PERIOD / 2);
    complete(&mut host, 1);
    assert_eq!(host.engine.next_deadline(), after(&host, PERIOD / 2), "not from the second");
    host.advance(PERIOD / 2 - Duration::from_nanos(1));
    assert!(!host.engine.has_work());
    host.publish();
    assert_eq!(notified(&mut host), 0);
    host.advance(Duration::from_nanos(1));
    assert!(host.engine.has_work(), "the round is to publish");
    host.publish();
    assert_eq!((notified(&mut host), host.engine.next_deadline()), (1, None));
}

#[test]
fn a_period_after_a_count_starts_anew() {
    let mut host = moderated();
    complete(&mut host, 4);
    assert_eq!(notified(&mut host), 1);
    host.send_reader.arm(false);
    host.advance(PERIOD / 2);
    complete(&mut host, 1);
    host.advance(PERIOD / 2);
    host.publish();
    assert_eq!(notified(&mut host), 0, "the first four were told of");
    host.advance(PERIOD / 2);
    host.publish();
    assert_eq!(notified(&mut host), 1);
}

#[test]
fn without_completions_no_time_notifies() {
    let mut host = moderated();
    for _ in 0..10 {
        host.advance(PERIOD);
        host.publish();
    }
    assert_eq!((notified(&mut host), host.engine.next_deadline()), (0, None));
}

/// The period ends in the very round in which another completion comes: one notification tells of both.
#[test]
fn a_completion_in_the_round_in_which_the_period_ends_is_told_with_the_others() {
    let mut host = moderated();
    complete(&mut host, 1);
    host.post_send(2, 4);
    assert_eq!(host.sent().len(), 1);
    host.now = host.now + PERIOD;
    host.recv(ack(501, 2));
    host.advance(Duration::ZERO);
    host.publish();
    assert_eq!((notified(&mut host), host.engine.next_deadline()), (1, None));
    host.send_reader.arm(false);
    host.advance(PERIOD);
    host.publish();
    assert_eq!(notified(&mut host), 0, "nothing came since");
}

#[test]
fn a_queue_that_is_not_armed_is_not_notified() {
    let mut host = moderated();
    complete(&mut host, 4);
    assert_eq!(notified(&mut host), 1);
    complete(&mut host, 8);
    host.advance(PERIOD);
    host.publish();
    assert_eq!(notified(&mut host), 0, "arming is one shot");
}

/// The application has armed the queue and sleeps: what has come is not to be forgotten.
#[test]
fn the_end_of_moderation_tells_of_what_has_come() {
    for (count, period) in [(0, Duration::ZERO), (1, PERIOD), (100, PERIOD)] {
        let mut host = moderated();
        complete(&mut host, 3);
        assert_eq!(notified(&mut host), 0);
        moderate(&mut host, count, period);
        host.advance(Duration::ZERO);
        host.publish();
        assert_eq!(notified(&mut host), 1, "{count}");
    }
}

#[test]
fn a_count_of_0_or_1_is_no_moderation() {
    for count in [0, 1] {
        let mut host = moderated();
        moderate(&mut host, count, PERIOD);
        complete(&mut host, 1);
        assert_eq!((notified(&mut host), host.engine.next_deadline()), (1, None));
    }
}

#[test]
fn a_period_of_nothing_holds_nothing_back() {
    let mut host = moderated();
    moderate(&mut host, 100, Duration::ZERO);
    complete(&mut host, 1);
    assert_eq!(notified(&mut host), 1);
}

/// The longest that verbs can say, 65,535 us, and a count that is never reached.
#[test]
fn the_longest_period_and_the_largest_count_end_too() {
    let mut host = moderated();
    let period = Duration::from_micros(u16::MAX.into());
    moderate(&mut host, u16::MAX, period);
    complete(&mut host, 60);
    assert_eq!((notified(&mut host), host.engine.next_deadline()), (0, after(&host, period)));
    host.advance(period);
    host.publish();
    assert_eq!(notified(&mut host), 1);
}

#[test]
fn a_solicited_completion_is_remembered_until_the_notification() {
    let mut host = Host::with(Setup { timeout: 0, ..Setup::default() });
    host.engine.modify_cq(host.recv_cq, 3, PERIOD).expect("the queue exists");
    host.recv_reader.arm(true);
    for index in 0..3 {
        host.post_recv(index, 64 * index, 64);
    }
    for (psn, is_solicited) in [(100, true), (101, false), (102, false)] {
        let packet = send(Position::Only, psn, b"a").ack_req();
        host.recv(if is_solicited { packet.solicited() } else { packet });
        assert_eq!(host.sent(), [ack(psn, psn - 99)]);
        assert_eq!(host.notified.len(), usize::from(psn == 102));
    }
}

#[test]
fn two_queues_are_moderated_apart() {
    let mut host = moderated();
    host.engine.modify_cq(host.recv_cq, 4, 3 * PERIOD).expect("the queue exists");
    host.recv_reader.arm(false);
    host.post_recv(1, 0, 64);
    host.recv(send(Position::Only, 100, b"a").ack_req());
    host.advance(Duration::ZERO);
    assert_eq!(host.sent(), [ack(100, 1)]);
    complete(&mut host, 1);
    assert_eq!(host.engine.next_deadline(), after(&host, PERIOD), "the earlier");
    host.advance(PERIOD);
    host.publish();
    assert_eq!(notified(&mut host), 1);
    assert_eq!(host.engine.next_deadline(), after(&host, 2 * PERIOD));
    host.advance(2 * PERIOD);
    host.publish();
    assert_eq!(host.notified, [host.recv_cq]);
}

#[test]
fn a_resized_queue_stays_moderated() {
    let mut host = moderated();
    complete(&mut host, 2);
    host.engine.resize_cq(host.send_cq, &mut host.send_reader, 8).expect("room");
    complete(&mut host, 1);
    assert_eq!(notified(&mut host), 0);
    complete(&mut host, 1);
    assert_eq!((notified(&mut host), host.done()), (1, ok([1; 4])));
}

#[test]
fn a_queue_that_is_gone_is_not_found() {
    let mut host = moderated();
    let (cq, _reader) = host.engine.create_cq(4).expect("room");
    host.engine.modify_cq(cq, 4, PERIOD).expect("it exists");
    host.engine.destroy_cq(cq).expect("nothing completes on it");
    assert!(matches!(host.engine.modify_cq(cq, 4, PERIOD), Err(Error::NotFound(_))));
}
