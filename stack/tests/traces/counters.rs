//! What is counted for a queue pair, and what for the engine.

use crate::common::*;
use Position::{First, Only};

/// What no queue pair is to blame for.
const ENGINE_ALONE: &[Counter] = &[Counter::UnknownQp, Counter::IcrcErrors, Counter::CqOverrun];

/// Everything that was counted, but for what concerns the engine alone.
fn assert_same(host: &Host) {
    let of_queue_pair = host.engine.qp_counters(host.qpn).expect("the queue pair exists");
    for counter in Counter::ALL.iter().filter(|counter| !ENGINE_ALONE.contains(counter)) {
        assert_eq!(of_queue_pair.get(*counter), host.count(*counter), "{}", counter.name());
    }
    assert!(ENGINE_ALONE.iter().all(|counter| of_queue_pair.get(*counter) == 0));
}

/// One of each kind, losses and repetitions included.
fn requests(host: &Host) -> Vec<Pkt> {
    vec![
        send(Only, 100, b"a").ack_req(),
        write(Only, 101, host.at(0), 4, b"data").ack_req(),
        read(102, host.at(0), 2048),
        fetch_add(104, host.at(0), 1),
        atomic_write(105, host.at(0), &[1; 8]),
        flush(106, host.at(0), 8),
        send(Only, 107, b"no receive"),
        send(Only, 109, b"gap"),
        fetch_add(104, host.at(0), 1),
        fetch_add(99, host.at(0), 1),
        write(Only, 101, host.at(0), 4, b"data"),
        send(Only, 107, b"a").from(STRANGER),
        send(Only, 107, b"a").pkey(1),
        ack(400, 0),
    ]
}

fn traffic(host: &mut Host) {
    host.post_recv(1, 4096, 64);
    for packet in requests(host) {
        host.recv(packet);
        host.sent();
    }
    host.post_send(1, 4);
    host.post_read(2, 4);
    assert_eq!(host.sent().len(), 2);
    host.advance(TIMEOUT);
    host.recv_all([rnr(500, 1, 0), nak(500, NakCode::SequenceError, 0), ack(501, 2)]);
    host.advance(TIMEOUT);
    host.sent();
    host.recv(read_response(First, 501, 2, &[0; 1024]));
    host.sent();
}

#[test]
fn those_of_the_only_queue_pair_are_those_of_the_engine() {
    let mut host = Host::open();
    assert_same(&host);
    traffic(&mut host);
    host.recv(Pkt { dest_qp: Some(Qpn::new(7)), ..send(Only, 1, b"a") });
    let mut damaged = send(Only, 107, b"a").frame(host.qpn);
    damaged[50] ^= 1;
    host.engine.receive(host.now, &damaged, &[]);
    assert_same(&host);
    let counted = Counter::ALL.iter().filter(|counter| host.count(**counter) != 0).count();
    assert!(counted >= 24, "{counted} kinds of events are compared");
}

#[test]
fn those_of_several_queue_pairs_add_up() {
    let mut host = Host::open();
    let mut neighbour = host.neighbours(1).remove(0);
    traffic(&mut host);
    neighbour.recv.push(1, &[host.sge(0, 64)]).expect("room");
    neighbour.recv.ring_doorbell();
    for packet in requests(&host) {
        host.recv(packet.at(&neighbour));
        while host.engine.transmit(host.now, &mut [0; 4096 + MAX_HEADER]).is_some() {}
    }
    let of = |qpn| host.engine.qp_counters(qpn).expect("it exists");
    for counter in Counter::ALL {
        let sum = of(host.qpn).get(*counter) + of(neighbour.qpn).get(*counter);
        assert_eq!(sum, host.count(*counter), "{}", counter.name());
    }
    assert_eq!(of(neighbour.qpn).get(Counter::RxReadRequests), 1);
}

#[test]
fn a_new_queue_pair_starts_at_0_wherever_it_lies() {
    let mut host = Host::open();
    traffic(&mut host);
    host.engine.destroy_qp(host.qpn).expect("it exists");
    assert!(host.engine.qp_counters(host.qpn).is_err(), "with the queue pair its counters go");
    let sent = host.count(Counter::SentPkts);
    assert_ne!(sent, 0, "those of the engine stay");
    let heir = host.neighbours(1).remove(0);
    let counters = host.engine.qp_counters(heir.qpn).expect("it exists");
    assert!(counters.iter().all(|(_, value)| value == 0));
}

#[test]
fn they_outlive_a_reset_and_an_error() {
    let mut host = Host::open();
    traffic(&mut host);
    host.modify(&QpAttr::to(QpState::Reset));
    assert_same(&host);
    host.modify(&QpAttr::to(QpState::Err));
    assert_same(&host);
    assert_ne!(host.count(Counter::RxReadRequests), 0);
}

#[test]
fn a_full_completion_queue_is_counted_once_for_the_engine() {
    let mut host = Host::with(Setup { cqe: 1, ..Setup::default() });
    for wr_id in 0..2 {
        host.post_send(wr_id, 4);
    }
    assert_eq!(host.sent().len(), 2);
    host.recv(ack(501, 2));
    assert_same(&host);
    assert_eq!(host.count(Counter::CqOverrun), 1);
}
