//! Section A of the cases: frames, as the engine takes and sends them.

use crate::common::*;
use Position::Only;
use uroce_stack::wire::VlanTag;

/// An engine frame that carries five bytes.
fn sent_frame(host: &mut Host) -> Vec<u8> {
    host.post_write(1, 5);
    let mut frame = [0; 256];
    let len = host.engine.transmit(host.now, &mut frame).expect("the request");
    frame[..len].to_vec()
}

/// A WRITE of the peer, whose acceptance shows in an acknowledgement.
fn peer_frame(host: &Host) -> Vec<u8> {
    write(Only, 100, host.at(0), 5, b"hello").ack_req().frame(host.qpn)
}

fn is_accepted(frame: &[u8]) -> bool {
    let mut host = Host::new();
    host.engine.receive(host.now, frame, &[]);
    !host.sent().is_empty()
}

#[test]
fn c02_the_icrc_leaves_least_significant_byte_first() {
    let frame = sent_frame(&mut Host::new());
    let (packet, icrc) = frame[14..].split_last_chunk::<4>().expect("a frame has an ICRC");
    assert_eq!(*icrc, reference_icrc(packet, &[]));
}

#[test]
fn c03_no_bit_of_fecn_becn_and_the_reserved_six_is_covered() {
    let frame = peer_frame(&Host::new());
    for value in 0..=0xFF {
        let mut marked = frame.clone();
        marked[46] = value;
        assert!(is_accepted(&marked), "{value:#04x}");
        marked[46 + 4] ^= 1;
        assert!(!is_accepted(&marked), "the byte with AckReq is covered");
    }
}

#[test]
fn c05_s20_an_unknown_opcode_is_dropped_before_its_lengths_are_looked_at() {
    let config = Config::new([42; 32], Mtu::B4096);
    let mut engine = Engine::new(config).expect("the configuration is valid");
    let now = Instant::from_nanos(0);
    let template = peer_frame(&Host::new());
    let mut unknown = 0;
    for opcode in 0..=0xFFu8 {
        for len in [16, 20, 48] {
            let mut frame = template.clone();
            (frame[42], frame[43]) = (opcode, 0x3F);
            frame[47..50].fill(0xFF);
            set_transport_len(&mut frame, len);
            engine.receive(now, &frame, &[]);
        }
        let counted = engine.counters().get(Counter::UnknownOpcode);
        assert!([unknown, unknown + 3].contains(&counted), "{opcode:#04x}: all or none");
        unknown = counted;
    }
    assert_eq!(engine.transmit(now, &mut [0; 4096 + MAX_HEADER]), None, "nobody is answered");
    assert!(unknown >= 3 * 100, "{unknown}");
    assert_eq!(engine.next_event(), None);
}

#[test]
fn c06_s21_lengths_are_checked_with_headers_pad_and_icrc_together() {
    for len in 16..60 {
        for pad in 0..4 {
            let mut host = Host::new();
            host.post_recv(1, 0, 64);
            let mut frame = send(Only, 100, &[7; 16]).ack_req().frame(host.qpn);
            frame[43] = frame[43] & 0xCF | pad << 4;
            set_transport_len(&mut frame, len);
            host.engine.receive(host.now, &frame, &[]);
            let fits = len >= 16 + usize::from(pad);
            assert_eq!(!host.sent().is_empty(), fits, "{len} {pad}");
            assert_eq!(host.count(Counter::BadLength) == 0, fits, "{len} {pad}");
            let expected = if fits { len - 16 - usize::from(pad) } else { 0 };
            let received: Vec<_> = host.recv_completions().iter().map(|wc| wc.byte_len as usize).collect();
            assert_eq!(received, if fits { vec![expected] } else { vec![] }, "{len} {pad}");
            if !fits {
                host.recv(send(Only, 100, b"next").ack_req());
                assert_eq!(host.sent(), [ack(100, 1)], "neither PSN nor receive was used up");
            }
        }
    }
}

