//! Receiving datagrams (protocol sections 4.11 and 5.4; C25, C71).

use crate::common::*;
use Position::{First, Only};

fn host() -> Host {
    Host::with(Setup::of(QpType::Ud))
}

fn check_alive(host: &mut Host, wr_id: u64) {
    host.recv(datagram(7, b"alive"));
    assert_eq!((host.sent(), host.received()), (vec![], ok([wr_id])));
    assert_eq!((host.state(), host.events()), (QpState::Rts, vec![]));
}

fn one(host: &mut Host) -> Completion {
    assert_eq!(host.sent(), []);
    let [completion] = host.recv_completions()[..] else { panic!("one completion") };
    completion
}

#[test]
fn c71_behind_20_bytes_of_nothing_stands_the_ipv4_header() {
    let mut host = host();
    host.post_recv(1, 0, 140);
    host.fill(0, &[0xFF; 256]);
    let packet = datagram(100, &pattern(100));
    let frame = packet.frame(host.qpn);
    host.recv(packet);
    let received = one(&mut host);
    assert_eq!((received.wr_id, received.status, received.opcode), (1, WcStatus::Success, WcOpcode::Recv));
    assert_eq!((received.byte_len, received.flags, received.immediate), (140, WcFlags::GRH, None));
    assert_eq!((received.qp_num, received.src_qp), (host.qpn, PEER_QPN));
    assert_eq!(received.source_mac, Some(MacAddr([2, 0, 0, 0, 0, 2])));
    assert_eq!((host.bytes(0, 20), host.bytes(20, 20)), (vec![0; 20], frame[14..34].to_vec()));
    assert_eq!((host.bytes(40, 100), host.bytes(140, 1)), (pattern(100), vec![0xFF]));
    assert!(tells_ipv4(&host.bytes(0, 40)), "section 4.11: how a consumer tells IPv4 from IPv6");
}

#[test]
fn c71_an_ipv6_header_fills_the_40_bytes() {
    let mut host = host();
    host.post_recv(1, 0, 4096);
    let packet = datagram(100, &pattern(99)).from(PEER_V6).to(HOST_V6);
    let frame = packet.frame(host.qpn);
    host.recv(packet);
    let received = one(&mut host);
    assert_eq!((received.byte_len, received.flags), (139, WcFlags::GRH));
    assert_eq!((host.bytes(0, 40), host.bytes(40, 99)), (frame[14..54].to_vec(), pattern(99)));
    assert!(!tells_ipv4(&host.bytes(0, 40)));
}

/// Whether bytes 20 to 39 are an IPv4 header, by version, length and checksum.
fn tells_ipv4(area: &[u8]) -> bool {
    let words = area[20..].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    area[20] == 0x45 && (sum >> 16) + (sum & 0xFFFF) == 0xFFFF
}

#[test]
fn datagrams_of_every_length_arrive_with_and_without_immediate() {
    let mut host = host();
    for (len, immediate) in
        (0..9).chain([1023, 1024, 1025, 4095, 4096]).flat_map(|len| [(len, None), (len, Some(5))])
    {
        host.post_recv(len as u64, 0, 40 + len as u32);
        let mut packet = datagram(0, &pattern(len));
        if let Some(value) = immediate {
            packet = packet.imm(value);
        }
        host.recv(packet);
        let received = one(&mut host);
        assert_eq!(
            (received.wr_id, received.byte_len, received.immediate),
            (len as u64, 40 + len as u32, immediate)
        );
        assert_eq!(received.flags.contains(WcFlags::WITH_IMM), immediate.is_some());
        assert_eq!(host.bytes(40, len), pattern(len));
    }
}

#[test]
fn header_and_payload_may_lie_in_pieces() {
    let mut host = host();
    let pieces = [host.sge(0, 7), host.sge(100, 0), host.sge(200, 30), host.sge(300, 5), host.sge(400, 100)];
    host.try_post_recv(1, &pieces).expect("the receive is accepted");
    let packet = datagram(0, b"0123456789");
    let header = packet.frame(host.qpn)[14..34].to_vec();
    host.recv(packet);
    assert_eq!(one(&mut host).byte_len, 50);
    assert_eq!((host.bytes(213, 17), host.bytes(300, 3)), (header[..17].to_vec(), header[17..].to_vec()));
    assert_eq!((host.bytes(303, 2), host.bytes(400, 8)), (b"01".to_vec(), b"23456789".to_vec()));
}

