//! The requester and ATOMIC WRITE (IBTA A19; protocol sections 2.4, 4.6 and 4.8).

use crate::common::*;
use Position::{First, Last, Middle, Only};
use uroce_stack::wire::{Aeth, Operation};

const INVALID: NakCode = NakCode::InvalidRequest;
const WRITE: SendOp = SendOp::AtomicWrite { remote: FAR };

fn psns(packets: &[Pkt]) -> Vec<u32> {
    packets.iter().map(|packet| packet.psn).collect()
}

/// One ATOMIC WRITE of the first eight bytes of the region.
fn post(host: &mut Host, wr_id: u64) {
    host.post(wr_id, WRITE, SendFlags::empty(), &[host.sge(0, 8)]);
}

#[test]
fn the_value_leaves_as_it_lies_and_the_answer_completes_it() {
    let mut host = Host::new();
    host.fill(0, b"abcdefgh");
    host.post(1, WRITE, SendFlags::empty(), &[host.sge(5, 3), host.sge(0, 5)]);
    let inline = SendWr {
        wr_id: 2,
        op: WRITE,
        flags: SendFlags::empty(),
        data: Gather::Inline(b"inlined!"),
        to: Recipient::Peer,
    };
    host.try_post(&inline).expect("ATOMIC WRITE takes inline data");
    let sent = [b"fghabcde", b"inlined!"];
    let expected = [500, 501].map(|psn| atomic_write(psn, FAR, sent[psn as usize - 500]).ack_req());
    assert_eq!(host.sent(), expected);
    host.recv(written(500, 1));
    let sent = host.sent();
    let [completion] = host.send_completions()[..] else { panic!("one completion") };
    assert_eq!((sent, completion.wr_id, completion.status), (vec![], 1, WcStatus::Success));
    assert_eq!((completion.opcode, completion.byte_len), (WcOpcode::AtomicWrite, 8));
    host.recv(written(501, 2));
    assert_eq!((host.sent(), host.done()), (vec![], ok([2])));
    assert_eq!(host.bytes(0, 8), b"abcdefgh", "no result lands here");
}

#[test]
fn p4_8_a_lost_answer_repeats_the_request() {
    let mut host = Host::new();
    post(&mut host, 1);
    let sent = host.sent();
    host.advance(TIMEOUT);
    assert_eq!(host.sent(), sent);
    host.recv(written(500, 1));
    host.recv(written(500, 1));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1])));
    assert_eq!(host.count(Counter::StaleResponse), 1);
}

#[test]
fn c33_a_later_answer_is_an_implied_nak() {
    let later: [fn(&mut Host); 3] = [
        |host| host.recv(ack(501, 2)),
        |host| host.recv(rnr(501, 1, 1)),
        |host| host.recv(nak(501, NakCode::RemoteAccessError, 1)),
    ];
    for answer in later {
        let mut host = Host::new();
        post(&mut host, 1);
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

/// rxe as a requester takes a plain acknowledgement for the answer (section 9.1, 11); the specification does not.
#[test]
fn a_plain_acknowledgement_is_no_answer() {
    let mut host = Host::new();
    post(&mut host, 1);
    let sent = host.sent();
    host.recv(ack(500, 1));
    assert_eq!((host.sent(), host.done()), (sent, vec![]));
}

#[test]
fn the_answer_covers_what_was_sent_before() {
    let mut host = Host::new();
    host.post_send(1, 4);
    host.post_write(2, 4);
    post(&mut host, 3);
    assert_eq!(host.sent().len(), 3);
    host.recv(written(502, 3));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1, 2, 3])));
}

#[test]
fn p5_5_an_answer_of_another_kind_is_a_bad_response() {
    let aeth = Aeth { syndrome: Syndrome::Nak(NakCode::RemoteAccessError), msn: 0 };
    let refusing = Operation::ReadResponse { position: Only, aeth: Some(aeth) };
    for wrong in [
        read_response(Only, 500, 1, &[1; 8]),
        read_response(First, 500, 1, &[1; 1024]),
        read_response(Middle, 500, 1, &[1; 1024]),
        read_response(Last, 500, 1, b""),
        atomic_ack(500, 1, 7),
        Pkt::new(500, refusing, b""),
    ] {
        let mut host = Host::new();
        host.fill(0, &[9; 8]);
        post(&mut host, 1);
        assert_eq!(host.sent().len(), 1);
        host.recv(wrong.clone());
        assert_eq!((host.sent(), host.done()), (vec![], vec![(1, WcStatus::BadRespErr)]), "{wrong:?}");
        assert_eq!((host.bytes(0, 8), host.state()), (vec![9; 8], QpState::Err), "{wrong:?}");
    }
}

