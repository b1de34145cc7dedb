//! Receiving on an unreliable connection: what arrives whole is taken, anything else is dropped in silence (protocol
//! sections 4.12 and 5.3).

use crate::common::*;
use Position::{First, Last, Middle, Only};

fn host() -> Host {
    Host::with(Setup::of(QpType::Uc))
}

/// The last thing that each trace shows: nothing was answered, and a whole message still arrives, in this receive.
fn check_alive(host: &mut Host, wr_id: u64) {
    host.recv(send(Only, 0x5000, b"alive").uc());
    assert_eq!((host.sent(), host.received()), (vec![], ok([wr_id])));
    assert_eq!((host.state(), host.events()), (QpState::Rts, vec![]));
}

#[test]
fn sends_of_every_length_arrive_with_and_without_immediate() {
    let mut host = host();
    let mut psn = 100;
    for (len, immediate) in LENGTHS.into_iter().flat_map(|len| [(len, None), (len, Some(0xFEED))]) {
        host.post_recv(len as u64, 0, 4096);
        host.fill(0, &[0; 4096]);
        let message = send_message(psn, &pattern(len), immediate);
        psn += message.len() as u32;
        host.recv_all(each(message, Pkt::uc));
        assert_eq!(host.sent(), []);
        let [received] = host.recv_completions()[..] else { panic!("{len} bytes: one completion") };
        assert_eq!((received.wr_id, received.status), (len as u64, WcStatus::Success));
        assert_eq!((received.opcode, received.byte_len), (WcOpcode::Recv, len as u32));
        assert_eq!((received.immediate, received.qp_num, received.src_qp), (immediate, host.qpn, PEER_QPN));
        assert_eq!(received.flags.contains(WcFlags::WITH_IMM), immediate.is_some());
        assert_eq!((host.bytes(0, len), host.bytes(len, 1)), (pattern(len), vec![0]));
    }
    assert_eq!(host.count(Counter::RdmaRecvs), 2 * LENGTHS.len() as u64);
}

#[test]
fn writes_of_every_length_arrive_with_and_without_immediate() {
    let mut host = host();
    let mut psn = 100;
    for (len, immediate) in LENGTHS.into_iter().flat_map(|len| [(len, None), (len, Some(7))]) {
        host.post_recv(len as u64, 0, 0);
        host.fill(0, &[0; 8192]);
        let message = write_message(psn, host.at(64), &pattern(len), immediate);
        psn += message.len() as u32;
        host.recv_all(each(message, Pkt::uc));
        assert_eq!(
            (host.sent(), host.bytes(64, len), host.bytes(64 + len, 1)),
            (vec![], pattern(len), vec![0])
        );
        let received = host.recv_completions();
        assert_eq!(received.len(), usize::from(immediate.is_some()), "{len} bytes");
        for completion in received {
            assert_eq!((completion.opcode, completion.byte_len), (WcOpcode::RecvRdmaWithImm, len as u32));
            assert_eq!((completion.status, completion.immediate), (WcStatus::Success, immediate));
        }
    }
}

#[test]
fn c12_a_request_for_an_acknowledgement_is_ignored() {
    let mut host = host();
    host.post_recv(1, 0, 64);
    host.recv(send(Only, 100, b"a").uc().ack_req());
    host.recv(write(Only, 101, host.at(64), 1, b"b").uc().ack_req());
    assert_eq!((host.sent(), host.received(), host.bytes(64, 1)), (vec![], ok([1]), b"b".to_vec()));
}

#[test]
fn p4_12_a_message_with_a_gap_is_dropped_and_its_receive_is_used_again() {
    let mut host = host();
    host.post_recv(1, 0, 4096);
    host.recv_all([send(First, 100, &pattern(1024)).uc(), send(Last, 102, b"late").uc()]);
    assert_eq!((host.sent(), host.received(), host.count(Counter::LostMessage)), (vec![], vec![], 1));
    check_alive(&mut host, 1);
    assert_eq!(host.bytes(0, 5), b"alive");
}

#[test]
fn p4_12_the_rest_of_a_lost_message_is_dropped_to_its_end() {
    let mut host = host();
    host.post_recv(1, 0, 8192);
    let lost = [101];
    let message = each(send_message(100, &pattern(5000), None), Pkt::uc);
    host.recv_all(message.into_iter().filter(|packet| !lost.contains(&packet.psn)));
    assert_eq!((host.sent(), host.received(), host.count(Counter::LostMessage)), (vec![], vec![], 3));
    check_alive(&mut host, 1);
}

