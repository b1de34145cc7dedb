//! Multicast groups: each member gets a copy, nobody else does.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::common::*;
use Position::Only;
use uroce_stack::{Error, Limits};

const OTHER_GROUP: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 1, 2, 4));
const GROUP_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xFF05, 0, 0, 0, 0, 0, 0, 0x77));

fn host() -> Host {
    Host::with(Setup::of(QpType::Ud))
}

/// A datagram of the peer to a group.
fn to_group(payload: &[u8]) -> Pkt {
    datagram(0, payload).to(GROUP).number(Qpn::MULTICAST)
}

/// The first queue pair and `count` neighbours, all in the group, each with a receive that has the place of its number.
fn members(host: &mut Host, count: u32) -> Vec<NewQp> {
    let mut others = host.neighbours(count);
    host.post_recv(0, 0, 256);
    for (index, qp) in others.iter_mut().enumerate() {
        let number = index as u64 + 1;
        post_receive(host, qp, number);
        host.engine.attach_multicast(qp.qpn, GROUP).expect("room for a member");
    }
    host.engine.attach_multicast(host.qpn, GROUP).expect("room for a member");
    others
}

fn post_receive(host: &Host, qp: &mut NewQp, number: u64) {
    qp.recv.push(number, &[host.sge(number * 256, 256)]).expect("the receive is accepted");
    qp.recv.ring_doorbell();
}

/// The numbers of the receives that completed, in ascending order.
fn takers(host: &mut Host) -> Vec<u64> {
    assert_eq!(host.sent(), []);
    let mut numbers: Vec<u64> = host.received().iter().map(|(wr_id, _)| *wr_id).collect();
    numbers.sort_unstable();
    numbers
}

#[test]
fn each_member_gets_a_copy() {
    let mut host = host();
    let _others = members(&mut host, 2);
    let mut stranger = host.neighbours(1).remove(0);
    post_receive(&host, &mut stranger, 7);
    host.recv(to_group(b"to all"));
    assert_eq!(takers(&mut host), [0, 1, 2]);
    for number in 0..3 {
        assert_eq!(host.bytes(number * 256 + 40, 6), b"to all");
        assert_eq!(host.bytes(number * 256 + 36, 4), [239, 1, 2, 3], "the header tells the group");
    }
    assert_eq!((host.count(Counter::MulticastDelivered), host.count(Counter::RcvdPkts)), (3, 3));
}

#[test]
fn a_group_may_be_of_ipv6() {
    let mut host = host();
    host.post_recv(1, 0, 256);
    host.engine.attach_multicast(host.qpn, GROUP_V6).expect("room for a member");
    host.recv(datagram(0, b"six").from(PEER_V6).to(GROUP_V6).number(Qpn::MULTICAST));
    host.recv(to_group(b"four"));
    assert_eq!((takers(&mut host), host.bytes(40, 3)), (vec![1], b"six".to_vec()));
    assert_eq!(host.count(Counter::NoGroup), 1);
}

#[test]
fn who_joins_twice_is_a_member_once() {
    let mut host = host();
    let _others = members(&mut host, 1);
    host.engine.attach_multicast(host.qpn, GROUP).expect("nothing changes");
    host.post_recv(9, 2304, 256);
    host.recv(to_group(b"a"));
    assert_eq!(takers(&mut host), [0, 1]);
    host.engine.detach_multicast(host.qpn, GROUP).expect("it is a member");
    host.recv(to_group(b"a"));
    assert_eq!(
        (takers(&mut host), host.count(Counter::NoReceive)),
        (vec![], 1),
        "the other has no receive left"
    );
}

#[test]
fn who_has_left_gets_nothing() {
    let mut host = host();
    let _others = members(&mut host, 0);
    host.engine.detach_multicast(host.qpn, GROUP).expect("it is a member");
    host.recv(to_group(b"a"));
    assert_eq!((takers(&mut host), host.count(Counter::NoGroup)), (vec![], 1));
    let again = host.engine.detach_multicast(host.qpn, GROUP);
    assert_eq!(again, Err(Error::NotFound("member of the multicast group")));
    let never = host.engine.detach_multicast(host.qpn, OTHER_GROUP);
    assert_eq!(never, Err(Error::NotFound("member of the multicast group")));
}

#[test]
fn only_datagram_queue_pairs_join_only_groups() {
    let mut host = host();
    for address in [HOST, PEER_V6, IpAddr::V4(Ipv4Addr::BROADCAST)] {
        assert!(
            matches!(host.engine.attach_multicast(host.qpn, address), Err(Error::Invalid(_))),
            "{address}"
        );
    }
    let unknown = Qpn::new(host.qpn.get() ^ 1);
    assert_eq!(host.engine.attach_multicast(unknown, GROUP), Err(Error::NotFound("queue pair")));
    let mut connection = Host::new();
    let refused = connection.engine.attach_multicast(connection.qpn, GROUP);
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
}

#[test]
fn s08_groups_and_members_are_bounded() {
    let limits = Limits { max_mcast_grp: 2, max_mcast_qp_attach: 2, ..Limits::default() };
    let mut engine = Engine::new(Config { limits, ..Config::new([3; 32], Mtu::B1024) }).expect("valid");
    let pd = engine.alloc_pd().expect("room for a protection domain");
    let (cq, _reader) = engine.create_cq(1).expect("room for a completion queue");
    let init = qp_init(&Setup::of(QpType::Ud), cq, cq);
    let [a, b, c] = [(); 3].map(|()| engine.create_qp(pd, &init).expect("room for a queue pair").qpn);
    let mut attach = |qpn, group| engine.attach_multicast(qpn, group);
    assert_eq!((attach(a, GROUP), attach(b, GROUP), attach(a, OTHER_GROUP)), (Ok(()), Ok(()), Ok(())));
    assert_eq!(attach(c, GROUP), Err(Error::Exhausted { what: "place in the multicast group", limit: 2 }));
    assert_eq!(attach(a, GROUP_V6), Err(Error::Exhausted { what: "multicast group", limit: 2 }));
    assert_eq!(attach(a, GROUP), Ok(()), "a member already");
    engine.detach_multicast(a, OTHER_GROUP).expect("it is a member");
    assert_eq!(engine.attach_multicast(a, GROUP_V6), Ok(()), "a group without members is gone");
}