#[test]
fn a_refusal_fails_it_with_its_status_and_flushes_the_rest() {
    for (code, status) in [
        (INVALID, WcStatus::RemInvReqErr),
        (NakCode::RemoteAccessError, WcStatus::RemAccessErr),
        (NakCode::RemoteOperationalError, WcStatus::RemOpErr),
    ] {
        let mut host = Host::new();
        host.post_recv(9, 0, 8);
        host.post_send(1, 4);
        post(&mut host, 2);
        host.post_send(3, 4);
        assert_eq!(host.sent().len(), 3);
        host.recv(nak(501, code, 1));
        assert_eq!(host.sent(), []);
        assert_eq!(host.done(), [(1, WcStatus::Success), (2, status), (3, WcStatus::WrFlushErr)]);
        assert_eq!((host.received(), host.state()), (flushed([9]), QpState::Err));
    }
}

#[test]
fn c30_it_takes_its_part_of_the_depth() {
    let mut host = Host::with(Setup { max_rd_atomic: 2, ..Setup::default() });
    post(&mut host, 1);
    host.post_read(2, 4);
    post(&mut host, 3);
    assert_eq!(psns(&host.sent()), [500, 501], "the third waits");
    host.recv(written(500, 1));
    assert_eq!(psns(&host.sent()), [502]);
    host.recv(read_response(Only, 501, 2, &[0; 4]));
    host.recv(written(502, 3));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1, 2, 3])));
}

#[test]
fn c67_with_depth_0_it_fails_locally() {
    let mut host = Host::with(Setup { max_rd_atomic: 0, ..Setup::default() });
    post(&mut host, 1);
    assert_eq!((host.sent(), host.done()), (vec![], vec![(1, WcStatus::LocQpOpErr)]));
}

#[test]
fn c43_a_fence_waits_for_it() {
    let mut host = Host::new();
    post(&mut host, 1);
    host.post(2, SendOp::Send { immediate: None }, SendFlags::FENCE, &[host.sge(0, 4)]);
    assert_eq!(psns(&host.sent()), [500]);
    host.recv(written(500, 1));
    assert_eq!(psns(&host.sent()), [501]);
}

#[test]
fn c56_a_value_that_may_not_be_read_fails_locally() {
    let mut host = Host::new();
    let bad = Sge { lkey: !host.keys.lkey, ..host.sge(0, 8) };
    host.post(1, WRITE, SendFlags::empty(), &[bad]);
    assert_eq!((host.sent(), host.done()), (vec![], vec![(1, WcStatus::LocProtErr)]));
    let mut host = Host::new();
    post(&mut host, 1);
    assert_eq!(host.sent().len(), 1);
    host.engine.deregister_mr(host.keys.lkey).expect("the region is registered");
    host.advance(TIMEOUT);
    assert_eq!((host.sent(), host.done()), (vec![], vec![(1, WcStatus::LocProtErr)]));
}

/// Only its own memory is read, so a region that may not be written will do.
#[test]
fn the_value_may_come_from_memory_that_is_only_read() {
    let mut host = Host::new();
    let keys = host.engine.register_mr(host.pd, Region::alloc(8), 0, Access::empty()).expect("room");
    host.post(1, WRITE, SendFlags::empty(), &[Sge { addr: 0, length: 8, lkey: keys.lkey }]);
    assert_eq!(host.sent(), [atomic_write(500, FAR, &[0; 8]).ack_req()]);
}

#[test]
fn c48_other_lengths_are_refused_when_posted() {
    let mut host = Host::new();
    let [seven, nine] = [host.sge(0, 7), host.sge(0, 9)].map(|sge| [sge]);
    for data in [
        Gather::Sges(&[]),
        Gather::Sges(&seven),
        Gather::Sges(&nine),
        Gather::Inline(b""),
        Gather::Inline(b"seven b"),
        Gather::Inline(b"nine byte"),
    ] {
        let wr = SendWr { wr_id: 1, op: WRITE, flags: SendFlags::empty(), data, to: Recipient::Peer };
        assert!(matches!(host.try_post(&wr), Err(PostError::Invalid(_))), "{data:?}");
    }
}
