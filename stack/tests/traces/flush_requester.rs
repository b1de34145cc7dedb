//! The requester and FLUSH (IBTA A19; protocol sections 2.4, 4.6 and 4.8).

use crate::common::*;
use Position::{First, Last, Only};
use uroce_stack::wire::{Aeth, Feth, Operation};
use uroce_stack::{FlushPlacement, FlushScope};

const INVALID: NakCode = NakCode::InvalidRequest;
const REFUSED: NakCode = NakCode::RemoteAccessError;
const FLUSH: SendOp =
    SendOp::Flush { remote: FAR, length: 4096, placement: FlushPlacement::Global, scope: FlushScope::Range };

fn psns(packets: &[Pkt]) -> Vec<u32> {
    packets.iter().map(|packet| packet.psn).collect()
}

#[test]
fn the_request_names_range_placement_and_scope() {
    let cases = [
        (FlushPlacement::Global, FlushScope::Range, Feth { placement: 1, selectivity: 0 }),
        (FlushPlacement::Persistent, FlushScope::Range, Feth { placement: 2, selectivity: 0 }),
        (FlushPlacement::Global, FlushScope::Region, Feth { placement: 1, selectivity: 1 }),
        (FlushPlacement::Persistent, FlushScope::Region, Feth { placement: 2, selectivity: 1 }),
    ];
    for (placement, scope, feth) in cases {
        let mut host = Host::new();
        host.post_bare(1, SendOp::Flush { remote: FAR, length: 4096, placement, scope });
        assert_eq!(host.sent(), [flush_as(500, feth, FAR, 4096).ack_req()]);
        host.recv(written(500, 1));
        let sent = host.sent();
        let [completion] = host.send_completions()[..] else { panic!("one completion") };
        assert_eq!((sent, completion.status), (vec![], WcStatus::Success));
        assert_eq!((completion.wr_id, completion.opcode), (1, WcOpcode::Flush));
    }
}

#[test]
fn it_takes_one_psn_however_long_the_range() {
    let mut host = Host::new();
    host.post_bare(1, FLUSH);
    host.post_send(2, 4);
    assert_eq!(psns(&host.sent()), [500, 501]);
}

#[test]
fn p4_8_a_lost_answer_repeats_the_request() {
    let mut host = Host::new();
    host.post_bare(1, FLUSH);
    let sent = host.sent();
    host.advance(TIMEOUT);
    assert_eq!(host.sent(), sent);
    host.recv(written(500, 1));
    host.recv(written(500, 1));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1])));
}

#[test]
fn c33_a_later_answer_is_an_implied_nak() {
    let later: [fn(&mut Host); 3] = [
        |host| host.recv(ack(501, 2)),
        |host| host.recv(rnr(501, 1, 1)),
        |host| host.recv(nak(501, REFUSED, 1)),
    ];
    for answer in later {
        let mut host = Host::new();
        host.post_bare(1, FLUSH);
        host.post_write(2, 4);
        let sent = host.sent();
        answer(&mut host);
        assert_eq!((host.sent(), host.done()), (sent, vec![]), "both again");
        assert_eq!(host.count(Counter::ImpliedNakSeqErr), 1);
        host.recv(written(500, 1));
        host.recv(ack(501, 2));
        assert_eq!((host.sent(), host.done()), (vec![], ok([1, 2])));
    }
}

#[test]
fn a_plain_acknowledgement_is_no_answer() {
    let mut host = Host::new();
    host.post_bare(1, FLUSH);
    let sent = host.sent();
    host.recv(ack(500, 1));
    assert_eq!((host.sent(), host.done()), (sent, vec![]));
}

#[test]
fn the_answer_covers_the_writes_before_it() {
    let mut host = Host::new();
    host.post_write(1, 4096);
    host.post_bare(2, FLUSH);
    assert_eq!(psns(&host.sent()), [500, 501, 502, 503, 504]);
    host.recv(written(504, 2));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1, 2])));
}

#[test]
fn p5_5_an_answer_of_another_kind_is_a_bad_response() {
    let aeth = Aeth { syndrome: Syndrome::Nak(REFUSED), msn: 0 };
    let refusing = Operation::ReadResponse { position: Only, aeth: Some(aeth) };
    for wrong in [
        read_response(Only, 500, 1, b"a"),
        read_response(First, 500, 1, &[1; 1024]),
        read_response(Last, 500, 1, b""),
        atomic_ack(500, 1, 7),
        Pkt::new(500, refusing, b""),
    ] {
        let mut host = Host::new();
        host.post_bare(1, FLUSH);
        assert_eq!(host.sent().len(), 1);
        host.recv(wrong.clone());
        assert_eq!((host.sent(), host.done()), (vec![], vec![(1, WcStatus::BadRespErr)]), "{wrong:?}");
    }
}

#[test]
fn a_refusal_fails_it_and_flushes_the_rest() {
    for (code, status) in [(INVALID, WcStatus::RemInvReqErr), (REFUSED, WcStatus::RemAccessErr)] {
        let mut host = Host::new();
        host.post_recv(9, 0, 8);
        host.post_write(1, 4);
        host.post_bare(2, FLUSH);
        host.post_write(3, 4);
        assert_eq!(host.sent().len(), 3);
        host.recv(nak(501, code, 1));
        assert_eq!(host.sent(), []);
        assert_eq!(host.done(), [(1, WcStatus::Success), (2, status), (3, WcStatus::WrFlushErr)]);
        assert_eq!(host.received(), flushed([9]));
    }
}

#[test]
fn p4_6_it_waits_for_no_depth_and_holds_no_fence_up() {
    let mut host = Host::with(Setup { max_rd_atomic: 1, ..Setup::default() });
    host.post_read(1, 4);
    host.post_bare(2, FLUSH);
    host.post_bare(3, FLUSH);
    host.post_read(4, 4);
    assert_eq!(psns(&host.sent()), [500, 501, 502], "the second READ waits");
    let mut host = Host::with(Setup { max_rd_atomic: 0, ..Setup::default() });
    host.post_bare(1, FLUSH);
    host.post(2, SendOp::Send { immediate: None }, SendFlags::FENCE, &[host.sge(0, 4)]);
    assert_eq!(psns(&host.sent()), [500, 501]);
}

#[test]
fn c48_data_of_its_own_is_refused_when_posted() {
    let mut host = Host::new();
    for data in [Gather::Sges(&[host.sge(0, 1)]), Gather::Inline(b"a")] {
        let wr = SendWr { wr_id: 1, op: FLUSH, flags: SendFlags::empty(), data, to: Recipient::Peer };
        assert!(matches!(host.try_post(&wr), Err(PostError::Invalid(_))));
    }
}
