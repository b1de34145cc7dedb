//! The target of an extended reliable connection (protocol section 4.13; IBTA annex A14).

use crate::common::*;
use Position::{First, Last, Middle, Only};
use uroce_stack::Error;

fn host() -> Host {
    Host::with(Setup::of(QpType::XrcTgt))
}

/// Requests as the peer names our shared receive queue in them.
fn ours(host: &mut Host, packets: Vec<Pkt>) -> Vec<Pkt> {
    let number = host.shared().number;
    each(packets, |packet| packet.xrc(number))
}

fn recv_all(host: &mut Host, packets: Vec<Pkt>) {
    let packets = ours(host, packets);
    host.recv_all(packets);
}

fn responses(packets: Vec<Pkt>) -> Vec<Pkt> {
    each(packets, Pkt::xrc_response)
}

/// The target is refused: what it says and what it tells the application.
fn check_refused(host: &mut Host, answer: Pkt, event: AsyncEvent) {
    assert_eq!(host.sent(), [answer.xrc_response()]);
    assert_eq!((host.state(), host.events()), (QpState::Err, vec![event]));
}

#[test]
fn sends_of_every_length_complete_on_the_queue_of_the_receives() {
    let mut host = host();
    let mut psn = 100;
    for (number, len) in (0_u32..).zip(LENGTHS) {
        host.post_shared(len as u64, 0, 4096);
        let mut message = send_message(psn, &pattern(len), Some(5));
        psn += message.len() as u32;
        let last = message.pop().expect("a message has a packet").ack_req();
        message.push(last);
        recv_all(&mut host, message);
        assert_eq!(host.sent(), responses(vec![ack(psn - 1, number + 1)]));
        let [received] = host.recv_completions()[..] else { panic!("{len} bytes: one completion") };
        assert_eq!((received.wr_id, received.status), (len as u64, WcStatus::Success));
        assert_eq!((received.qp_num, received.byte_len), (host.qpn, len as u32), "the number of the target");
        assert_eq!((received.immediate, host.bytes(0, len)), (Some(5), pattern(len)));
    }
}

#[test]
fn it_has_every_operation_that_a_reliable_connection_has() {
    let mut host = host();
    host.grant(Access::FLUSH_GLOBAL);
    host.modify(&QpAttr { access: Some(Access::REMOTE | Access::FLUSH_GLOBAL), ..QpAttr::default() });
    host.fill(0, &7_u64.to_ne_bytes());
    host.post_shared(1, 4096, 64);
    let at = host.at(0);
    let requests = vec![
        write(Only, 100, host.at(64), 4, b"data"),
        write(Only, 101, host.at(64), 4, b"more").imm(9),
        read(102, host.at(64), 4),
        fetch_add(103, at, 1),
        compare_swap(104, at, 8, 20),
        atomic_write(105, host.at(8), b"12345678"),
        flush(106, at, 16),
    ];
    recv_all(&mut host, requests);
    let expected = vec![
        read_response(Only, 102, 3, b"more"),
        atomic_ack(103, 4, 7),
        atomic_ack(104, 5, 8),
        written(105, 6),
        written(106, 7),
    ];
    assert_eq!(host.sent(), responses(expected));
    assert_eq!((host.word(0), host.bytes(8, 8)), (20, b"12345678".to_vec()));
    assert_eq!((host.received(), host.events()), (ok([1]), vec![]));
}

#[test]
fn a_read_is_answered_in_as_many_packets_as_it_takes() {
    let mut host = host();
    host.fill(0, &pattern(2500));
    let request = read(100, host.at(0), 2500);
    recv_all(&mut host, vec![request]);
    let expected = vec![
        read_response(First, 100, 1, &pattern(2500)[..1024]),
        read_response(Middle, 101, 1, &pattern(2500)[1024..2048]),
        read_response(Last, 102, 1, &pattern(2500)[2048..]),
    ];
    assert_eq!(host.sent(), responses(expected));
}

#[test]
fn an_empty_queue_is_not_ready_and_gaps_are_reported() {
    let mut host = host();
    recv_all(&mut host, vec![send(Only, 100, b"a").ack_req()]);
    assert_eq!(host.sent(), responses(vec![rnr(100, 14, 0)]));
    host.post_shared(1, 0, 64);
    recv_all(&mut host, vec![send(Only, 100, b"a").ack_req(), send(Only, 105, b"b")]);
    let expected = vec![ack(100, 1), nak(101, NakCode::SequenceError, 1)];
    assert_eq!((host.sent(), host.received()), (responses(expected), ok([1])));
    recv_all(&mut host, vec![send(Only, 100, b"a").ack_req()]);
    assert_eq!(host.sent(), responses(vec![ack(100, 1)]), "a duplicate");
}

