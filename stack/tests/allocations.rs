//! Nothing is allocated once a connection stands: not by traffic, not by losses, not by rubbish.

mod allocator;
#[path = "traces/common/mod.rs"]
mod common;

use std::time::Duration;

use Position::{First, Last, Only};
use allocator::allocations;
use common::*;

/// The driver's loop over prepared frames: nothing of the test's own is allocated in it.
struct Loop {
    host: Host,
    frame: Box<[u8]>,
    sent: u64,
    completed: u64,
}

impl Loop {
    fn new(setup: Setup) -> Self {
        let host = Host::with(setup);
        Self { host, frame: vec![0; 4096 + MAX_HEADER].into(), sent: 0, completed: 0 }
    }

    fn frames(&self, packets: impl IntoIterator<Item = Pkt>) -> Vec<Vec<u8>> {
        packets.into_iter().map(|packet| packet.frame(self.host.qpn)).collect()
    }

    fn receive(&mut self, frame: &[u8]) {
        self.host.engine.receive(self.host.now, frame, &[]);
    }

    fn round(&mut self) {
        while self.host.engine.transmit(self.host.now, &mut self.frame).is_some() {
            self.sent += 1;
        }
        self.host.engine.publish(&mut |_| {});
        let mut completions = [Completion::default(); 16];
        for reader in [&mut self.host.send_reader, &mut self.host.recv_reader] {
            while let count @ 1.. = reader.poll(&mut completions) {
                self.completed += count as u64;
            }
        }
    }
}

fn large() -> Setup {
    Setup { timeout: 1, retry_cnt: 7, rnr_retry: 7, ..Setup::default() }
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
}

#[test]
fn answering_requests_allocates_nothing() {
    let mut run = Loop::new(large());
    let (va, data) = (run.host.at(0), pattern(1024));
    let one_turn = |psn| {
        [
            send(First, psn, &data),
            send(Last, psn + 1, b"end").imm(1).ack_req().solicited(),
            write(Only, psn + 2, va, 1024, &data),
            read(psn + 3, va, 2048).ack_req(),
            fetch_add(psn + 5, va, 1).ack_req(),
            write(Only, psn + 6, va, 4, b"done").imm(1).ack_req(),
        ]
    };
    let frames = run.frames((0..500).flat_map(|turn| one_turn(100 + 7 * turn)));
    let sge = [run.host.sge(8192, 4096)];
    let counted = allocations(|| {
        for turn in frames.chunks(6) {
            for wr_id in 0..2 {
                run.host.try_post_recv(wr_id, &sge).expect("room");
            }
            turn.iter().for_each(|frame| run.receive(frame));
            run.round();
        }
    });
    assert_eq!((counted, run.completed), (0, 1000));
}

#[test]
fn sending_requests_allocates_nothing() {
    let mut run = Loop::new(large());
    let answers = |psn| [ack(psn, 0), read_response(Only, psn + 1, 0, &[0; 64]), atomic_ack(psn + 2, 0, 1)];
    let frames = run.frames((0..500).flat_map(|turn| answers(500 + 3 * turn)));
    let counted = allocations(|| {
        for turn in frames.chunks(3) {
            run.host.post_send(1, 512);
            run.host.post_read(2, 64);
            run.host.post_fetch_add(3, 0);
            run.round();
            turn.iter().for_each(|frame| run.receive(frame));
            run.round();
        }
    });
    assert_eq!((counted, run.sent, run.completed), (0, 1500, 1500));
}

#[test]
fn losses_and_waits_allocate_nothing() {
    let mut run = Loop::new(large());
    let answers = |psn| [nak(psn, NakCode::SequenceError, 0), rnr(psn, 1, 0), ack(psn, 0)];
    let frames = run.frames((0..500).flat_map(|turn| answers(500 + turn)));
    let counted = allocations(|| {
        for turn in frames.chunks(3) {
            run.host.post_send(1, 512);
            run.round();
            run.host.advance(Duration::from_nanos(8192));
            run.round();
            run.receive(&turn[0]);
            run.round();
            run.receive(&turn[1]);
            run.host.advance(Duration::from_micros(10));
            run.round();
            run.receive(&turn[2]);
            run.round();
        }
    });
    assert_eq!((counted, run.sent, run.completed), (0, 2000, 500));
}

