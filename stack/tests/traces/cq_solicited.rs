//! Notifications for solicited events alone: which completions are good for one (protocol section 4.16).

use crate::common::*;
use Position::{First, Last, Only};

/// Both queues are armed for solicited events, three receives are posted, and rights are given to everything.
fn armed() -> Host {
    let mut host = Host::open();
    for index in 0..3 {
        host.post_recv(index, 32_768 + 4096 * index, 4096);
    }
    arm(&mut host);
    host
}

fn arm(host: &mut Host) {
    host.send_reader.arm(true);
    host.recv_reader.arm(true);
}

/// The queues that these packets of the peer notify.
fn notified_by(host: &mut Host, packets: impl IntoIterator<Item = Pkt>) -> Vec<Cq> {
    host.recv_all(packets);
    host.sent();
    std::mem::take(&mut host.notified)
}

#[test]
fn p4_16_a_message_that_asks_for_it_notifies_the_receive_queue() {
    let mut host = armed();
    let quiet = [send(Only, 100, b"a").ack_req()];
    assert_eq!(notified_by(&mut host, quiet), []);
    let recv_cq = host.recv_cq;
    let asks: [fn(&mut Host) -> Vec<Pkt>; 3] = [
        |_| vec![send(Only, 100, b"a").solicited()],
        |host| vec![write(Only, 100, host.at(0), 1, b"a").imm(1).solicited()],
        |host| {
            let (_, at) = host.registered(64);
            vec![send_invalidate(Only, 100, at.rkey, b"a").solicited()]
        },
    ];
    for ask in asks {
        let mut host = armed();
        let packets = ask(&mut host);
        host.notified.clear();
        assert_eq!(notified_by(&mut host, packets), [recv_cq]);
    }
}

/// SE counts where a receive completes (section 2.1).
#[test]
fn p4_16_se_on_any_other_packet_is_ignored() {
    let mut host = armed();
    let quiet = [
        send(First, 100, &[0; 1024]).solicited(),
        send(Last, 101, b"a"),
        write(Only, 102, host.at(0), 1, b"a").solicited(),
        read(103, host.at(0), 1).solicited(),
        fetch_add(104, host.at(0), 1).solicited(),
        atomic_write(105, host.at(0), &[0; 8]).solicited(),
        flush(106, host.at(0), 8).solicited(),
    ];
    assert_eq!(notified_by(&mut host, quiet), []);
    assert_eq!((host.received(), host.state()), (ok([0]), QpState::Rts));
}

#[test]
fn p4_16_no_send_that_succeeds_notifies() {
    let mut host = armed();
    host.post(1, SendOp::Send { immediate: None }, SendFlags::SOLICITED, &[host.sge(0, 4)]);
    host.post_read(2, 4);
    assert_eq!(host.sent().len(), 2);
    let answers = [ack(500, 1), read_response(Only, 501, 2, &[0; 4])];
    assert_eq!(notified_by(&mut host, answers), []);
    assert_eq!(host.done(), ok([1, 2]));
}

/// Against rxe, which does not notify for sends that fail (section 4.16): the specification says any completion
/// without success.
#[test]
fn p4_16_whatever_fails_notifies() {
    let mut host = armed();
    host.post_send(1, 4);
    assert_eq!(host.sent().len(), 1);
    let mut both = notified_by(&mut host, [nak(500, NakCode::RemoteAccessError, 0)]);
    both.sort_by_key(|cq| *cq == host.recv_cq);
    assert_eq!(both, [host.send_cq, host.recv_cq], "the send failed, and the receives were flushed");

    let mut host = armed();
    host.modify(&QpAttr::to(QpState::Err));
    assert_eq!(notified_by(&mut host, []), [host.recv_cq], "flushed receives");
    arm(&mut host);
    host.post_send(1, 4);
    assert_eq!(notified_by(&mut host, []), [host.send_cq], "a flushed send");
}

#[test]
fn p4_16_one_among_many_is_enough() {
    let mut host = armed();
    let packets = [send(Only, 100, b"a"), send(Only, 101, b"b").solicited(), send(Only, 102, b"c").ack_req()];
    assert_eq!(notified_by(&mut host, packets), [host.recv_cq]);
    assert_eq!(host.received(), ok(0..3));
}

/// What was solicited before the queue was armed does not notify; [`CompletionReader::arm`] tells that it waits.
#[test]
fn p4_16_what_came_before_arming_does_not_notify() {
    let mut host = Host::open();
    host.post_recv(1, 0, 64);
    host.post_recv(2, 64, 64);
    assert_eq!(notified_by(&mut host, [send(Only, 100, b"a").solicited()]), []);
    assert!(host.recv_reader.arm(true));
    assert_eq!(notified_by(&mut host, [send(Only, 101, b"b").ack_req()]), []);
    assert_eq!(host.received(), ok([1, 2]));
}