#[test]
fn p4_2_the_next_message_is_taken_with_whatever_psn_it_carries() {
    let mut host = host();
    for (wr_id, psn) in [100, 0x70_0000, 5, 0xFF_FFFF, 0, 42].into_iter().enumerate() {
        host.post_recv(wr_id as u64, 0, 64);
        host.recv(send(Only, psn, b"a").uc());
        assert_eq!((host.sent(), host.received()), (vec![], ok([wr_id as u64])));
    }
    assert_eq!(host.count(Counter::LostMessage), 0, "whole messages were lost, if any");
}

#[test]
fn p4_2_the_psn_wraps_inside_a_message() {
    let mut host = Host::with(Setup { rq_psn: 0xFF_FFFE, ..Setup::of(QpType::Uc) });
    host.post_recv(1, 0, 8192);
    host.recv_all(each(send_message(0xFF_FFFE, &pattern(5000), None), Pkt::uc));
    assert_eq!((host.sent(), host.received(), host.bytes(0, 5000)), (vec![], ok([1]), pattern(5000)));
}

#[test]
fn p4_12_a_new_message_ends_one_that_is_open() {
    let mut host = host();
    host.post_recv(1, 0, 4096);
    host.post_recv(2, 0, 4096);
    host.recv(send(First, 100, &[1; 1024]).uc());
    host.recv_all(each(send_message(101, &pattern(1500), None), Pkt::uc));
    assert_eq!((host.sent(), host.received(), host.bytes(0, 1500)), (vec![], ok([1]), pattern(1500)));
    host.recv(write(First, 103, host.at(8192), 2048, &[3; 1024]).uc());
    check_alive(&mut host, 2);
    assert_eq!(host.count(Counter::LostMessage), 2);
}

#[test]
fn p4_12_what_continues_no_message_is_dropped() {
    for stray in [send(Middle, 100, &[1; 1024]), send(Last, 100, b"a"), write_more(Last, 100, b"a")] {
        let mut host = host();
        host.post_recv(1, 0, 4096);
        host.recv(stray.uc());
        assert_eq!((host.sent(), host.received(), host.count(Counter::LostMessage)), (vec![], vec![], 1));
        check_alive(&mut host, 1);
    }
}

#[test]
fn the_packet_of_another_operation_continues_nothing() {
    let mut host = host();
    host.post_recv(1, 0, 4096);
    host.recv_all([send(First, 100, &[1; 1024]).uc(), write_more(Last, 101, b"b").uc()]);
    host.recv_all([write(First, 102, host.at(8192), 1025, &[2; 1024]).uc(), send(Last, 103, b"b").uc()]);
    assert_eq!((host.sent(), host.received(), host.count(Counter::LostMessage)), (vec![], vec![], 2));
    check_alive(&mut host, 1);
}

#[test]
fn a_packet_twice_is_a_new_message_or_the_end_of_one() {
    let mut host = host();
    host.post_recv(1, 0, 4096);
    host.post_recv(2, 4096, 4096);
    let first = || send(First, 100, &[1; 1024]).uc();
    host.recv_all([first(), first(), send(Last, 101, b"b").uc(), send(Last, 101, b"b").uc()]);
    assert_eq!((host.sent(), host.received()), (vec![], ok([1])));
    host.recv_all([send(Only, 102, b"c").uc(), send(Only, 102, b"c").uc()]);
    assert_eq!((host.sent(), host.received()), (vec![], ok([2])));
    assert_eq!(host.count(Counter::NoReceive), 1, "nothing tells the second from a new one");
}

#[test]
fn p4_12_a_message_that_finds_no_receive_is_dropped_as_a_whole() {
    let mut host = host();
    host.recv(send(First, 100, &pattern(1024)).uc());
    host.post_recv(1, 0, 4096);
    host.recv(send(Last, 101, b"a").uc());
    assert_eq!((host.sent(), host.received(), host.count(Counter::NoReceive)), (vec![], vec![], 1));
    check_alive(&mut host, 1);
}

#[test]
fn a_write_with_immediate_that_finds_no_receive_completes_nothing() {
    let mut host = host();
    host.recv_all(each(write_message(100, host.at(0), &pattern(1500), Some(1)), Pkt::uc));
    host.post_recv(1, 0, 64);
    assert_eq!((host.sent(), host.received(), host.count(Counter::NoReceive)), (vec![], vec![], 1));
    check_alive(&mut host, 1);
}