#[test]
fn p4_11_a_wrong_qkey_is_counted_and_nothing_else() {
    let mut host = host();
    host.post_recv(1, 0, 64);
    for qkey in [0, QKEY ^ 1, QKEY | 1 << 31, 0x8001_0000] {
        host.recv(send(Only, 0, b"bad").ud(qkey, PEER_QPN));
    }
    assert_eq!((host.sent(), host.received(), host.count(Counter::BadQkey)), (vec![], vec![], 4));
    check_alive(&mut host, 1);
}

#[test]
fn c25_a_receive_that_is_too_small_waits_for_the_next() {
    let mut host = host();
    host.post_recv(1, 0, 104);
    host.recv(datagram(0, &[1; 65]));
    host.recv(datagram(0, &[1; 100]));
    host.recv(datagram(0, &[1; 4096]));
    assert_eq!((host.sent(), host.received(), host.count(Counter::TooLong)), (vec![], vec![], 3));
    assert_eq!(host.bytes(0, 104), [0; 104], "not a byte of it");
    check_alive(&mut host, 1);
}

#[test]
fn c25_a_receive_without_room_for_the_header_takes_nothing() {
    let mut host = host();
    host.post_recv(1, 0, 39);
    host.recv(datagram(0, b""));
    assert_eq!((host.sent(), host.received(), host.count(Counter::TooLong)), (vec![], vec![], 1));
    assert_eq!(host.state(), QpState::Rts);
}

#[test]
fn p5_4_without_a_receive_it_is_dropped() {
    let mut host = host();
    host.recv(datagram(0, b"lost"));
    host.post_recv(1, 0, 64);
    assert_eq!((host.sent(), host.received(), host.count(Counter::NoReceive)), (vec![], vec![], 1));
    check_alive(&mut host, 1);
}

#[test]
fn p5_1_what_is_sent_to_another_address_is_dropped() {
    let mut host = host();
    host.post_recv(1, 0, 64);
    host.recv(datagram(0, b"a").to(STRANGER));
    host.recv(datagram(0, b"a").from(PEER_V6).to(PEER_V6));
    assert_eq!((host.sent(), host.received(), host.count(Counter::WrongDestination)), (vec![], vec![], 2));
    check_alive(&mut host, 1);
    host.post_recv(2, 0, 64);
    host.engine.set_addresses(&[]);
    host.recv(datagram(0, b"a"));
    assert_eq!((host.sent(), host.received(), host.count(Counter::WrongDestination)), (vec![], vec![], 3));
    host.engine.set_addresses(&[STRANGER]);
    host.recv(datagram(0, b"a").to(STRANGER));
    assert_eq!((host.sent(), host.received()), (vec![], ok([2])));
}

#[test]
fn p4_1_nothing_but_single_sends_exists() {
    let mut host = host();
    host.post_recv(1, 0, 256);
    let opcode_at = 14 + 20 + 8;
    // SEND FIRST, MIDDLE, LAST; WRITE FIRST, ONLY; READ REQUEST; ACKNOWLEDGE; FETCH ADD.
    for opcode in [0x60, 0x61, 0x62, 0x66, 0x6A, 0x6C, 0x71, 0x74] {
        let mut frame = datagram(0, &[0; 32]).frame(host.qpn);
        assert_eq!(frame[opcode_at], 0x64);
        frame[opcode_at] = opcode;
        host.engine.receive(host.now, &frame, &[]);
    }
    assert_eq!((host.sent(), host.received(), host.count(Counter::UnknownOpcode)), (vec![], vec![], 8));
    check_alive(&mut host, 1);
}

