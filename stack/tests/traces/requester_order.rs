//! What holds a send back: fences, and the depth of READs and atomics (protocol sections 4.5 and 4.6).

use crate::common::*;
use Position::Only;

const NONE: SendFlags = SendFlags::empty();
const SEND: SendOp = SendOp::Send { immediate: None };

fn psns(packets: &[Pkt]) -> Vec<u32> {
    packets.iter().map(|packet| packet.psn).collect()
}

fn answer(host: &mut Host, psn: u32) {
    host.recv(read_response(Only, psn, 1, &[7; 4]));
}

#[test]
fn c43_a_fence_waits_for_reads_and_not_for_sends() {
    let mut host = Host::new();
    let sge = [host.sge(0, 4)];
    host.post_read(1, 4);
    host.post(2, SEND, NONE, &sge);
    host.post(3, SendOp::Write { remote: FAR, immediate: None }, SendFlags::FENCE, &sge);
    assert_eq!(psns(&host.sent()), [500, 501], "the WRITE waits");
    answer(&mut host, 500);
    assert_eq!(
        host.sent(),
        [write(Only, 502, FAR, 4, &[7; 4]).ack_req()],
        "the SEND is not acknowledged yet"
    );
    host.recv(ack(502, 3));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1, 2, 3])));
}

#[test]
fn c43_a_fence_waits_for_every_read_before_it() {
    let mut host = Host::new();
    let sge = [host.sge(0, 4)];
    host.post_read(1, 4);
    host.post_read(2, 4);
    host.post(3, SEND, SendFlags::FENCE, &sge);
    host.post(4, SEND, NONE, &sge);
    assert_eq!(psns(&host.sent()), [500, 501]);
    answer(&mut host, 500);
    assert_eq!(host.sent(), [], "one of two; and nothing overtakes");
    answer(&mut host, 501);
    assert_eq!(psns(&host.sent()), [502, 503]);
}

#[test]
fn c43_a_fence_waits_for_atomics() {
    let mut host = Host::new();
    host.post_fetch_add(1, 0);
    host.post(2, SEND, SendFlags::FENCE, &[host.sge(0, 8)]);
    assert_eq!(psns(&host.sent()), [500]);
    host.recv(atomic_ack(500, 1, u64::from_ne_bytes(*b"former..")));
    assert_eq!(host.sent(), [send(Only, 501, b"former..").ack_req()], "the result is what is sent");
}

#[test]
fn c43_a_fence_holds_across_a_retry() {
    let mut host = Host::new();
    host.post_read(1, 4);
    host.post(2, SEND, SendFlags::FENCE, &[host.sge(0, 4)]);
    assert_eq!(psns(&host.sent()), [500]);
    host.advance(TIMEOUT);
    assert_eq!(psns(&host.sent()), [500]);
    answer(&mut host, 500);
    assert_eq!(psns(&host.sent()), [501]);
}

#[test]
fn a_fence_with_nothing_before_it_waits_for_nothing() {
    let mut host = Host::new();
    host.post(1, SEND, SendFlags::FENCE, &[host.sge(0, 4)]);
    host.post(2, SEND, SendFlags::FENCE, &[host.sge(0, 4)]);
    assert_eq!(psns(&host.sent()), [500, 501]);
}

#[test]
fn p4_5_without_a_fence_a_send_may_overtake_a_read() {
    let mut host = Host::new();
    host.post_read(1, 4);
    host.post(2, SEND, NONE, &[host.sge(0, 4)]);
    assert_eq!(psns(&host.sent()), [500, 501]);
}

#[test]
fn c30_no_more_reads_than_agreed_are_outstanding() {
    let mut host = Host::with(Setup { max_rd_atomic: 2, ..Setup::default() });
    for wr_id in 0..5 {
        host.post_read(wr_id, 4);
    }
    host.post_send(5, 4);
    assert_eq!(psns(&host.sent()), [500, 501]);
    for psn in 500..503 {
        answer(&mut host, psn);
        let next = host.sent();
        assert_eq!(next[0], read(psn + 2, FAR, 4).ack_req());
        assert_eq!(next.len(), if psn == 502 { 2 } else { 1 }, "the SEND follows the last READ");
    }
    answer(&mut host, 503);
    answer(&mut host, 504);
    host.recv(ack(505, 6));
    assert_eq!((host.sent(), host.done()), (vec![], ok(0..6)));
}

