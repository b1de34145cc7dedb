//! Messages that get no answer are repeated byte by byte, and then given up (protocol section 6.7).

use std::time::Duration;

use crate::host::*;
use crate::peer::*;
use uroce_stack::cm::*;
use uroce_stack::wire::cm::*;

/// What is sent at each timeout until it is given up, and after how many milliseconds.
fn repetitions(host: &mut Host) -> Vec<(u128, Vec<u8>)> {
    let mut repeated = Vec::new();
    loop {
        let waited = host.next_timeout().as_millis();
        let Some(datagram) = host.cm.poll_transmit() else { return repeated };
        repeated.push((waited, datagram.mad.to_vec()));
        assert!(host.datagrams().is_empty());
        if repeated.len() > 20 {
            return repeated;
        }
    }
}

#[test]
fn req_is_repeated_15_times_and_then_unreachable() {
    let mut host = Host::new();
    let id = host.connect();
    let first = host.datagrams()[0].mad.to_vec();
    let repeated = repetitions(&mut host);
    assert_eq!(repeated, vec![(4608, first); 15]);
    assert_eq!(host.event(), CmEvent::Unreachable { id, reason: Unreachable::NoReply });
    assert_eq!((host.cm.connections(), host.cm.state(id)), (0, None));
    assert_eq!((host.count(CmCounter::Retries), host.count(CmCounter::RetriesExceeded)), (15, 1));
}

#[test]
fn rep_is_repeated_as_often_as_the_req_said_and_then_rejected() {
    let mut host = Host::listening();
    host.receive(&req_mad(Req { max_cm_retries: 3, ..req() }));
    let id = host.request().id;
    host.accept(id);
    let first = host.datagrams()[0].mad.to_vec();
    for _ in 0..3 {
        assert_eq!(host.next_timeout(), Duration::from_millis(4096));
        assert_eq!(host.datagrams()[0].mad.to_vec(), first);
    }
    host.next_timeout();
    let rej = want!(host.sent_one(), Rej);
    assert_eq!((rej.reason, rej.answered), (RejectReason::Timeout, Answered::Other));
    assert_eq!((rej.local_comm_id, rej.remote_comm_id), (id.comm_id(), PEER_ID));
    assert_eq!(rej.info.as_bytes(), OUR_GUID.to_be_bytes());
    assert_eq!(host.event(), CmEvent::Unreachable { id, reason: Unreachable::NoRtu });
    assert_eq!(host.cm.connections(), 1, "the peer may have sent: packets are waited out");
    assert_eq!(host.next_timeout(), Duration::from_millis(512));
    assert!(host.is_quiet() && host.cm.connections() == 0);
}

/// Case C81.
#[test]
fn c81_dreq_without_answer_ends_in_timewait_and_says_so_once() {
    let mut host = Host::new();
    let (id, peer) = active(&mut host);
    host.disconnect(id);
    let first = host.datagrams()[0].mad.to_vec();
    let repeated = repetitions(&mut host);
    assert_eq!(repeated, vec![(4608, first); 15]);
    assert_eq!(host.event(), CmEvent::Disconnected { id, private_data: None, timed_out: true });
    host.receive(&peer.rej(Answered::Other, RejectReason::Timeout));
    host.receive(&peer.drep());
    assert!(host.is_quiet(), "too late");
    assert_eq!(host.next_timeout(), Duration::from_millis(512));
    assert_eq!(host.event(), CmEvent::TimewaitExit { id });
    assert_eq!((host.cm.connections(), host.cm.next_deadline()), (0, None));
}

#[test]
fn an_mra_stretches_the_wait_and_comes_before_the_answer() {
    let mut host = Host::new();
    let id = host.connect();
    let peer = Peer::asked(&mut host);
    host.receive(&peer.mra(Answered::Req, 22));
    let expected = CmEvent::MraReceived { id, service_timeout: 22, private_data: PrivateData::default() };
    assert_eq!(host.event(), expected);
    let waited = host.next_timeout() + host.next_timeout();
    assert_eq!(waited, Duration::from_millis(16_384 + 4608));
    want!(host.sent_one(), Req);
    host.receive(&peer.mra(Answered::Req, 31));
    host.receive(&peer.rep());
    assert_eq!(host.reply().id, id);
}