#[test]
fn gaps_duplicates_and_missing_receives_allocate_nothing() {
    let mut run = Loop::new(large());
    let va = run.host.at(0);
    let one_turn = |psn| {
        [
            write(Only, psn, va, 1, b"a"),
            write(Only, psn + 9, va, 1, b"gap"),
            write(Only, psn, va, 1, b"a").ack_req(),
            read(psn + 1, va, 4),
            read(psn + 1, va, 4),
            fetch_add(psn + 2, va, 1),
            fetch_add(psn + 2, va, 1),
            send(Only, psn + 3, b"none"),
        ]
    };
    let frames = run.frames((0..500).flat_map(|turn| one_turn(100 + 3 * turn)));
    let counted = allocations(|| {
        for (index, turn) in frames.chunks(8).enumerate() {
            for frame in turn {
                run.receive(frame);
                if index % 2 == 0 {
                    run.round();
                }
            }
            run.round();
        }
    });
    assert_eq!((counted, run.host.state()), (0, QpState::Rts));
}

/// While the responses to a long READ leave one by one, acknowledgements and refusals pile up behind them.
#[test]
fn s08_a_peer_cannot_make_what_is_owed_to_it_grow() {
    let mut run = Loop::new(Setup { mtu: Mtu::B256, ..large() });
    let va = run.host.at(0);
    let requests = |psn| [write(Only, psn, va, 1, b"a").ack_req(), write(Only, psn + 9, va, 1, b"b")];
    let frames = run.frames((0..2000).flat_map(|turn| requests(100 + 256 + turn)));
    let [first] = &run.frames([read(100, va, AREA as u32)])[..] else { panic!("one frame") };
    let counted = allocations(|| {
        run.receive(first);
        frames.iter().for_each(|frame| run.receive(frame));
    });
    assert_eq!(counted, 0);
    run.round();
    assert!((256..344).contains(&run.sent), "{}", run.sent);
    assert_eq!(run.host.state(), QpState::Rts);
}

#[test]
fn the_end_of_a_connection_allocates_for_its_event_at_most() {
    let mut run = Loop::new(large());
    let frames = run.frames([write(Only, 100, FAR, 1, b"a"), send(Only, 101, b"late")]);
    for wr_id in 0..64 {
        run.host.post_recv(wr_id, 0, 4);
    }
    let counted = allocations(|| {
        frames.iter().for_each(|frame| run.receive(frame));
        run.round();
    });
    assert!(counted <= 1, "{counted}");
    assert_eq!((run.completed, run.host.state()), (64, QpState::Err));
}

#[test]
fn rubbish_allocates_nothing() {
    let mut run = Loop::new(large());
    let good = send(Only, 100, b"hello").frame(run.host.qpn);
    let foreign = run.frames([
        send(Only, 100, b"a").from(STRANGER),
        send(Only, 100, b"a").pkey(1),
        ack(500, 0),
        read_response(Only, 500, 0, b"a"),
        Pkt { dest_qp: Some(Qpn::new(5)), ..send(Only, 100, b"a") },
    ]);
    let mut damaged = good.clone();
    let counted = allocations(|| {
        for bit in 0..good.len() * 8 {
            damaged.copy_from_slice(&good);
            damaged[bit / 8] ^= 1 << (bit % 8);
            run.receive(&damaged);
            run.host.engine.receive(run.host.now, &good[..bit / 8], &good[bit / 8..bit / 8]);
        }
        foreign.iter().for_each(|frame| run.receive(frame));
        run.round();
    });
    assert_eq!((counted, run.host.state()), (0, QpState::Rts));
}

/// Whole messages, and one that loses a packet and gives its receive back.
#[test]
fn unreliable_connections_allocate_nothing() {
    let mut run = Loop::new(Setup::of(QpType::Uc));
    let (va, data) = (run.host.at(0), pattern(1024));
    let one_turn = |psn| {
        [
            send(First, psn, &data).uc(),
            send(Last, psn + 1, b"end").imm(1).uc().solicited(),
            write(Only, psn + 2, va, 1024, &data).uc(),
            send(First, psn + 3, &data).uc(),
            send(Last, psn + 5, b"the middle is lost").uc(),
            write(Only, psn + 6, va, 4, b"done").imm(1).uc(),
        ]
    };
    let frames = run.frames((0..500).flat_map(|turn| one_turn(100 + 7 * turn)));
    let sge = [run.host.sge(8192, 4096)];
    let counted = allocations(|| {
        for turn in frames.chunks(6) {
            for wr_id in 0..2 {
                run.host.try_post_recv(wr_id, &sge).expect("room");
            }
            turn.iter().for_each(|frame| run.receive(frame));
            run.host.post_send(9, 3000);
            run.round();
        }
    });
    assert_eq!((counted, run.sent, run.completed), (0, 1500, 1500));
}

#[test]
fn datagrams_allocate_nothing_once_each_place_of_the_queue_was_used() {
    let mut run = Loop::new(Setup::of(QpType::Ud));
    let frames = run.frames([datagram(1, b"hello"), datagram(2, &pattern(2000))]);
    let sge = [run.host.sge(8192, 200)];
    let mut turns = |count| {
        for _ in 0..count {
            run.host.try_post_recv(1, &sge).expect("room");
            frames.iter().for_each(|frame| run.receive(frame));
            run.host.post_datagram(2, 64);
            run.round();
        }
    };
    turns(64);
    assert_eq!(allocations(|| turns(500)), 0);
    assert_eq!((run.sent, run.completed), (564, 2 * 564));
}