#[test]
fn c30_reads_and_atomics_share_the_depth() {
    let mut host = Host::with(Setup { max_rd_atomic: 1, ..Setup::default() });
    host.post_fetch_add(1, 0);
    host.post_read(2, 4);
    assert_eq!(psns(&host.sent()), [500]);
    host.recv(atomic_ack(500, 1, 0));
    assert_eq!(psns(&host.sent()), [501]);
}

#[test]
fn c30_the_depth_is_kept_across_a_retry() {
    let mut host = Host::with(Setup { max_rd_atomic: 2, ..Setup::default() });
    for wr_id in 0..4 {
        host.post_read(wr_id, 4);
    }
    assert_eq!(psns(&host.sent()), [500, 501]);
    host.advance(TIMEOUT);
    assert_eq!(psns(&host.sent()), [500]);
    host.advance(2 * TIMEOUT);
    answer(&mut host, 500);
    assert_eq!(psns(&host.sent()), [501, 502], "answered before it was sent again");
    answer(&mut host, 501);
    assert_eq!(psns(&host.sent()), [503]);
}

#[test]
fn c67_with_depth_0_a_read_fails_and_a_send_does_not() {
    let mut host = Host::with(Setup { max_rd_atomic: 0, ..Setup::default() });
    host.post_send(1, 4);
    host.post_read(2, 4);
    host.post_send(3, 4);
    assert_eq!(psns(&host.sent()), [500], "nothing of the READ, or behind it, leaves");
    assert_eq!((host.done(), host.state()), (vec![], QpState::Rts));
    host.recv(ack(500, 1));
    assert_eq!(host.sent(), []);
    assert_eq!(host.done(), [(1, WcStatus::Success), (2, WcStatus::LocQpOpErr), (3, WcStatus::WrFlushErr)]);
    assert_eq!(host.state(), QpState::Err);
}

#[test]
fn p4_5_sends_complete_in_posting_order_whatever_they_are() {
    let mut host = Host::new();
    host.post_send(1, 4);
    host.post_read(2, 4);
    host.post_write(3, 4);
    host.post_fetch_add(4, 0);
    host.post_send(5, 4);
    assert_eq!(psns(&host.sent()), [500, 501, 502, 503, 504]);
    answer(&mut host, 501);
    assert_eq!((host.sent(), host.done()), (vec![], ok([1, 2])));
    host.recv(atomic_ack(503, 4, 0));
    assert_eq!((host.sent(), host.done()), (vec![], ok([3, 4])));
    host.recv(ack(504, 5));
    assert_eq!((host.sent(), host.done()), (vec![], ok([5])));
}

/// A message of `length` bytes, a multiple of 32, out of little memory: 32 entries that all name the same.
fn long_message(host: &mut Host, length: u64) -> Vec<Sge> {
    let piece = length / 32;
    let region = Region::alloc(piece as usize);
    let keys = host
        .engine
        .register_mr(host.pd, region, 0, Access::LOCAL_WRITE | Access::REMOTE)
        .expect("room for a region");
    vec![Sge { addr: 0, length: piece as u32, lkey: keys.lkey }; 32]
}

#[test]
fn p4_2_less_than_half_the_psns_are_outstanding() {
    let mut host = Host::with(Setup { mtu: Mtu::B256, timeout: 0, ..Setup::default() });
    let sges = long_message(&mut host, 1 << 30);
    for wr_id in 0..2 {
        host.post(wr_id, SendOp::Read { remote: FAR }, NONE, &sges);
    }
    assert_eq!(host.sent(), [read(500, FAR, 1 << 30).ack_req()], "each takes 2^22");
    host.recv(read_response(Position::First, 500, 1, &[0; 256]));
    assert_eq!(host.sent(), [read(500 + (1 << 22), FAR, 1 << 30).ack_req()]);
}

#[test]
fn p4_2_a_message_that_takes_half_the_psns_is_too_long_for_its_path() {
    let mut host = Host::with(Setup { mtu: Mtu::B256, ..Setup::default() });
    let sges = long_message(&mut host, 1 << 31);
    host.post_send(1, 4);
    host.post(2, SendOp::Read { remote: FAR }, NONE, &sges);
    assert_eq!(psns(&host.sent()), [500]);
    host.recv(ack(500, 1));
    assert_eq!((host.sent(), host.done()), (vec![], vec![(1, WcStatus::Success), (2, WcStatus::LocLenErr)]));
}