#[test]
fn a_sender_gets_its_own_copy_and_so_do_its_neighbours() {
    let mut host = host();
    let _others = members(&mut host, 1);
    host.post_datagram_to(5, 4, GROUP, Qpn::MULTICAST, QKEY);
    let sent = host.sent();
    let expected = send(Only, 500, &[0; 4]).ud(QKEY, host.qpn).from(HOST).to(GROUP).number(Qpn::MULTICAST);
    assert_eq!((sent, host.done()), (vec![expected], ok([5])));
    let completions = host.recv_completions();
    assert_eq!(completions.len(), 2);
    assert!(completions.iter().all(|completion| completion.src_qp == host.qpn && completion.byte_len == 44));
}

#[test]
fn a_sender_that_blocks_its_own_copy_gets_none() {
    let mut host = Host::with(Setup { block_multicast_loopback: true, ..Setup::of(QpType::Ud) });
    let mut others = members(&mut host, 1);
    host.post_datagram_to(5, 4, GROUP, Qpn::MULTICAST, QKEY);
    assert_eq!(host.sent().len(), 1);
    assert_eq!(host.received(), ok([1]), "the neighbour's");
    post_receive(&host, &mut others[0], 3);
    host.recv(to_group(b"a"));
    assert_eq!(takers(&mut host), [0, 3], "what others send comes");
}

#[test]
fn a_sender_that_is_no_member_gets_none_and_its_members_do() {
    let mut host = host();
    let others = members(&mut host, 1);
    host.engine.detach_multicast(host.qpn, GROUP).expect("it is a member");
    host.post_datagram_to(5, 4, GROUP, Qpn::MULTICAST, QKEY);
    assert_eq!((host.sent().len(), host.received()), (1, ok([1])));
    host.engine.detach_multicast(others[0].qpn, GROUP).expect("it is a member");
    host.post_datagram_to(6, 4, GROUP, Qpn::MULTICAST, QKEY);
    assert_eq!((host.sent().len(), host.received(), host.done()), (1, vec![], ok([5, 6])));
    assert_eq!(host.count(Counter::NoGroup), 0, "what leaves is not counted as dropped");
}

#[test]
fn a_copy_needs_the_qkey_of_its_member() {
    let mut host = host();
    let others = members(&mut host, 1);
    let other_key = QpAttr { qkey: Some(5), ..QpAttr::default() };
    host.engine.modify_qp(host.now, others[0].qpn, &other_key).expect("a Q_Key may change");
    host.recv(to_group(b"a"));
    assert_eq!((takers(&mut host), host.count(Counter::BadQkey)), (vec![0], 1));
    host.recv(to_group(b"a").ud(5, PEER_QPN));
    assert_eq!((takers(&mut host), host.count(Counter::BadQkey)), (vec![1], 2));
}

#[test]
fn a_group_that_nobody_joined_is_counted() {
    let mut host = host();
    let _others = members(&mut host, 0);
    host.recv(to_group(b"a").to(OTHER_GROUP));
    assert_eq!((takers(&mut host), host.count(Counter::NoGroup)), (vec![], 1));
}

#[test]
fn the_number_of_multicast_at_an_ordinary_address_reaches_nobody() {
    let mut host = host();
    let _others = members(&mut host, 0);
    host.recv(to_group(b"a").to(HOST));
    assert_eq!((takers(&mut host), host.count(Counter::NoGroup)), (vec![], 1));
}

#[test]
fn an_ordinary_number_at_the_address_of_a_group_reaches_nobody() {
    let mut host = host();
    let _others = members(&mut host, 0);
    host.recv(datagram(0, b"a").to(GROUP));
    assert_eq!((takers(&mut host), host.count(Counter::WrongDestination)), (vec![], 1));
}

#[test]
fn a_destroyed_member_is_none() {
    let mut host = host();
    let mut others = members(&mut host, 2);
    host.engine.destroy_qp(others.remove(0).qpn).expect("it exists");
    let mut successor = host.neighbours(1).remove(0);
    post_receive(&host, &mut successor, 5);
    host.recv(to_group(b"a"));
    assert_eq!(takers(&mut host), [0, 2], "who got its place is no member");
    for qpn in [host.qpn, others[0].qpn] {
        host.engine.destroy_qp(qpn).expect("it exists");
    }
    host.recv(to_group(b"a"));
    assert_eq!((takers(&mut host), host.count(Counter::NoGroup)), (vec![], 1));
}

#[test]
fn a_member_that_cannot_take_its_copy_hinders_no_other() {
    let mut host = host();
    let others = members(&mut host, 3);
    host.engine.modify_qp(host.now, others[0].qpn, &QpAttr::to(QpState::Err)).expect("allowed");
    assert_eq!((host.sent(), host.received()), (vec![], flushed([1])));
    host.recv(to_group(b"a"));
    assert_eq!((takers(&mut host), host.count(Counter::WrongState)), (vec![0, 2, 3], 1));
    host.recv(to_group(b"a"));
    assert_eq!((takers(&mut host), host.count(Counter::NoReceive)), (vec![], 3));
}