/// Identification, lengths, flags and fragment offset are covered as they are on the wire.
#[test]
fn c08_the_icrc_is_that_of_the_final_headers() {
    let mut host = Host::new();
    for _ in 0..3 {
        let frame = sent_frame(&mut host);
        let (packet, icrc) = frame[14..].split_last_chunk::<4>().expect("a frame has an ICRC");
        assert_eq!(usize::from(u16::from_be_bytes([packet[2], packet[3]])), frame.len() - 14);
        assert_eq!(packet[6..8], [0x40, 0], "DF");
        for at in [2, 3, 4, 5, 6, 7, 20, 21, 24, 25] {
            let mut changed = packet.to_vec();
            changed[at] ^= 1;
            assert_ne!(*icrc, reference_icrc(&changed, &[]), "byte {at}");
        }
        assert_eq!(*icrc, reference_icrc(packet, &[]));
    }
}

#[test]
fn c09_any_source_port_is_heard_if_the_icrc_covers_it() {
    let host = Host::new();
    let packet = write(Only, 100, host.at(0), 5, b"hello").ack_req();
    for source_port in [0, 69, 72, 1234, 4791, 49_151, 49_152, 65_535] {
        let path = Path { source_port, ..packet.path() };
        let mut frame = packet.frame_along(&path, host.qpn);
        assert!(is_accepted(&frame), "{source_port}");
        frame[35] ^= 1;
        assert!(!is_accepted(&frame), "{source_port}: rewritten on the way");
    }
}

#[test]
fn c09_our_own_source_port_is_that_of_the_path_in_every_packet() {
    let mut host = Host::new();
    for _ in 0..5 {
        assert_eq!(sent_frame(&mut host)[34..36], 0xC000_u16.to_be_bytes());
    }
}

/// A stack without `std` has no log; what it has instead are counters, one for each frame, and no event.
#[test]
fn c15_s32_rubbish_raises_counters_and_nothing_else() {
    let mut host = Host::new();
    let mut rubbish = peer_frame(&host);
    rubbish[60] ^= 1;
    let stray = Pkt { dest_qp: Some(Qpn::new(7)), ..send(Only, 100, b"a") }.frame(host.qpn);
    for _ in 0..50_000 {
        host.engine.receive(host.now, &rubbish, &[]);
        host.engine.receive(host.now, &stray, &[]);
    }
    assert_eq!((host.count(Counter::IcrcErrors), host.count(Counter::UnknownQp)), (50_000, 50_000));
    assert_eq!((host.sent(), host.events(), host.notified.len()), (vec![], vec![], 0));
}

/// A host whose path leads through VLAN 10 with priority 3, and the tag as bytes.
fn in_vlan() -> (Host, [u8; 4]) {
    let mut host = Host::with(Setup { state: QpState::Init, ..Setup::default() });
    let vlan = Some(VlanTag { pcp: 3, dei: false, id: 10 });
    let path = Some(Path { vlan, ..path(HOST, PEER) });
    host.modify(&QpAttr { path, ..attr_to(QpState::Rtr, &host.setup) });
    host.modify(&attr_to(QpState::Rts, &host.setup));
    (host, [0x81, 0, 0x60, 10])
}

#[test]
fn c74_frames_are_tagged_and_the_tag_is_not_covered() {
    let (mut host, tag) = in_vlan();
    let (tagged, untagged) = (sent_frame(&mut host), sent_frame(&mut Host::new()));
    assert_eq!(tagged[..12], untagged[..12]);
    assert_eq!(tagged[12..16], tag);
    assert_eq!(tagged[16..], untagged[12..], "the ICRC too");
}

#[test]
fn c74_tagged_frames_of_the_peer_are_heard() {
    let (mut host, tag) = in_vlan();
    let mut frame = peer_frame(&host);
    frame.splice(12..12, tag);
    host.engine.receive(host.now, &frame, &[]);
    assert_eq!(host.bytes(0, 5), b"hello");
}

/// Tags of another kind, two tags, the shortest frames, cut frames.
#[test]
fn x07_odd_frames_are_dropped_without_harm() {
    let host = Host::new();
    let good = peer_frame(&host);
    let tags: [&[u8]; 3] = [&[0x88, 0xA8, 0, 10], &[0x81, 0, 0, 10, 0x81, 0, 0, 10], &[0x91, 0, 0, 10]];
    for tag in tags {
        let mut frame = good.clone();
        frame.splice(12..12, tag.iter().copied());
        assert!(!is_accepted(&frame), "{tag:02x?}");
    }
    for len in 0..good.len() {
        assert!(!is_accepted(&good[..len]), "{len}");
    }
    let mut padded = good.clone();
    padded.resize(good.len() + 60, 0);
    assert!(is_accepted(&padded), "padding behind the packet");
}
