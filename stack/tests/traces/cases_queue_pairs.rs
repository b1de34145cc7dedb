//! Sections C, E and F of the cases, where no other file has them.

use crate::common::*;
use Position::{First, Only};

const SEND: SendOp = SendOp::Send { immediate: None };

/// The acknowledgements of a request were lost; the peer's answer is there first.
#[test]
fn c46_a_receive_may_complete_before_the_send_that_it_answers() {
    let mut host = Host::new();
    host.post_recv(9, 4096, 64);
    host.post_write(1, 4);
    host.post_send(2, 4);
    let request = host.sent();
    host.recv(send(Only, 100, b"answer").ack_req());
    assert_eq!((host.sent(), host.received(), host.done()), (vec![ack(100, 1)], ok([9]), vec![]));
    host.advance(TIMEOUT);
    assert_eq!(host.sent(), request[..1], "the memory of the sends is still theirs: they are sent again");
    host.recv(ack(501, 2));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1, 2])));
}

/// Entries are copied into the queue when posted, and their lists checked there: whoever posts from another thread
/// changes nothing that the engine has seen.
#[test]
fn c70_s24_s31_entries_posted_from_another_thread_arrive_whole() {
    const COUNT: u64 = 20_000;
    let mut host = Host::with(Setup { sq_sig_all: false, timeout: 0, ..Setup::default() });
    let sge = |wr_id: u64, host: &Host| host.sge(wr_id % 251, (wr_id % 17) as u32);
    let lists: Vec<[Sge; 3]> = (0..251 * 17).map(|wr_id| [sge(wr_id, &host); 3]).collect();
    let (setup, lkey) = (host.setup.clone(), host.keys.lkey);
    host.fill(0, &pattern(1024));
    let init = qp_init(&setup, host.send_cq, host.recv_cq);
    let spare = host.engine.create_qp(host.pd, &init).expect("room");
    let mut sends = std::mem::replace(&mut host.sends, spare.send);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for wr_id in 0..COUNT {
                let mut list = lists[wr_id as usize % lists.len()];
                let count = wr_id as usize % 4;
                loop {
                    let data = Gather::Sges(&list[..count]);
                    let wr = SendWr { wr_id, op: SEND, flags: SendFlags::empty(), data, to: Recipient::Peer };
                    match sends.push(&wr) {
                        Ok(()) => break sends.ring_doorbell(),
                        Err(PostError::QueueFull) => std::thread::yield_now(),
                        Err(error) => panic!("{error}"),
                    }
                }
                // What the application does to its list afterwards is its own affair.
                list.fill(Sge { addr: u64::MAX, length: u32::MAX, lkey: !lkey });
                std::hint::black_box(&list);
            }
        });
        let mut next = 0;
        while next < COUNT {
            for packet in host.sent() {
                let piece = pattern(1024)[next as usize % (251 * 17) % 251..].to_vec();
                let expected = piece[..next as usize % (251 * 17) % 17].repeat(next as usize % 4);
                assert_eq!(packet.payload, expected, "work request {next}");
                host.recv(ack(packet.psn, 0));
                next += 1;
            }
            std::thread::yield_now();
        }
    });
    assert_eq!(host.state(), QpState::Rts);
}

#[test]
fn c70_s24_lists_and_lengths_that_no_queue_was_made_for_are_refused_when_posted() {
    let mut host = Host::new();
    let many = vec![host.sge(0, 1); 33];
    let wr = SendWr {
        wr_id: 1,
        op: SEND,
        flags: SendFlags::empty(),
        data: Gather::Sges(&many),
        to: Recipient::Peer,
    };
    assert_eq!(host.try_post(&wr), Err(PostError::TooManySges { found: 33, limit: 32 }));
    assert_eq!(host.try_post_recv(1, &many), Err(PostError::TooManySges { found: 33, limit: 32 }));
}

/// Frames of the engine come back to it until there are none.
fn loop_back(host: &mut Host) {
    let mut frame = [0; 4096 + MAX_HEADER];
    while let Some(len) = host.engine.transmit(host.now, &mut frame) {
        host.engine.receive(host.now, &frame[..len], &[]);
    }
    host.publish();
}

/// Brings a queue pair to RTS towards another, or itself, at our own address.
fn connect(host: &mut Host, qpn: Qpn, to: Qpn) {
    let setup = Setup { sq_psn: 700, rq_psn: 700, ..host.setup.clone() };
    host.engine.modify_qp(host.now, qpn, &QpAttr::to(QpState::Reset)).expect("allowed");
    for state in [QpState::Init, QpState::Rtr, QpState::Rts] {
        let mut attr = attr_to(state, &setup);
        (attr.path, attr.dest_qpn) = (attr.path.map(|_| path(HOST, HOST)), attr.dest_qpn.map(|_| to));
        host.engine.modify_qp(host.now, qpn, &attr).expect("allowed");
    }
}

