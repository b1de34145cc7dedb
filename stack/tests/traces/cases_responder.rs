//! Section B of the cases, where no other file has them: requests that are refused, one by one.

use crate::common::*;
use Position::{First, Last, Middle, Only};

const MTU: usize = 1024;

/// What the peer's last packet, after those that are accepted, is answered with; there are two receives of 4000 bytes.
fn answer_to(packets: impl IntoIterator<Item = Pkt>) -> (Host, Option<Pkt>) {
    let mut host = Host::new();
    host.post_recv(1, 32_768, 4000);
    host.post_recv(2, 40_960, 4000);
    host.recv_all(packets);
    let answer = host.sent().pop();
    (host, answer)
}

#[test]
fn c24_a_packet_is_as_long_as_its_position_says() {
    let send_of = |position, len| {
        send(position, if position == First || position == Only { 100 } else { 101 }, &vec![1; len])
    };
    for (position, allowed) in [(First, MTU..=MTU), (Middle, MTU..=MTU), (Last, 1..=MTU), (Only, 0..=MTU)] {
        for len in [0, 1, 4, 1023, 1024, 1025, 1028] {
            let opens = matches!(position, Middle | Last).then(|| send_of(First, MTU));
            let packet = send_of(position, len).ack_req();
            let psn = packet.psn;
            let (host, answer) = answer_to(opens.into_iter().chain([packet]));
            let is_allowed = allowed.contains(&len);
            let refusal = nak(psn, NakCode::InvalidRequest, 0);
            assert_eq!(answer == Some(refusal), !is_allowed, "{position:?} {len}");
            assert_eq!(host.state() == QpState::Rts, is_allowed, "{position:?} {len}");
        }
    }
}

#[test]
fn c24_the_packets_of_a_write_add_up_to_what_it_announced() {
    for (announced, sum) in
        [(2047, 2048), (2049, 2048), (1024, 2048), (3072, 2048), (2048, 2047), (2048, 1025)]
    {
        let mut host = Host::new();
        let at = host.at(0);
        host.recv(write(First, 100, at, announced, &[1; MTU]));
        host.recv(write_more(Last, 101, &vec![1; sum - MTU]).ack_req());
        let sent = host.sent();
        assert!(
            sent.iter().all(|packet| *packet == nak(packet.psn, NakCode::InvalidRequest, 0)),
            "{announced}"
        );
        assert_eq!((sent.len(), host.state()), (1, QpState::Err), "{announced} announced, {sum} sent");
    }
}

#[test]
fn c29_an_access_that_no_receive_tells_of_raises_an_event() {
    let requests = [
        write(Only, 100, FAR, 1, b"a"),
        read(100, FAR, 1),
        fetch_add(100, FAR, 1),
        compare_swap(100, FAR, 1, 2),
        atomic_write(100, FAR, &[1; 8]),
        write(Only, 100, FAR, 1, b"a").imm(1),
    ];
    for request in requests {
        let (mut host, answer) = answer_to([request.clone()]);
        assert_eq!(answer, Some(nak(100, NakCode::RemoteAccessError, 0)), "{request:?}");
        assert_eq!((host.state(), host.received()), (QpState::Err, flushed([1, 2])), "{request:?}");
        // A WRITE with immediate takes its receive with its last packet, so no receive has to tell of it either.
        assert_eq!(host.events(), [AsyncEvent::QpAccessErr(host.qpn)], "{request:?}");
    }
}

#[test]
fn c49_s23_addresses_that_wrap_reach_nothing() {
    for va in [u64::MAX - 7, u64::MAX, VA - 16] {
        for length in [16, 17, u32::MAX >> 1] {
            let remote = |host: &Host| RemoteAddr { va, rkey: host.keys.rkey };
            let requests: [fn(RemoteAddr, u32) -> Pkt; 3] = [
                |at, length| {
                    write(
                        if length <= 1024 { Only } else { First },
                        100,
                        at,
                        length,
                        &vec![1; length.min(1024) as usize],
                    )
                },
                |at, length| read(100, at, length),
                |at, _| fetch_add(100, RemoteAddr { va: at.va & !7, ..at }, 1),
            ];
            for request in requests {
                let mut host = Host::new();
                let request = request(remote(&host), length);
                host.recv(request.clone());
                assert_eq!(host.sent(), [nak(100, NakCode::RemoteAccessError, 0)], "{request:?}");
                assert!(host.bytes(0, AREA).iter().all(|byte| *byte == 0), "{request:?}");
            }
        }
    }
}

#[test]
fn c49_s23_the_longest_length_from_the_first_byte_is_refused() {
    let mut host = Host::new();
    host.recv(read(100, host.at(0), 1 << 31));
    assert_eq!(host.sent(), [nak(100, NakCode::RemoteAccessError, 0)]);
    let mut host = Host::new();
    host.recv(read(100, host.at(0), u32::MAX));
    assert_eq!(
        host.sent(),
        [nak(100, NakCode::InvalidRequest, 0)],
        "section 5.2, step 5b: no message is so long"
    );
}

/// An error in between, and what was delivered before it stays delivered once.
#[test]
fn s26_nothing_is_delivered_twice_around_an_error() {
    let mut host = Host::new();
    for wr_id in 1..=3 {
        host.post_recv(wr_id, 64 * wr_id, 64);
    }
    let delivered = [send(Only, 100, b"one").ack_req(), send(Only, 101, b"two").ack_req()];
    host.recv_all(delivered.clone());
    host.recv(read(102, FAR, 1));
    host.recv_all(delivered.clone());
    assert_eq!(host.sent(), [ack(101, 2), nak(102, NakCode::RemoteAccessError, 2)]);
    assert_eq!(host.received(), [ok([1, 2]), flushed([3])].concat());
    host.recv_all(delivered);
    assert_eq!((host.sent(), host.received()), (vec![], vec![]));
}
