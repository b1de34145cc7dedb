//! The requester cuts messages into packets (protocol sections 4.1 and 4.4).

use crate::common::*;
use Position::{First, Last, Middle, Only};

const MTU: usize = 1024;
const LENGTHS: [usize; 7] = [0, 1, 2, MTU - 1, MTU, MTU + 1, 10 * MTU + 5];

/// The packets that a message of `data` takes, the last of which asks for an acknowledgement.
fn cut(data: &[u8], packet: impl Fn(Position, u32, &[u8]) -> Pkt) -> Vec<Pkt> {
    let pieces: Vec<&[u8]> = if data.is_empty() { vec![data] } else { data.chunks(MTU).collect() };
    let count = pieces.len();
    let one = |(index, piece): (usize, &&[u8])| {
        let position = match (index == 0, index + 1 == count) {
            (true, true) => Only,
            (true, false) => First,
            (false, true) => Last,
            (false, false) => Middle,
        };
        let packet = packet(position, 500 + index as u32, piece);
        if position.is_end() { packet.ack_req() } else { packet }
    };
    pieces.iter().enumerate().map(one).collect()
}

/// A host whose first bytes are a pattern.
fn host_with_data(len: usize) -> (Host, Vec<u8>) {
    let host = Host::new();
    host.fill(0, &pattern(len));
    (host, pattern(len))
}

#[test]
fn send_is_cut_by_position() {
    for len in LENGTHS {
        let (mut host, data) = host_with_data(len);
        host.post_send(1, len as u32);
        assert_eq!(host.sent(), cut(&data, send), "{len}");
        host.recv(ack(500 + len.div_ceil(MTU).max(1) as u32 - 1, 1));
        assert_eq!((host.sent(), host.done()), (vec![], ok([1])), "{len}");
    }
}

#[test]
fn the_immediate_and_the_event_are_asked_for_in_the_last_packet_only() {
    for len in LENGTHS {
        let (mut host, data) = host_with_data(len);
        let op = SendOp::Send { immediate: Some(7) };
        host.post(1, op, SendFlags::SOLICITED, &[host.sge(0, len as u32)]);
        let mut expected = cut(&data, send);
        let last = expected.pop().expect("at least one packet").imm(7).solicited();
        expected.push(last);
        assert_eq!(host.sent(), expected, "{len}");
    }
}

#[test]
fn write_names_its_target_in_the_first_packet_only() {
    for len in LENGTHS {
        let (mut host, data) = host_with_data(len);
        host.post_write(1, len as u32);
        let packet = |position: Position, psn, piece: &[u8]| {
            if position.is_start() {
                write(position, psn, FAR, len as u32, piece)
            } else {
                write_more(position, psn, piece)
            }
        };
        assert_eq!(host.sent(), cut(&data, packet), "{len}");
    }
}

#[test]
fn write_with_immediate_carries_it_in_the_last_packet() {
    let (mut host, data) = host_with_data(MTU + 1);
    let op = SendOp::Write { remote: FAR, immediate: Some(9) };
    host.post(1, op, SendFlags::SOLICITED, &[host.sge(0, 1025)]);
    let first = write(First, 500, FAR, 1025, &data[..MTU]);
    assert_eq!(host.sent(), [first, write_more(Last, 501, &data[MTU..]).imm(9).solicited().ack_req()]);
}

#[test]
fn an_event_is_asked_for_only_where_a_receive_completes() {
    let mut host = Host::new();
    let sge = [host.sge(0, 8)];
    host.post(1, SendOp::Write { remote: FAR, immediate: None }, SendFlags::SOLICITED, &sge);
    host.post(2, SendOp::Read { remote: FAR }, SendFlags::SOLICITED, &sge);
    host.post(3, SendOp::FetchAdd { remote: FAR, add: 1 }, SendFlags::SOLICITED, &sge);
    assert!(host.sent().iter().all(|packet| !packet.solicited));
}

#[test]
fn p4_4_an_acknowledgement_is_asked_for_every_64_packets() {
    let mut host = Host::with(Setup { mtu: Mtu::B256, window: 1024, ..Setup::default() });
    host.post_send(1, 200 * 256);
    let asking: Vec<usize> = host
        .sent()
        .iter()
        .enumerate()
        .filter(|(_, packet)| packet.ack_request)
        .map(|(index, _)| index)
        .collect();
    assert_eq!(asking, [63, 127, 191, 199]);
}

#[test]
fn p4_4_each_message_asks_for_its_acknowledgement() {
    let mut host = Host::new();
    for wr_id in 0..3 {
        host.post_send(wr_id, 5);
    }
    let packet = |psn| send(Only, psn, &[0; 5]).ack_req();
    assert_eq!(host.sent(), [packet(500), packet(501), packet(502)]);
}