#[test]
fn each_message_may_be_for_another_queue() {
    let mut host = host();
    let (cq, mut reader) = host.engine.create_cq(16).expect("room for a completion queue");
    let domain = host.xrcd.expect("it has a domain");
    let mut second = SharedReceives::new(&mut host.engine, host.pd, 4, Some((domain, cq)));
    host.post_shared(1, 0, 64);
    second.post(2, host.sge(64, 64));
    host.recv(send(Only, 100, b"second").xrc(second.number));
    recv_all(&mut host, vec![send(Only, 101, b"first")]);
    assert_eq!((host.sent(), host.received()), (vec![], ok([1])));
    let mut completions = [Completion::default(); 2];
    assert_eq!(reader.poll(&mut completions), 1);
    assert_eq!((completions[0].wr_id, completions[0].qp_num), (2, host.qpn));
    assert_eq!((host.bytes(0, 5), host.bytes(64, 6)), (b"first".to_vec(), b"second".to_vec()));
}

#[test]
fn a_message_stays_with_its_queue() {
    let mut host = host();
    let domain = host.xrcd.expect("it has a domain");
    let second = SharedReceives::new(&mut host.engine, host.pd, 4, Some((domain, host.recv_cq)));
    host.post_shared(1, 0, 4096);
    recv_all(&mut host, vec![send(First, 100, &[1; 1024])]);
    host.recv(send(Last, 101, b"a").xrc(second.number));
    let event = AsyncEvent::QpReqErr(host.qpn);
    check_refused(&mut host, nak(101, NakCode::InvalidRequest, 0), event);
    assert_eq!(host.received(), [(1, WcStatus::RemInvReqErr)]);
}

#[test]
fn a_number_that_is_not_of_its_domain_is_an_invalid_request() {
    let foreign = |host: &mut Host| {
        let domain = host.engine.open_xrcd().expect("room for a domain");
        SharedReceives::new(&mut host.engine, host.pd, 4, Some((domain, host.recv_cq))).number
    };
    let unknown = |host: &mut Host| host.shared().number ^ 1;
    let ordinary = |host: &mut Host| SharedReceives::new(&mut host.engine, host.pd, 4, None).number;
    let numbers: [fn(&mut Host) -> u32; 3] = [foreign, unknown, ordinary];
    for number in numbers {
        for request in [send(Only, 100, b"a"), write(Only, 100, FAR, 0, b""), read(100, FAR, 0)] {
            let mut host = host();
            host.post_shared(1, 0, 64);
            let number = number(&mut host);
            host.recv(request.xrc(number));
            let event = AsyncEvent::QpReqErr(host.qpn);
            check_refused(&mut host, nak(100, NakCode::InvalidRequest, 0), event);
            assert_eq!(host.received(), [], "nothing was taken");
        }
    }
}

#[test]
fn memory_is_that_of_the_protection_domain_of_the_queue() {
    let mut host = host();
    let other = host.engine.alloc_pd().expect("room for a protection domain");
    let access = Access::LOCAL_WRITE | Access::REMOTE;
    let region = Region::alloc(4096);
    let keys = host.engine.register_mr(other, region.clone(), VA, access).expect("room for a region");
    let domain = host.xrcd.expect("it has a domain");
    let mut second = SharedReceives::new(&mut host.engine, other, 4, Some((domain, host.recv_cq)));
    let there = RemoteAddr { va: VA, rkey: keys.rkey };
    second.post(2, Sge { addr: VA + 64, length: 64, lkey: keys.lkey });
    host.recv_all(
        [write(Only, 100, there, 4, b"data"), send(Only, 101, b"hello")]
            .map(|packet| packet.xrc(second.number)),
    );
    let mut bytes = [0; 4];
    assert!(region.read_at(0, &mut bytes));
    assert_eq!((host.sent(), host.received(), &bytes), (vec![], ok([2]), b"data"));
    let own = host.at(0);
    host.recv(write(Only, 102, own, 1, b"a").xrc(second.number));
    let event = AsyncEvent::QpAccessErr(host.qpn);
    check_refused(&mut host, nak(102, NakCode::RemoteAccessError, 2), event);
}