#[test]
fn packets_of_connections_are_nothing_to_a_datagram_queue_pair() {
    let mut host = host();
    host.post_recv(1, 0, 64);
    host.recv_all([
        send(Only, 0, b"a"),
        send(Only, 0, b"a").uc(),
        send(First, 0, &[0; 1024]),
        send(Only, 0, b"a").xrc(1),
    ]);
    assert_eq!((host.sent(), host.received(), host.count(Counter::WrongService)), (vec![], vec![], 4));
    check_alive(&mut host, 1);
}

#[test]
fn a_datagram_is_nothing_to_a_connection() {
    let mut host = Host::new();
    host.post_recv(1, 0, 64);
    host.recv(datagram(100, b"a").ack_req());
    assert_eq!((host.sent(), host.received(), host.count(Counter::WrongService)), (vec![], vec![], 1));
}

#[test]
fn p4_2_the_psn_is_not_looked_at() {
    let mut host = host();
    for psn in [5, 5, 4, 0xFF_FFFF, 0x80_0000] {
        host.post_recv(1, 0, 64);
        host.recv(datagram(psn, b"a"));
        assert_eq!((host.sent(), host.received()), (vec![], ok([1])));
    }
}

#[test]
fn c12_a_request_for_an_acknowledgement_is_ignored() {
    let mut host = host();
    host.post_recv(1, 0, 64);
    host.recv(datagram(0, b"a").ack_req());
    assert_eq!((host.sent(), host.received()), (vec![], ok([1])));
}

#[test]
fn p4_11_anybody_may_send_and_the_completion_tells_who() {
    let mut host = host();
    let senders = [(PEER, 7), (STRANGER, 8), (PEER, 1), (HOST, 9)];
    for (index, (source, number)) in senders.into_iter().enumerate() {
        host.post_recv(index as u64, 0, 64);
        host.recv(send(Only, 0, b"a").ud(QKEY, Qpn::new(number)).from(source));
        let received = one(&mut host);
        assert_eq!((received.wr_id, received.src_qp), (index as u64, Qpn::new(number)));
        let std::net::IpAddr::V4(address) = source else { unreachable!("senders are IPv4") };
        assert_eq!(host.bytes(32, 4), address.octets());
    }
}

#[test]
fn a_pkey_of_another_partition_is_counted_and_nothing_else() {
    let mut host = host();
    host.post_recv(1, 0, 64);
    host.recv_all([datagram(0, b"a").pkey(0x8001), datagram(0, b"a").pkey(0)]);
    assert_eq!((host.sent(), host.received(), host.count(Counter::BadPkey)), (vec![], vec![], 2));
    check_alive(&mut host, 1);
}

#[test]
fn a_receive_whose_memory_is_gone_ends_the_queue_pair() {
    let mut host = host();
    host.post_recv(1, 0, 64);
    host.post_recv(2, 0, 64);
    host.engine.deregister_mr(host.keys.lkey).expect("no window is bound to it");
    host.recv(datagram(0, b"a"));
    assert_eq!(host.sent(), []);
    assert_eq!(host.received(), [(1, WcStatus::LocProtErr), (2, WcStatus::WrFlushErr)]);
    assert_eq!((host.state(), host.count(Counter::RespLocalErr)), (QpState::Err, 1));
}

#[test]
fn p4_15_datagrams_are_taken_from_rtr_on() {
    for (state, taken) in [(QpState::Init, false), (QpState::Rtr, true), (QpState::Rts, true)] {
        let mut host = Host::with(Setup { state, ..Setup::of(QpType::Ud) });
        host.post_recv(1, 0, 64);
        host.recv(datagram(0, b"a"));
        let received = if taken { ok([1]) } else { vec![] };
        assert_eq!((host.sent(), host.received()), (vec![], received), "{state:?}");
        assert_eq!(host.count(Counter::WrongState), u64::from(!taken));
    }
}

#[test]
fn a_solicited_datagram_fires_a_solicited_notification() {
    let mut host = host();
    host.post_recv(1, 0, 64);
    host.post_recv(2, 0, 64);
    host.recv_reader.arm(true);
    host.recv(datagram(0, b"a"));
    assert_eq!((host.sent(), host.notified.len()), (vec![], 0));
    host.recv(datagram(0, b"a").solicited());
    assert_eq!((host.sent(), host.notified.clone()), (vec![], vec![host.recv_cq]));
}
