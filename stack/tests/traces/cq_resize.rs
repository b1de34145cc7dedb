//! Completion queues that grow and shrink while completions come (protocol section 4.16; C63).

use crate::common::*;
use Position::Only;
use uroce_stack::Error;

/// A host whose queues hold four completions.
fn small() -> Host {
    Host::with(Setup { cqe: 4, ..Setup::default() })
}

fn resize(host: &mut Host, cqe: u32) -> Result<(), Error> {
    host.engine.resize_cq(host.send_cq, &mut host.send_reader, cqe)
}

/// Sends that complete, and are visible with the next publication.
fn complete(host: &mut Host, wr_ids: std::ops::Range<u64>) {
    let first = wr_ids.start as u32;
    for wr_id in wr_ids.clone() {
        host.post_send(wr_id, 4);
    }
    assert_eq!(host.sent().len(), wr_ids.count());
    let last = host.engine.counters().get(Counter::RdmaSends) as u32;
    host.recv(ack(499 + last, last));
    assert!(last > first || host.state() == QpState::Rts);
}

#[test]
fn a_full_queue_grows_and_takes_more() {
    let mut host = small();
    complete(&mut host, 0..4);
    host.publish();
    assert_eq!(resize(&mut host, 8), Ok(()));
    assert!(host.send_reader.capacity() >= 8);
    complete(&mut host, 4..8);
    assert_eq!((host.sent(), host.done()), (vec![], ok(0..8)));
    assert_eq!((host.state(), host.events()), (QpState::Rts, vec![]));
}

#[test]
fn what_is_not_published_yet_moves_along_and_stays_invisible() {
    let mut host = small();
    complete(&mut host, 0..2);
    host.publish();
    complete(&mut host, 2..4);
    assert_eq!(resize(&mut host, 64), Ok(()));
    assert_eq!(host.done(), ok(0..2));
    host.publish();
    assert_eq!(host.done(), ok(2..4));
}

#[test]
fn a_queue_shrinks_as_far_as_what_waits_in_it_allows() {
    let mut host = Host::with(Setup { cqe: 64, ..Setup::default() });
    complete(&mut host, 0..3);
    host.publish();
    complete(&mut host, 3..6);
    for too_small in [1, 4, 5] {
        let refused = resize(&mut host, too_small);
        assert!(matches!(refused, Err(Error::Invalid(_))), "{too_small}: {refused:?}");
        assert_eq!(host.send_reader.capacity(), 64, "as it was");
    }
    assert_eq!(resize(&mut host, 6), Ok(()));
    assert!((6..64).contains(&host.send_reader.capacity()));
    host.publish();
    assert_eq!(host.done(), ok(0..6));
    assert_eq!(resize(&mut host, 1), Ok(()), "when they are polled it may be as small as any");
    complete(&mut host, 6..7);
    assert_eq!((host.sent(), host.done()), (vec![], ok([6])));
}

#[test]
fn c63_after_a_resize_the_new_size_is_what_overflows() {
    for (from, to) in [(4, 16), (64, 16)] {
        let mut host = Host::with(Setup { cqe: from, ..Setup::default() });
        assert_eq!(resize(&mut host, to), Ok(()));
        let room = u64::from(host.send_reader.capacity());
        complete(&mut host, 0..room);
        assert_eq!((host.sent(), host.state()), (vec![], QpState::Rts), "{from} to {to}");
        complete(&mut host, room..room + 1);
        assert_eq!((host.sent(), host.state()), (vec![], QpState::Err), "{from} to {to}");
        assert!(host.events().contains(&AsyncEvent::CqErr(host.send_cq)));
        assert!(host.send_reader.overrun());
        assert_eq!(host.done(), ok(0..room), "{from} to {to}");
    }
}

/// Room does not bring back what was lost: the queue stays in error.
#[test]
fn c63_a_queue_that_overflowed_is_not_healed_by_a_resize() {
    let mut host = small();
    complete(&mut host, 0..5);
    assert_eq!((host.sent(), host.state()), (vec![], QpState::Err));
    assert_eq!(resize(&mut host, 64), Ok(()));
    assert!(host.send_reader.overrun());
    assert_eq!(host.done(), ok(0..4));
    host.post_send(9, 4);
    assert_eq!((host.sent(), host.done()), (vec![], vec![]), "nothing is reported any more");
    assert_eq!(host.count(Counter::CqOverrun), 1);
}

#[test]
fn an_armed_queue_stays_armed() {
    let mut host = small();
    assert!(!host.send_reader.arm(false));
    assert_eq!(resize(&mut host, 64), Ok(()));
    complete(&mut host, 0..1);
    host.publish();
    assert_eq!((host.notified.clone(), host.done()), (vec![host.send_cq], ok([0])));
}

#[test]
fn a_queue_that_several_share_serves_them_all_after_a_resize() {
    let mut host = small();
    let mut neighbour = host.neighbours(1).remove(0);
    host.post_send(1, 4);
    post_to(&mut neighbour, 2, SendOp::Send { immediate: None }, &[host.sge(0, 4)]);
    assert_eq!(host.sent().len(), 2);
    host.recv(ack(500, 1));
    assert_eq!(resize(&mut host, 64), Ok(()));
    host.recv(ack(500, 1).at(&neighbour));
    host.publish();
    let told: Vec<_> = host.send_completions().iter().map(|wc| (wc.wr_id, wc.qp_num)).collect();
    assert_eq!(told, [(1, host.qpn), (2, neighbour.qpn)]);
}

#[test]
fn sizes_out_of_range_and_queues_that_are_gone_are_refused() {
    let mut host = small();
    for cqe in [0, (1 << 20) + 1, u32::MAX] {
        assert!(matches!(resize(&mut host, cqe), Err(Error::OutOfRange { .. })), "{cqe}");
    }
    let (cq, mut reader) = host.engine.create_cq(4).expect("room");
    host.engine.destroy_cq(cq).expect("nothing completes on it");
    assert!(matches!(host.engine.resize_cq(cq, &mut reader, 8), Err(Error::NotFound(_))));
}

/// Indices start anew with each ring, so every size is met at every place of the old one.
#[test]
fn c63_nothing_is_lost_by_any_sequence_of_sizes() {
    let mut host = Host::with(Setup { cqe: 8, ..Setup::default() });
    let mut next = 0;
    for cqe in (1..=40).chain((1..40).rev()) {
        let waiting = u64::from(cqe.min(host.send_reader.capacity()) / 2);
        complete(&mut host, next..next + waiting);
        if cqe % 3 == 0 {
            host.publish();
        }
        assert_eq!(resize(&mut host, cqe), Ok(()), "{cqe}");
        host.publish();
        assert_eq!(host.done(), ok(next..next + waiting), "{cqe}");
        next += waiting;
    }
    assert_eq!((host.state(), host.received()), (QpState::Rts, vec![]));
    host.post_recv(1, 0, 4);
    host.recv(send(Only, 100, b"a").ack_req());
    assert_eq!((host.sent(), host.received()), (vec![ack(100, 1)], ok([1])));
}
