//! Many queue pairs on one engine: each its turn, none disturbed by another.

use crate::common::*;
use Position::Only;

const SEND: SendOp = SendOp::Send { immediate: None };

#[test]
fn queue_pairs_take_turns_of_16_packets() {
    let mut host = Host::with(Setup { mtu: Mtu::B256, ..Setup::default() });
    let mut others = host.neighbours(2);
    assert_eq!(host.sent(), []);
    host.post_send(0, 40 * 256);
    for (index, other) in others.iter_mut().enumerate() {
        post_to(other, index as u64 + 1, SEND, &[host.sge(0, 40 * 256)]);
    }
    let psns: Vec<u32> = host.sent().iter().map(|packet| packet.psn - 500).collect();
    let turn = |from: u32, to: u32| std::iter::repeat_n(from..to, 3).flatten();
    assert_eq!(psns, turn(0, 16).chain(turn(16, 32)).chain(turn(32, 40)).collect::<Vec<_>>());
}

#[test]
fn requests_and_responses_of_a_queue_pair_take_turns() {
    let mut host = Host::with(Setup { mtu: Mtu::B256, ..Setup::default() });
    host.post_send(1, 8 * 256);
    host.recv(read(100, host.at(0), 8 * 256));
    let kinds: Vec<bool> = host.sent().iter().map(|packet| packet.psn < 500).collect();
    assert_eq!(kinds.len(), 16);
    assert!(kinds.windows(2).all(|pair| pair[0] != pair[1]), "{kinds:?}");
}

#[test]
fn the_end_of_one_connection_leaves_the_others_alone() {
    let mut host = Host::new();
    let mut others = host.neighbours(1);
    let mut other = others.remove(0);
    host.post_send(1, 4);
    post_to(&mut other, 2, SEND, &[host.sge(0, 4)]);
    assert_eq!(host.sent().len(), 2);
    host.recv(nak(500, NakCode::InvalidRequest, 0));
    host.recv(write(Only, 100, FAR, 1, b"a"));
    assert_eq!((host.sent(), host.state()), (vec![], QpState::Err));
    assert_eq!(host.done(), [(1, WcStatus::RemInvReqErr)]);
    host.recv(ack(500, 1).at(&other));
    host.recv(write(Only, 100, host.at(0), 1, b"a").ack_req().at(&other));
    assert_eq!((host.sent(), host.done()), (vec![ack(100, 1).to_neighbour(1)], ok([2])));
}

#[test]
fn a_stopped_queue_pair_does_not_stop_the_others() {
    let mut host = Host::new();
    let mut others = host.neighbours(1);
    host.post_send(1, 4);
    assert_eq!(host.sent().len(), 1);
    host.recv(rnr(500, 0, 0));
    for wr_id in 2..50 {
        host.post_send(wr_id, 4);
        post_to(&mut others[0], wr_id, SEND, &[host.sge(0, 4)]);
        assert_eq!(host.sent().len(), 1);
    }
}

#[test]
fn an_old_half_of_a_destroyed_queue_pair_does_not_reach_its_successor() {
    let mut host = Host::new();
    host.engine.destroy_qp(host.qpn).expect("it exists");
    let others = host.neighbours(1);
    assert_ne!(others[0].qpn, host.qpn);
    host.sends.ring_doorbell();
    host.recvs.ring_doorbell();
    assert_eq!((host.sent(), host.done(), host.received()), (vec![], vec![], vec![]));
    host.recv(send(Only, 100, b"a").ack_req());
    assert_eq!((host.sent(), host.count(Counter::UnknownQp)), (vec![], 1));
}

#[test]
fn numbers_run_out_where_the_configuration_says() {
    let config = Config { qpns: 100..104, ..Config::new([1; 32], Mtu::B1024) };
    let mut engine = Engine::new(config).expect("the configuration is valid");
    let pd = engine.alloc_pd().expect("room");
    let (cq, _reader) = engine.create_cq(1).expect("room");
    let init = qp_init(&Setup::default(), cq, cq);
    let mut numbers: Vec<u32> =
        (0..4).map(|_| engine.create_qp(pd, &init).expect("room").qpn.get()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [100, 101, 102, 103]);
    assert!(engine.create_qp(pd, &init).is_err());
    engine.destroy_qp(Qpn::new(102)).expect("it exists");
    assert_eq!(engine.create_qp(pd, &init).expect("room").qpn, Qpn::new(102));
}