#[test]
fn p4_4_the_window_stalls_and_the_packet_before_the_stall_asks() {
    let mut host = Host::with(Setup { mtu: Mtu::B256, window: 8, ..Setup::default() });
    host.post_send(1, 20 * 256);
    let sent = host.sent();
    assert_eq!(sent.iter().map(|packet| packet.psn).collect::<Vec<_>>(), (500..508).collect::<Vec<_>>());
    assert_eq!(
        sent.iter().map(|packet| packet.ack_request).collect::<Vec<_>>(),
        [false, false, false, false, false, false, false, true]
    );
    assert_eq!(host.sent(), []);
    host.recv(ack(503, 0));
    let sent = host.sent();
    assert_eq!(sent.iter().map(|packet| packet.psn).collect::<Vec<_>>(), [508, 509, 510, 511]);
    assert!(sent[3].ack_request);
    host.recv(ack(511, 0));
    assert_eq!(host.sent().len(), 8);
    assert_eq!(host.done(), []);
    host.recv(ack(519, 1));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1])));
}

#[test]
fn c16_sending_goes_on_across_the_wrap() {
    let mut host = Host::with(Setup { sq_psn: 0xFF_FFFA, window: 64, ..Setup::default() });
    for index in 0..20 {
        host.post_send(index.into(), 4);
        assert_eq!(host.sent(), [send(Only, 0xFF_FFFA + index, &[0; 4]).ack_req()]);
    }
    for index in 0..20 {
        host.recv(ack(0xFF_FFFA + index, index + 1));
        assert_eq!((host.sent(), host.done()), (vec![], ok([index.into()])));
    }
}

#[test]
fn c16_a_read_takes_psns_across_the_wrap() {
    let mut host = Host::with(Setup { sq_psn: 0xFF_FFFE, ..Setup::default() });
    host.post_read(1, 4 * 1024);
    host.post_send(2, 4);
    assert_eq!(host.sent(), [read(0xFF_FFFE, FAR, 4096).ack_req(), send(Only, 2, &[0; 4]).ack_req()]);
    for (index, position) in [First, Middle, Middle, Last].into_iter().enumerate() {
        host.recv(read_response(position, 0xFF_FFFE + index as u32, 1, &[7; MTU]));
    }
    host.recv(ack(2, 2));
    assert_eq!((host.sent(), host.done()), (vec![], ok([1, 2])));
}

#[test]
fn a_message_is_gathered_from_32_entries() {
    let (mut host, data) = host_with_data(4096);
    let pieces: Vec<Sge> = (0..32).map(|index| host.sge(100 * (31 - index), 33)).collect();
    host.post(1, SendOp::Send { immediate: None }, SendFlags::empty(), &pieces);
    let expected: Vec<u8> = (0..32).flat_map(|index| data[100 * (31 - index)..][..33].to_vec()).collect();
    let sent = host.sent();
    assert_eq!([&sent[0].payload[..], &sent[1].payload[..]].concat(), expected);
}

#[test]
fn inline_data_is_taken_when_it_is_posted() {
    let mut host = Host::new();
    let mut buffer = pattern(512);
    let op = SendOp::Send { immediate: None };
    host.try_post(&SendWr {
        wr_id: 1,
        op,
        flags: SendFlags::INLINE,
        data: Gather::Inline(&buffer),
        to: Recipient::Peer,
    })
    .expect("fits");
    buffer.fill(0);
    assert_eq!(host.sent(), [send(Only, 500, &pattern(512)).ack_req()]);
    host.advance(TIMEOUT);
    assert_eq!(host.sent(), [send(Only, 500, &pattern(512)).ack_req()], "and again when it is sent again");
}

#[test]
fn inline_data_is_cut_like_any_other() {
    let mut host = Host::with(Setup { mtu: Mtu::B256, ..Setup::default() });
    let data = pattern(300);
    let op = SendOp::Write { remote: FAR, immediate: None };
    host.try_post(&SendWr {
        wr_id: 1,
        op,
        flags: SendFlags::empty(),
        data: Gather::Inline(&data),
        to: Recipient::Peer,
    })
    .expect("fits");
    assert_eq!(
        host.sent(),
        [write(First, 500, FAR, 300, &data[..256]), write_more(Last, 501, &data[256..]).ack_req()]
    );
}

#[test]
fn nothing_leaves_before_the_doorbell() {
    let mut host = Host::new();
    assert_eq!(host.sent(), []);
    let sge = [host.sge(0, 4)];
    let op = SendOp::Send { immediate: None };
    let wr = |wr_id| SendWr {
        wr_id,
        op,
        flags: SendFlags::empty(),
        data: Gather::Sges(&sge),
        to: Recipient::Peer,
    };
    host.sends.push(&wr(1)).expect("room");
    assert!(!host.engine.has_work());
    assert_eq!(host.sent(), []);
    host.sends.abort();
    host.sends.push(&wr(2)).expect("room");
    host.sends.ring_doorbell();
    assert!(host.engine.has_work());
    assert_eq!(host.sent().len(), 1);
    host.recv(ack(500, 1));
    assert_eq!((host.sent(), host.done()), (vec![], ok([2])), "what was taken back never was");
}