/// Two queue pairs of one engine, or one and itself; tells the second.
fn looped(own: bool) -> (Host, Option<NewQp>) {
    let mut host = Host::new();
    let qpn = host.qpn;
    if own {
        connect(&mut host, qpn, qpn);
        return (host, None);
    }
    let other = host.neighbours(1).remove(0);
    connect(&mut host, qpn, other.qpn);
    connect(&mut host, other.qpn, qpn);
    (host, Some(other))
}

#[test]
fn c76_queue_pairs_of_one_engine_reach_each_other_and_themselves() {
    for own in [false, true] {
        let (mut host, mut other) = looped(own);
        let sge = [host.sge(4096, 4000)];
        let queue = other.as_mut().map_or(&mut host.recvs, |qp| &mut qp.recv);
        queue.push(9, &sge).expect("room");
        queue.ring_doorbell();
        host.fill(0, &pattern(4000));
        let (far, near) = (host.at(0), [host.sge(16_384, 3000)]);
        host.post_send(1, 4000);
        host.post(2, SendOp::Read { remote: far }, SendFlags::empty(), &near);
        host.post(
            3,
            SendOp::FetchAdd { remote: host.at(8192), add: 7 },
            SendFlags::empty(),
            &[host.sge(8200, 8)],
        );
        loop_back(&mut host);
        assert_eq!((host.done(), host.received()), (ok([1, 2, 3]), ok([9])), "itself: {own}");
        assert_eq!((host.bytes(4096, 4000), host.bytes(16_384, 3000)), (pattern(4000), pattern(3000)));
        assert_eq!(host.word(8192), 7);
        assert_eq!(host.state(), QpState::Rts);
    }
}

#[test]
fn c76_errors_are_those_of_a_distant_peer() {
    for own in [false, true] {
        let (mut host, other) = looped(own);
        host.post_write(1, 4);
        host.post_write(2, 4);
        loop_back(&mut host);
        assert_eq!((host.state(), host.received()), (QpState::Err, vec![]), "itself: {own}");
        let done = host.done();
        match other {
            Some(other) => {
                assert_eq!(done, [(1, WcStatus::RemAccessErr), (2, WcStatus::WrFlushErr)]);
                assert_eq!(host.state_of(other.qpn), QpState::Err);
            }
            // The refusing half takes the asking half down before its NAK is back.
            None => assert_eq!(done, flushed([1, 2])),
        }
    }
}

/// The depth shrinks and grows while READs are answered, kept and asked for again; timers are due while all of it ends.
#[test]
fn s25_changing_depths_and_timers_in_use_breaks_nothing() {
    let mut host = Host::new();
    for n in 0..4 {
        host.recv(read(100 + 2 * n, host.at(0), 2048));
    }
    host.transmit().expect("the first response");
    host.post_send(1, 4);
    host.modify(&QpAttr::to(QpState::Sqd));
    for depth in [1, 0, 128, 2] {
        host.modify(&QpAttr {
            max_dest_rd_atomic: Some(depth),
            timeout: Some(1),
            ..QpAttr::to(QpState::Sqd)
        });
    }
    assert_eq!(host.sent().len(), 7, "what was owed is still owed");
    for psn in [100, 106] {
        host.recv(read(psn, host.at(0), 2048));
    }
    assert_eq!(host.sent(), [], "at depth 0 everything was forgotten");
    host.modify(&QpAttr::to(QpState::Rts));
    assert_eq!(host.sent().len(), 1);
    host.now = host.now + TIMEOUT;
    host.modify(&QpAttr::to(QpState::Reset));
    host.engine.expire(host.now);
    assert_eq!((host.sent(), host.engine.next_deadline()), (vec![], None));
}

/// A message that is open, a READ that is answered, and a timer that is due, all at the end of the queue pair.
#[test]
fn s25_a_timer_that_is_due_for_a_queue_pair_that_is_gone_finds_nothing() {
    let mut host = Host::new();
    host.post_recv(1, 0, 4096);
    host.recv(send(First, 100, &[1; 1024]));
    host.post_send(2, 4);
    assert_eq!(host.sent().len(), 1);
    host.now = host.now + TIMEOUT;
    host.engine.destroy_qp(host.qpn).expect("it exists");
    let heir = host.neighbours(1).remove(0);
    host.engine.expire(host.now);
    assert_eq!((host.sent(), host.done(), host.received()), (vec![], vec![], vec![]));
    assert_eq!(host.state_of(heir.qpn), QpState::Rts);
    assert_eq!(host.count(Counter::LocalAckTimeoutErr), 0);
}