/// The specification gives a UC responder no other answer to a length that does not fit than silence, and a receive
/// that waits for the next message. One packet too long does not end a connection whose packets anybody can forge.
#[test]
fn p4_12_a_message_longer_than_its_receive_is_dropped_and_the_receive_waits() {
    for (room, len) in [(4, 5), (1024, 1025), (1500, 2048), (3000, 5000), (0, 1)] {
        let mut host = host();
        host.post_recv(1, 0, room);
        host.fill(0, &[0; 4096]);
        host.recv_all(each(send_message(100, &pattern(len), None), Pkt::uc));
        assert_eq!((host.sent(), host.received()), (vec![], vec![]), "{len} bytes into {room}");
        assert_eq!((host.count(Counter::TooLong), host.bytes(room as usize, 1)), (1, vec![0]));
        host.recv_all(each(send_message(0x5000, &pattern(room as usize), None), Pkt::uc));
        assert_eq!((host.sent(), host.received()), (vec![], ok([1])));
        assert_eq!((host.state(), host.events()), (QpState::Rts, vec![]));
    }
}

#[test]
fn c24_a_packet_of_a_wrong_length_ends_its_message() {
    let wrong = [
        vec![send(First, 100, &[1; 1023])],
        vec![send(First, 100, &[1; 1028])],
        vec![send(First, 100, &[])],
        vec![send(Only, 100, &[1; 1025])],
        vec![send(First, 100, &[1; 1024]), send(Middle, 101, &[1; 1020])],
        vec![send(First, 100, &[1; 1024]), send(Last, 101, &[])],
        vec![send(First, 100, &[1; 1024]), send(Last, 101, &[1; 1025])],
    ];
    for packets in wrong {
        let mut host = host();
        host.post_recv(1, 0, 8192);
        host.recv_all(each(packets.clone(), Pkt::uc));
        assert_eq!((host.sent(), host.received()), (vec![], vec![]), "{packets:?}");
        assert_eq!(host.count(Counter::UcRefused), 1, "{packets:?}");
        host.recv(send(Last, 101, b"a").uc());
        check_alive(&mut host, 1);
    }
}

#[test]
fn c24_a_write_is_as_long_as_it_says_or_dropped() {
    let at = Host::new().at(0);
    let wrong = [
        vec![write(Only, 100, at, 5, b"1234")],
        vec![write(Only, 100, at, 3, b"1234")],
        vec![write(First, 100, at, 1024, &[1; 1024])],
        vec![write(First, 100, at, 1030, &[1; 1024]), write_more(Last, 101, b"1234")],
        vec![write(First, 100, at, 1026, &[1; 1024]), write_more(Last, 101, b"1234")],
        vec![write(First, 100, at, 2048, &[1; 1024]), write_more(Middle, 101, &[1; 1024])],
    ];
    for packets in wrong {
        let mut host = host();
        host.post_recv(1, 8192, 64);
        let last = packets.len() - 1;
        let with_immediate = |(number, packet): (usize, Pkt)| {
            if number == last && !is_open(&packet) { packet.imm(1) } else { packet }
        };
        host.recv_all(each(packets.into_iter().enumerate().map(with_immediate).collect(), Pkt::uc));
        assert_eq!((host.sent(), host.received(), host.count(Counter::UcRefused)), (vec![], vec![], 1));
        check_alive(&mut host, 1);
    }
}

/// Whether more packets of its message are to come.
fn is_open(packet: &Pkt) -> bool {
    use uroce_stack::wire::Operation;
    matches!(packet.operation, Operation::Write { position: First | Middle, .. })
}

#[test]
fn p4_12_a_write_that_may_not_be_is_dropped_in_silence() {
    let nowhere = RemoteAddr { rkey: 0xBAD, ..Host::new().at(0) };
    let beyond = Host::new().at(AREA as u64 - 4);
    for remote in [nowhere, beyond, FAR] {
        let mut host = host();
        host.post_recv(1, 0, 64);
        host.recv_all(each(write_message(100, remote, b"12345", Some(1)), Pkt::uc));
        host.recv_all(each(write_message(101, remote, &pattern(3000), Some(1)), Pkt::uc));
        assert_eq!((host.sent(), host.received(), host.bytes(AREA - 4, 4)), (vec![], vec![], vec![0; 4]));
        assert_eq!((host.count(Counter::UcRefused), host.count(Counter::LostMessage)), (2, 2));
        check_alive(&mut host, 1);
    }
}