#[test]
fn s05_the_domain_of_the_queue_pair_itself_opens_nothing() {
    let mut host = host();
    let other = host.engine.alloc_pd().expect("room for a protection domain");
    let keys = host.engine.register_mr(other, Region::alloc(64), VA, Access::LOCAL_WRITE | Access::REMOTE);
    let there = RemoteAddr { va: VA, rkey: keys.expect("room for a region").rkey };
    recv_all(&mut host, vec![write(Only, 100, there, 1, b"a")]);
    let event = AsyncEvent::QpAccessErr(host.qpn);
    check_refused(&mut host, nak(100, NakCode::RemoteAccessError, 0), event);
}

#[test]
fn it_posts_nothing_itself() {
    let mut host = host();
    let sges = [host.sge(0, 4)];
    for to in [Recipient::Peer, Recipient::Xrc { srqn: 1 }] {
        assert!(matches!(host.try_post_to(1, &sges, to), Err(PostError::Invalid(_))), "{to:?}");
    }
    assert!(matches!(host.try_post_recv(1, &sges), Err(PostError::Invalid(_))));
    assert_eq!((host.sent(), host.done()), (vec![], vec![]));
}

#[test]
fn packets_of_other_services_are_nothing_to_it() {
    let mut host = host();
    host.post_shared(1, 0, 64);
    host.recv_all([send(Only, 100, b"a"), send(Only, 100, b"a").uc(), datagram(100, b"a")]);
    assert_eq!((host.sent(), host.received(), host.count(Counter::WrongService)), (vec![], vec![], 3));
    host.recv(ack(500, 1).xrc_response());
    assert_eq!((host.sent(), host.state(), host.count(Counter::StaleResponse)), (vec![], QpState::Rts, 1));
}

#[test]
fn s04_what_would_end_the_connection_does_not_when_it_is_not_the_peers() {
    let mut host = host();
    host.post_shared(1, 0, 64);
    let number = host.shared().number;
    let fatal = [
        send(Last, 100, b"a").xrc(number),
        send(Only, 100, b"a").xrc(number ^ 1),
        send(Only, 100, &[1; 65]).xrc(number),
        read(100, FAR, 1).xrc(number),
    ];
    for packet in fatal {
        host.recv(packet.clone().from(STRANGER));
        host.recv(packet.clone().to(STRANGER));
        host.recv(packet.pkey(0x8001));
    }
    assert_eq!((host.sent(), host.state(), host.events()), (vec![], QpState::Rts, vec![]));
    assert_eq!((host.count(Counter::WrongSource), host.count(Counter::BadPkey)), (8, 4));
    recv_all(&mut host, vec![send(Only, 100, b"a").ack_req()]);
    assert_eq!((host.sent(), host.received()), (responses(vec![ack(100, 1)]), ok([1])));
}

#[test]
fn domains_stay_while_something_is_in_them() {
    let mut host = host();
    let (domain, srq) = (host.xrcd.expect("it has a domain"), host.shared().srq);
    let busy = Err(Error::Busy("XRC domain"));
    assert_eq!(host.engine.close_xrcd(domain), busy);
    assert_eq!(host.engine.destroy_cq(host.recv_cq), Err(Error::Busy("completion queue")), "of its receives");
    host.engine.destroy_srq(srq).expect("targets do not hold it");
    assert_eq!(host.engine.close_xrcd(domain), busy);
    host.engine.destroy_qp(host.qpn).expect("it exists");
    assert_eq!(host.engine.close_xrcd(domain), Ok(()));
    assert_eq!(host.engine.close_xrcd(domain), Err(Error::NotFound("XRC domain")));
    assert_eq!(host.engine.destroy_cq(host.recv_cq), Ok(()));
}

#[test]
fn a_queue_that_is_destroyed_under_a_message_ends_the_connection_without_a_trace() {
    let mut host = host();
    let srq = host.shared().srq;
    host.post_shared(1, 0, 4096);
    recv_all(&mut host, vec![send(First, 100, &[1; 1024])]);
    host.engine.destroy_srq(srq).expect("targets do not hold it");
    recv_all(&mut host, vec![send(Last, 101, b"a")]);
    let event = AsyncEvent::QpReqErr(host.qpn);
    check_refused(&mut host, nak(101, NakCode::InvalidRequest, 0), event);
    assert_eq!((host.received(), host.done()), (vec![], vec![]), "where it would complete is gone");
}

