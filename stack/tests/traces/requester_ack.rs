//! The requester and acknowledgements: in order, past, future, coalesced (protocol sections 4.4 and 5.5).

use crate::common::*;
use Position::{Middle, Only};

/// A host that has sent `count` SENDs, numbered from 0 on, with PSNs from 500 on.
fn host_with_sends(count: u64) -> Host {
    let mut host = Host::new();
    for wr_id in 0..count {
        host.post_send(wr_id, 4);
    }
    assert_eq!(host.sent().len() as u64, count);
    host
}

#[test]
fn an_acknowledgement_completes_what_it_names() {
    let mut host = host_with_sends(2);
    host.recv(ack(500, 1));
    let sent = host.sent();
    let [completion] = host.send_completions()[..] else { panic!("one completion") };
    assert_eq!((sent, completion.wr_id, completion.status), (vec![], 0, WcStatus::Success));
    assert_eq!((completion.opcode, completion.qp_num), (WcOpcode::Send, host.qpn));
    host.recv(ack(501, 2));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1])));
}

#[test]
fn p4_4_an_acknowledgement_covers_everything_before() {
    let mut host = host_with_sends(5);
    host.recv(ack(503, 4));
    assert_eq!((host.sent(), host.done()), (vec![], ok(0..4)));
}

#[test]
fn an_acknowledgement_in_the_middle_of_a_message_completes_nothing() {
    let mut host = Host::new();
    host.post_send(1, 4096);
    assert_eq!(host.sent().len(), 4);
    host.recv(ack(501, 0));
    assert_eq!((host.sent(), host.done()), (vec![], vec![]));
    host.advance(TIMEOUT);
    assert_eq!(host.sent(), [send(Middle, 502, &[0; 1024]).ack_req()]);
    host.recv(ack(503, 1));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1])));
}

#[test]
fn x08_an_acknowledgement_from_the_past_or_the_future_completes_nothing() {
    let mut host = host_with_sends(3);
    host.recv(ack(500, 1));
    assert_eq!((host.sent(), host.done()), (vec![], ok([0])));
    for ghost in [499, 500, 503, 504, 500 + (1 << 23), 501 + (1 << 23)] {
        for packet in [
            ack(ghost, 9),
            nak(ghost, NakCode::RemoteAccessError, 9),
            nak(ghost, NakCode::SequenceError, 9),
            rnr(ghost, 1, 9),
            read_response(Only, ghost, 9, &[0; 4]),
            atomic_ack(ghost, 9, 0),
        ] {
            host.recv(packet);
        }
    }
    assert_eq!((host.sent(), host.done(), host.state()), (vec![], vec![], QpState::Rts));
    assert_eq!(host.count(Counter::StaleResponse), 36);
}

#[test]
fn x08_an_answer_to_nothing_is_dropped() {
    let mut host = Host::new();
    for packet in [ack(500, 0), ack(499, 0), nak(500, NakCode::InvalidRequest, 0), rnr(500, 1, 0)] {
        host.recv(packet);
    }
    assert_eq!((host.sent(), host.done(), host.state()), (vec![], vec![], QpState::Rts));
    assert_eq!(host.count(Counter::StaleResponse), 4);
}

#[test]
fn x06_credits_are_ignored() {
    let mut host = host_with_sends(32);
    for credits in 0..32 {
        host.recv(acknowledge(500 + u32::from(credits), Syndrome::Ack { credits }, 1));
        assert_eq!((host.sent(), host.done()), (vec![], ok([credits.into()])));
    }
    host.post_send(99, 4);
    assert_eq!(host.sent().len(), 1, "none of them holds anything up");
}

#[test]
fn p4_3_the_message_count_of_the_peer_is_ignored() {
    let mut host = host_with_sends(1);
    host.recv(ack(500, 0xFF_FFFF));
    assert_eq!((host.sent(), host.done()), (vec![], ok([0])));
}

#[test]
fn p2_2_a_limited_member_may_acknowledge() {
    let mut host = host_with_sends(1);
    host.recv(ack(500, 1).pkey(0x7FFF));
    assert_eq!((host.sent(), host.done()), (vec![], ok([0])));
}