#[test]
fn p4_12_without_the_right_of_remote_write_nothing_is_written() {
    let mut host = Host::with(Setup { access: Access::empty(), ..Setup::of(QpType::Uc) });
    host.post_recv(1, 0, 64);
    host.recv(write(Only, 100, host.at(64), 1, b"a").uc());
    host.recv(write(Only, 101, host.at(64), 0, b"").uc());
    assert_eq!((host.sent(), host.bytes(64, 1), host.count(Counter::UcRefused)), (vec![], vec![0], 2));
    check_alive(&mut host, 1);
}

#[test]
fn c22_a_write_of_nothing_needs_no_key() {
    let mut host = host();
    host.post_recv(1, 0, 64);
    host.recv_all([write(Only, 100, FAR, 0, b"").uc(), write(Only, 101, FAR, 0, b"").imm(9).uc()]);
    let [received] = host_completions(&mut host)[..] else { panic!("one completion") };
    assert_eq!((received.immediate, received.byte_len), (Some(9), 0));
    assert_eq!((host.count(Counter::UcRefused), host.state()), (0, QpState::Rts));
}

fn host_completions(host: &mut Host) -> Vec<Completion> {
    assert_eq!(host.sent(), []);
    host.recv_completions()
}

#[test]
fn c20_a_write_stops_when_its_memory_is_revoked() {
    let mut host = host();
    host.recv(write(First, 100, host.at(0), 2048, &[1; 1024]).uc());
    host.engine.deregister_mr(host.keys.lkey).expect("no window is bound to it");
    host.recv(write_more(Last, 101, &[2; 1024]).uc());
    assert_eq!((host.sent(), host.bytes(1024, 1), host.count(Counter::UcRefused)), (vec![], vec![0], 1));
    assert_eq!((host.state(), host.events()), (QpState::Rts, vec![]));
}

#[test]
fn a_receive_whose_memory_is_gone_ends_the_queue_pair() {
    let mut host = host();
    host.post_recv(1, 0, 64);
    host.post_recv(2, 0, 64);
    host.engine.deregister_mr(host.keys.lkey).expect("no window is bound to it");
    host.recv(send(Only, 100, b"a").uc());
    assert_eq!(host.sent(), []);
    assert_eq!(host.received(), [(1, WcStatus::LocProtErr), (2, WcStatus::WrFlushErr)]);
    assert_eq!((host.state(), host.count(Counter::RespLocalErr)), (QpState::Err, 1));
}

#[test]
fn s04_what_is_not_the_peers_does_not_end_its_message() {
    let mut host = host();
    host.post_recv(1, 0, 4096);
    host.recv(send(First, 100, &[1; 1024]).uc());
    host.recv(send(Last, 101, b"bad").uc().from(STRANGER));
    host.recv(send(Only, 101, b"bad").uc().from(STRANGER));
    host.recv(send(Last, 101, b"bad").uc().pkey(0x8001));
    host.recv(send(Last, 101, b"bad"));
    host.recv(send(Last, 101, b"good").uc());
    assert_eq!((host.sent(), host.received(), host.bytes(1024, 4)), (vec![], ok([1]), b"good".to_vec()));
    let counted = [Counter::WrongSource, Counter::BadPkey, Counter::WrongService];
    assert_eq!(counted.map(|counter| host.count(counter)), [2, 1, 1]);
}

#[test]
fn a_packet_of_uc_is_nothing_to_a_reliable_connection() {
    let mut host = Host::new();
    host.post_recv(1, 0, 64);
    host.recv(send(Only, 100, b"a").uc().ack_req());
    assert_eq!((host.sent(), host.received(), host.count(Counter::WrongService)), (vec![], vec![], 1));
}

#[test]
fn p4_17_the_first_message_before_rts_tells_that_the_connection_stands() {
    let mut host = Host::with(Setup { state: QpState::Rtr, ..Setup::of(QpType::Uc) });
    host.post_recv(1, 0, 64);
    host.post_recv(2, 0, 64);
    host.recv_all([send(Only, 100, b"a").uc(), send(Only, 101, b"a").uc()]);
    assert_eq!((host.sent(), host.received()), (vec![], ok([1, 2])));
    assert_eq!(host.events(), [AsyncEvent::CommEst(host.qpn)]);
}

#[test]
fn a_solicited_message_fires_a_solicited_notification() {
    let mut host = host();
    host.post_recv(1, 0, 64);
    host.post_recv(2, 0, 64);
    host.recv_reader.arm(true);
    host.recv(send(Only, 100, b"a").uc());
    assert_eq!((host.sent(), host.notified.len()), (vec![], 0));
    host.recv(send(Only, 101, b"a").uc().solicited());
    assert_eq!((host.sent(), host.notified.clone()), (vec![], vec![host.recv_cq]));
}
