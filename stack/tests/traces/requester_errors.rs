//! Sends that fail on our own side (protocol section 4.16; C56), and posts that are refused (C48).

use crate::common::*;
use Position::{First, Middle, Only};

const SEND: SendOp = SendOp::Send { immediate: None };
const WRITE: SendOp = SendOp::Write { remote: FAR, immediate: None };
const READ: SendOp = SendOp::Read { remote: FAR };
const NONE: SendFlags = SendFlags::empty();

/// Local memory that a send may not use, and with which operation.
fn forbidden(host: &mut Host) -> Vec<(&'static str, SendOp, Sge)> {
    let other = host.engine.alloc_pd().expect("room for a protection domain");
    let mut register = |pd, access| {
        let keys = host.engine.register_mr(pd, Region::alloc(64), 0, access).expect("room for a region");
        Sge { addr: 0, length: 8, lkey: keys.lkey }
    };
    let foreign = register(other, Access::LOCAL_WRITE | Access::REMOTE);
    let read_only = register(host.pd, Access::REMOTE_READ);
    vec![
        ("unknown key", SEND, Sge { lkey: !host.keys.lkey, ..host.sge(0, 4) }),
        ("before", WRITE, Sge { addr: VA - 1, ..host.sge(0, 4) }),
        ("past the end", SEND, host.sge(AREA as u64 - 3, 4)),
        ("wraps", SEND, Sge { addr: u64::MAX, ..host.sge(0, 4) }),
        ("another domain", WRITE, foreign),
        ("not for writing", READ, read_only),
        ("not for writing", SendOp::FetchAdd { remote: FAR, add: 1 }, read_only),
    ]
}

#[test]
fn c56_a_forbidden_buffer_fails_after_everything_before_it() {
    for index in 0..7 {
        let mut host = Host::new();
        let (name, op, sge) = forbidden(&mut host)[index];
        host.post_send(1, 4);
        host.post_fetch_add(2, 0);
        host.post(3, op, NONE, &[sge]);
        host.post_send(4, 4);
        assert_eq!(host.sent().len(), 2, "{name}: it does not leave, nor does what follows");
        assert_eq!((host.done(), host.state()), (vec![], QpState::Rts), "{name}");
        host.recv(ack(500, 1));
        assert_eq!((host.sent(), host.done()), (vec![], ok([1])), "{name}");
        host.recv(atomic_ack(501, 2, 0));
        assert_eq!(host.sent(), []);
        let end = [(2, WcStatus::Success), (3, WcStatus::LocProtErr), (4, WcStatus::WrFlushErr)];
        assert_eq!((host.done(), host.state()), (end.to_vec(), QpState::Err), "{name}");
    }
}

#[test]
fn c56_a_forbidden_buffer_fails_at_once_when_nothing_is_before_it() {
    for index in 0..7 {
        let mut host = Host::new();
        let (name, op, sge) = forbidden(&mut host)[index];
        host.post_recv(9, 0, 4);
        host.post(1, op, NONE, &[sge]);
        assert_eq!(host.sent(), []);
        assert_eq!((host.done(), host.received()), (vec![(1, WcStatus::LocProtErr)], flushed([9])), "{name}");
        assert_eq!(host.count(Counter::ReqLocalProtErr), 1);
    }
}

#[test]
fn what_is_before_a_failing_send_is_still_sent_again() {
    let mut host = Host::new();
    host.post_send(1, 4);
    host.post(2, SEND, NONE, &[Sge { lkey: 0, ..host.sge(0, 4) }]);
    let sent = host.sent();
    assert_eq!(sent.len(), 1);
    host.advance(TIMEOUT);
    assert_eq!(host.sent(), sent);
    host.recv(ack(500, 1));
    assert_eq!((host.sent(), host.done()), (vec![], vec![(1, WcStatus::Success), (2, WcStatus::LocProtErr)]));
}

#[test]
fn an_entry_of_no_length_needs_no_key() {
    let mut host = Host::new();
    host.post(1, SEND, NONE, &[Sge { addr: 1, length: 0, lkey: 0 }, host.sge(0, 2)]);
    assert_eq!(host.sent(), [send(Only, 500, &[0; 2]).ack_req()]);
}

#[test]
fn memory_revoked_in_the_middle_of_a_message_ends_it() {
    let mut host = Host::with(Setup { window: 2, ..Setup::default() });
    host.post_send(1, 4096);
    assert_eq!(host.sent(), [send(First, 500, &[0; 1024]), send(Middle, 501, &[0; 1024]).ack_req()]);
    host.engine.deregister_mr(host.keys.lkey).expect("the region is registered");
    host.recv(ack(501, 0));
    assert_eq!(host.sent(), [], "no half frame");
    assert_eq!((host.done(), host.state()), (vec![(1, WcStatus::LocProtErr)], QpState::Err));
}