#[test]
fn p4_8_a_sequence_error_sends_again_from_there() {
    let mut host = host_with_sends(4);
    host.recv(nak(502, NakCode::SequenceError, 2));
    assert_eq!(host.sent(), [502, 503].map(|psn| send(Only, psn, &[0; 4]).ack_req()));
    assert_eq!(host.done(), ok([0, 1]), "what is before is acknowledged");
    assert_eq!((host.count(Counter::PacketSeqErr), host.count(Counter::RetransmittedPkts)), (1, 2));
    host.recv(ack(503, 4));
    assert_eq!((host.sent(), host.done()), (vec![], ok([2, 3])));
}

#[test]
fn p4_8_one_loss_is_one_retry_however_often_it_is_told() {
    let mut host = host_with_sends(3);
    for _ in 0..20 {
        host.recv(nak(500, NakCode::SequenceError, 0));
    }
    assert_eq!(host.sent().len(), 3);
    host.recv(nak(500, NakCode::SequenceError, 0));
    assert_eq!(
        (host.sent(), host.state()),
        (vec![], QpState::Rts),
        "until there is progress, the timer helps"
    );
    host.recv(nak(501, NakCode::SequenceError, 1));
    assert_eq!(host.sent().len(), 2, "progress, and another loss");
}

#[test]
fn p4_16_each_refusal_has_its_status_and_ends_the_connection() {
    let cases = [
        (0x61, WcStatus::RemInvReqErr),
        (0x62, WcStatus::RemAccessErr),
        (0x63, WcStatus::RemOpErr),
        (0x64, WcStatus::RemOpErr),
        (0x65, WcStatus::RemOpErr),
        (0x7F, WcStatus::RemOpErr),
    ];
    for (code, status) in cases {
        let mut host = host_with_sends(4);
        host.post_recv(9, 0, 4);
        host.recv(acknowledge(501, Syndrome::from_code(code), 1));
        let sent = host.sent();
        let completions = host.send_completions();
        let outcomes: Vec<_> =
            completions.iter().map(|completion| (completion.wr_id, completion.status)).collect();
        assert_eq!((sent, host.state()), (vec![], QpState::Err));
        let flush = WcStatus::WrFlushErr;
        assert_eq!(outcomes, [(0, WcStatus::Success), (1, status), (2, flush), (3, flush)], "{code:#x}");
        assert_eq!(completions[1].vendor_err, code.into());
        assert_eq!(host.received(), flushed([9]));
        assert_eq!(host.events(), [], "the completion tells");
    }
}

#[test]
fn p5_5_a_syndrome_without_a_meaning_is_a_bad_response() {
    for code in [0x40, 0x5F, 0x80, 0xFF] {
        let mut host = host_with_sends(2);
        host.recv(acknowledge(500, Syndrome::from_code(code), 1));
        assert_eq!(host.sent(), []);
        assert_eq!(host.done(), [(0, WcStatus::BadRespErr), (1, WcStatus::WrFlushErr)], "{code:#x}");
        assert_eq!(host.state(), QpState::Err);
    }
}

#[test]
fn p5_5_data_for_a_send_is_a_bad_response() {
    for response in
        [read_response(Only, 500, 1, &[0; 4]), read_response(Middle, 500, 1, &[0; 4]), atomic_ack(500, 1, 0)]
    {
        let mut host = host_with_sends(2);
        host.fill(0, &[9; 8]);
        host.recv(response.clone());
        assert_eq!(host.sent(), []);
        assert_eq!(host.done(), [(0, WcStatus::BadRespErr), (1, WcStatus::WrFlushErr)], "{response:?}");
        assert_eq!((host.state(), host.bytes(0, 8)), (QpState::Err, vec![9; 8]));
    }
}

#[test]
fn an_answer_after_the_end_changes_nothing() {
    let mut host = host_with_sends(2);
    host.recv(nak(500, NakCode::InvalidRequest, 0));
    host.recv(ack(501, 2));
    assert_eq!(host.sent(), []);
    assert_eq!(host.done(), [(0, WcStatus::RemInvReqErr), (1, WcStatus::WrFlushErr)]);
    assert_eq!(host.count(Counter::WrongState), 1);
}

#[test]
fn acknowledgements_out_of_order_complete_in_order() {
    let mut host = host_with_sends(3);
    host.recv_all([ack(502, 3), ack(501, 2), ack(500, 1)]);
    assert_eq!((host.sent(), host.done()), (vec![], ok(0..3)), "older ones are stale");
}