/// Nobody makes us wait for hours.
#[test]
fn times_that_peers_name_are_cut() {
    let mut host = Host::listening();
    let greedy = CmPath { ack_timeout: 31, ..path() };
    host.receive(&req_mad(Req { local_response_timeout: 31, max_cm_retries: 0, primary: greedy, ..req() }));
    let id = host.request().id;
    host.accept(id);
    assert_eq!(host.next_timeout(), Duration::from_millis(65_536));
    host.events();
    assert_eq!(host.next_timeout(), Duration::from_millis(65_536), "time-wait");
    assert_eq!(host.cm.connections(), 0);
}

#[test]
fn a_slow_application_is_excused_when_the_peer_asks_again() {
    let mut host = Host::listening();
    host.receive(&req_mad(req()));
    let id = host.request().id;
    assert!(host.is_quiet(), "no MRA before the peer asks again");
    for _ in 0..3 {
        host.receive(&req_mad(req()));
        let mra = want!(host.sent_one(), Mra);
        assert_eq!((mra.answered, mra.service_timeout), (Answered::Req, 24));
        assert_eq!((mra.local_comm_id, mra.remote_comm_id), (id.comm_id(), PEER_ID));
    }
    assert!(host.events().is_empty(), "one request, one event");
    host.accept(id);
    want!(host.sent_one(), Rep);

    let mut host = Host::new();
    let id = host.connect();
    let peer = Peer::asked(&mut host);
    host.receive(&peer.rep());
    host.receive(&peer.rep());
    let mra = want!(host.sent_one(), Mra);
    assert_eq!((mra.answered, mra.local_comm_id, mra.remote_comm_id), (Answered::Rep, id.comm_id(), PEER_ID));
    assert_eq!(host.cm.state(id), Some(CmState::MraRepSent));
    host.cm.establish(id, b"").expect("the reply is there");
    want!(host.sent_one(), Rtu);
}

#[test]
fn rtu_and_drep_are_repeated_when_asked_for_again() {
    let mut host = Host::new();
    let id = host.connect();
    let peer = Peer::asked(&mut host);
    host.receive(&peer.rep());
    host.cm.establish(id, b"ready").expect("the reply is there");
    let rtu = host.datagrams()[0].mad;
    host.receive(&peer.rep());
    assert_eq!(host.datagrams()[0].mad, rtu, "the RTU was lost");
    let peer = Peer { transaction_id: 0x77, ..peer };
    host.receive(&peer.dreq());
    host.events();
    host.receive(&peer.dreq());
    assert!(host.is_quiet(), "the application has not stopped yet");
    host.disconnect(id);
    let drep = host.datagrams()[0].mad;
    host.receive(&peer.dreq());
    assert_eq!(host.datagrams()[0].mad, drep, "the DREP was lost");
}

/// The reply tells how long the peer's adapter takes, which the time-wait of the active side covers too.
#[test]
fn timewait_covers_the_delay_of_the_peer() {
    let mut host = Host::new();
    let id = host.connect();
    let peer = Peer::asked(&mut host);
    host.receive(&peer.says(CmMessage::Rep(Rep { target_ack_delay: 19, ..peer.rep_fields() })));
    assert_eq!(host.reply().settings.timeout, 19);
    host.cm.establish(id, b"").expect("the reply is there");
    host.receive(&peer.dreq());
    host.disconnect(id);
    assert_eq!(host.next_timeout(), Duration::from_millis(2048));
    assert_eq!(host.cm.connections(), 0);
}

/// A peer that ends the connection does not want to hear the REP again.
#[test]
fn nothing_is_repeated_to_a_peer_that_ends_it() {
    let mut host = Host::listening();
    host.receive(&req_mad(req()));
    let id = host.request().id;
    host.accept(id);
    host.sent();
    host.receive(&Peer::asking(id).dreq());
    host.event();
    host.next_timeout();
    assert!(host.is_quiet() && host.cm.next_deadline().is_none());
}