/// A send stood still because its memory was gone when it was to be sent again; it turns out to have arrived.
#[test]
fn memory_revoked_before_a_repetition_does_no_harm_when_it_had_arrived() {
    let mut host = Host::new();
    let region = Region::alloc(64);
    let keys = host.engine.register_mr(host.pd, region, 0, Access::empty()).expect("room for a region");
    host.post_send(1, 4);
    host.post(2, SEND, NONE, &[Sge { addr: 0, length: 4, lkey: keys.lkey }]);
    assert_eq!(host.sent().len(), 2);
    host.advance(TIMEOUT);
    host.engine.deregister_mr(keys.lkey).expect("the region is registered");
    assert_eq!(host.sent(), [send(Only, 500, &[0; 4]).ack_req()]);
    host.recv(ack(501, 2));
    assert_eq!((host.sent(), host.done(), host.state()), (vec![], ok([1, 2]), QpState::Rts));
    host.post_send(3, 4);
    assert_eq!(host.sent(), [send(Only, 502, &[0; 4]).ack_req()]);
    host.post_send(4, 4);
    assert_eq!(host.sent(), [send(Only, 503, &[0; 4]).ack_req()]);
}

#[test]
fn c48_what_cannot_be_carried_out_is_refused_when_posted() {
    let mut host = Host::new();
    let long = vec![0; 513];
    let many = vec![host.sge(0, 1); 33];
    let [seven, nine, huge] = [host.sge(0, 7), host.sge(0, 9), host.sge(0, u32::MAX)].map(|sge| [sge]);
    let atomic = SendOp::FetchAdd { remote: FAR, add: 1 };
    let refused = [
        (SEND, Gather::Sges(&many), PostError::TooManySges { found: 33, limit: 32 }),
        (SEND, Gather::Inline(&long), PostError::InlineTooLong { found: 513, limit: 512 }),
        (SEND, Gather::Sges(&huge), PostError::TooLong { found: u32::MAX.into(), limit: 1 << 31 }),
    ];
    for (op, data, error) in refused {
        assert_eq!(
            host.try_post(&SendWr { wr_id: 1, op, flags: NONE, data, to: Recipient::Peer }),
            Err(error)
        );
    }
    for (op, data) in [
        (READ, Gather::Inline(b"x")),
        (atomic, Gather::Inline(&long[..8])),
        (atomic, Gather::Sges(&seven)),
        (atomic, Gather::Sges(&nine)),
        (atomic, Gather::Sges(&[])),
    ] {
        let refused = host.try_post(&SendWr { wr_id: 1, op, flags: NONE, data, to: Recipient::Peer });
        assert!(matches!(refused, Err(PostError::Invalid(_))), "{op:?}");
    }
    assert_eq!(host.try_post_recv(1, &many), Err(PostError::TooManySges { found: 33, limit: 32 }));
    host.sends.ring_doorbell();
    assert_eq!((host.sent(), host.done(), host.state()), (vec![], vec![], QpState::Rts));
}

#[test]
fn a_full_queue_refuses_and_takes_again_what_completes() {
    let mut host = Host::with(Setup { depth: 4, ..Setup::default() });
    let sge = [host.sge(0, 4)];
    let wr = |wr_id| SendWr { wr_id, op: SEND, flags: NONE, data: Gather::Sges(&sge), to: Recipient::Peer };
    for wr_id in 0..4 {
        assert_eq!(host.try_post(&wr(wr_id)), Ok(()));
        host.post_recv(wr_id, 0, 4);
    }
    assert_eq!(host.try_post(&wr(4)), Err(PostError::QueueFull));
    assert_eq!(host.try_post_recv(4, &sge), Err(PostError::QueueFull));
    assert_eq!(host.sent().len(), 4);
    assert_eq!(host.try_post(&wr(4)), Err(PostError::QueueFull), "sent is not completed");
    host.recv(ack(500, 1));
    host.recv(send(Only, 100, b"a").ack_req());
    assert_eq!(host.sent(), [ack(100, 1)]);
    assert_eq!((host.try_post(&wr(4)), host.try_post_recv(4, &sge)), (Ok(()), Ok(())));
    assert_eq!(host.try_post(&wr(5)), Err(PostError::QueueFull));
}