#[test]
fn shared_receive_queues_allocate_nothing() {
    let mut run = Loop::new(Setup { srq: Some(64), ..large() });
    let frames = run.frames((0..500).flat_map(|turn| {
        let psn = 100 + 2 * turn;
        [send(First, psn, &[0; 1024]), send(Last, psn + 1, b"end").ack_req(), send(Only, psn + 2, b"none")]
    }));
    let counted = allocations(|| {
        for turn in frames.chunks(3) {
            run.host.post_shared(1, 8192, 4096);
            turn.iter().for_each(|frame| run.receive(frame));
            run.round();
        }
    });
    assert_eq!((counted, run.completed, run.host.state()), (0, 500, QpState::Rts));
}

#[test]
fn atomic_writes_and_flushes_allocate_nothing() {
    let mut run = Loop { host: Host::open(), ..Loop::new(large()) };
    let va = run.host.at(0);
    let one_turn = |turn: u32| {
        let asked = || [atomic_write(100 + 2 * turn, va, &[1; 8]), flush(101 + 2 * turn, va, 64)];
        let answers = [500, 501].map(|psn| written(psn + 2 * turn, 0));
        asked().into_iter().chain(asked()).chain(answers)
    };
    let frames = run.frames((0..500).flat_map(one_turn));
    let op = SendOp::AtomicWrite { remote: FAR };
    let sge = [run.host.sge(64, 8)];
    let counted = allocations(|| {
        for turn in frames.chunks(6) {
            turn[..4].iter().for_each(|frame| run.receive(frame));
            run.host.post(1, op, SendFlags::empty(), &sge);
            run.host.post_bare(2, FLUSH);
            run.round();
            turn[4..].iter().for_each(|frame| run.receive(frame));
            run.round();
        }
    });
    assert_eq!((counted, run.sent, run.completed), (0, 2 * 500 + 2 * 500, 1000));
}

const FLUSH: SendOp = SendOp::Flush {
    remote: FAR,
    length: 64,
    placement: uroce_stack::FlushPlacement::Global,
    scope: uroce_stack::FlushScope::Range,
};

/// A window is bound, written through and invalidated by the peer; a region registered and invalidated by ourselves.
#[test]
fn windows_and_fast_registration_allocate_nothing() {
    let mut run = Loop { host: Host::open(), ..Loop::new(large()) };
    let (mw, (_, mr)) = (run.host.window(uroce_stack::MwType::Type2), run.host.allocated(4096));
    let tags = |key: u32, turn: u32| {
        if turn.is_multiple_of(2) { (key, retagged(key)) } else { (retagged(key), key) }
    };
    let frames = run.frames((0..500).flat_map(|turn| {
        let (psn, rkey) = (100 + 2 * turn, tags(mw, turn).1);
        let through = write(Only, psn, RemoteAddr { va: VA, rkey }, 8, b"through.");
        [through, send_invalidate(Only, psn + 1, rkey, b"over").ack_req()]
    }));
    let sge = [run.host.sge(8192, 64)];
    let counted = allocations(|| {
        for (turn, frames) in (0..).zip(frames.chunks(2)) {
            run.host.try_post_recv(1, &sge).expect("room");
            let bind = run.host.bind(tags(mw, turn).0, 0, 8);
            run.host.post_bare(2, SendOp::BindMw(bind));
            let (from, to) = tags(mr, turn);
            run.host.post_bare(3, SendOp::RegisterMr(register(from, 4096)));
            run.host.post_bare(4, SendOp::LocalInvalidate { rkey: to });
            run.round();
            frames.iter().for_each(|frame| run.receive(frame));
            run.round();
        }
    });
    assert_eq!((counted, run.completed, run.host.state()), (0, 4 * 500, QpState::Rts));
}

#[test]
fn moderated_notifications_allocate_nothing() {
    let mut run = Loop::new(Setup { timeout: 0, ..large() });
    let cq = run.host.send_cq;
    run.host.engine.modify_cq(cq, 4, Duration::from_micros(50)).expect("the queue exists");
    let frames = run.frames((0..1000).map(|turn| ack(500 + turn, 0)));
    let counted = allocations(|| {
        for frame in &frames {
            run.host.send_reader.arm(false);
            run.host.post_send(1, 4);
            run.round();
            run.receive(frame);
            run.host.advance(Duration::from_micros(20));
            run.round();
        }
    });
    assert_eq!((counted, run.completed), (0, 1000));
}