#[test]
fn only_a_target_is_in_a_domain_and_it_must_be() {
    let mut host = host();
    let (target, srq) = (host.init(), host.shared().srq);
    let domain = target.xrcd;
    let ini = QpInit { qp_type: QpType::XrcIni, xrcd: None, ..target };
    let wrong = [
        QpInit { xrcd: None, ..target },
        QpInit { xrcd: domain, ..ini },
        QpInit { qp_type: QpType::Rc, xrcd: domain, ..target },
        QpInit { srq: Some(srq), ..target },
        QpInit { srq: Some(srq), ..ini },
        QpInit { qp_type: QpType::Rc, xrcd: None, srq: Some(srq), ..target },
    ];
    for init in wrong {
        assert!(matches!(host.engine.create_qp(host.pd, &init), Err(Error::Invalid(_))), "{init:?}");
    }
    let no_domain = host.engine.open_xrcd().expect("room for a domain");
    host.engine.close_xrcd(no_domain).expect("nothing is in it");
    let init = QpInit { xrcd: Some(no_domain), ..target };
    assert_eq!(host.engine.create_qp(host.pd, &init).map(|qp| qp.qpn), Err(Error::NotFound("XRC domain")));
}

/// A frame made by hand: BTH, XRCETH, RETH, payload.
#[test]
fn a14_requests_are_as_the_annex_has_them() {
    let packet = write(Only, 100, FAR, 4, b"data").xrc(0x01_0203).ack_req();
    let frame = packet.frame(Qpn::new(0x77));
    let by_hand: Vec<u8> = [
        &[0xAA, 0x40, 0xFF, 0xFF, 0, 0, 0, 0x77, 0x80, 0, 0, 100][..],
        &[0, 1, 2, 3],
        &FAR.va.to_be_bytes(),
        &FAR.rkey.to_be_bytes(),
        &4_u32.to_be_bytes(),
        b"data",
    ]
    .concat();
    assert_eq!(frame[42..frame.len() - 4], by_hand);
    let opcodes = [
        (send(First, 0, b""), 0xA0),
        (send(Middle, 0, b""), 0xA1),
        (send(Last, 0, b""), 0xA2),
        (send(Last, 0, b"").imm(1), 0xA3),
        (send(Only, 0, b""), 0xA4),
        (send(Only, 0, b"").imm(1), 0xA5),
        (write(First, 0, FAR, 1, b""), 0xA6),
        (write_more(Middle, 0, b""), 0xA7),
        (write_more(Last, 0, b""), 0xA8),
        (write_more(Last, 0, b"").imm(1), 0xA9),
        (write(Only, 0, FAR, 1, b"").imm(1), 0xAB),
        (read(0, FAR, 1), 0xAC),
        (compare_swap(0, FAR, 1, 2), 0xB3),
        (fetch_add(0, FAR, 1), 0xB4),
        (send_invalidate(Last, 0, 1, b""), 0xB6),
        (send_invalidate(Only, 0, 1, b""), 0xB7),
        (flush(0, FAR, 1), 0xBC),
        (atomic_write(0, FAR, &[0; 8]), 0xBD),
    ];
    for (packet, opcode) in opcodes {
        let frame = packet.clone().xrc(0x01_0203).frame(Qpn::new(1));
        assert_eq!((frame[42], &frame[54..58]), (opcode, &[0, 1, 2, 3][..]), "{packet:?}");
    }
}

#[test]
fn a14_responses_have_opcodes_of_their_own_and_name_no_queue() {
    let responses = [
        (read_response(First, 0, 0, b""), 0xAD),
        (read_response(Middle, 0, 0, b""), 0xAE),
        (read_response(Last, 0, 0, b""), 0xAF),
        (read_response(Only, 0, 0, b""), 0xB0),
        (ack(0, 0), 0xB1),
        (atomic_ack(0, 0, 0), 0xB2),
    ];
    for (packet, opcode) in responses {
        let xrc = packet.clone().xrc_response().frame(Qpn::new(1));
        let rc = packet.frame(Qpn::new(1));
        assert_eq!((xrc[42], xrc.len(), &xrc[43..xrc.len() - 4]), (opcode, rc.len(), &rc[43..rc.len() - 4]));
    }
}
