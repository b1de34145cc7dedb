//! The responder and RDMA WRITE, with and without immediate.

use crate::common::*;
use Position::{First, Last, Middle, Only};

const MTU: usize = 1024;

#[test]
fn write_in_order_is_placed_and_acknowledged() {
    let mut host = Host::new();
    host.recv(write(Only, 100, host.at(3), 5, b"hello").ack_req());
    assert_eq!(host.sent(), [ack(100, 1)]);
    assert_eq!(host.bytes(0, 12), b"\0\0\0hello\0\0\0\0");
    assert_eq!(host.received(), [], "a plain WRITE completes nothing");
}

#[test]
fn write_of_many_packets_is_one_message() {
    let mut host = Host::new();
    let data = pattern(3 * MTU + 1);
    host.recv(write(First, 100, host.at(8), data.len() as u32, &data[..MTU]));
    host.recv(write_more(Middle, 101, &data[MTU..2 * MTU]));
    host.recv(write_more(Middle, 102, &data[2 * MTU..3 * MTU]).ack_req());
    assert_eq!(host.sent(), [ack(102, 0)]);
    host.recv(write_more(Last, 103, &data[3 * MTU..]).ack_req());
    assert_eq!(host.sent(), [ack(103, 1)]);
    assert_eq!(host.bytes(8, data.len()), data);
}

#[test]
fn c17_duplicate_write_is_acked_not_executed() {
    let mut host = Host::new();
    host.recv(write(Only, 100, host.at(0), 3, b"new").ack_req());
    assert_eq!(host.sent(), [ack(100, 1)]);
    host.fill(0, b"own");
    host.recv(write(Only, 100, host.at(0), 3, b"new").ack_req());
    host.recv(write(Only, 100, host.at(0), 3, b"new"));
    assert_eq!(host.sent(), [ack(100, 1)]);
    assert_eq!(host.bytes(0, 3), b"own");
}

#[test]
fn future_write_is_a_gap() {
    let mut host = Host::new();
    host.recv(write(Only, 101, host.at(0), 3, b"new").ack_req());
    assert_eq!(host.sent(), [nak(100, NakCode::SequenceError, 0)]);
    assert_eq!(host.bytes(0, 3), [0; 3]);
}

#[test]
fn p4_8_a_write_goes_on_where_it_was_lost() {
    let mut host = Host::new();
    let data = pattern(3 * MTU);
    host.recv(write(First, 100, host.at(0), data.len() as u32, &data[..MTU]));
    host.recv(write_more(Last, 102, &data[2 * MTU..]).ack_req());
    assert_eq!(host.sent(), [nak(101, NakCode::SequenceError, 0)]);
    host.recv(write_more(Middle, 101, &data[MTU..2 * MTU]));
    host.recv(write_more(Last, 102, &data[2 * MTU..]).ack_req());
    assert_eq!(host.sent(), [ack(102, 1)]);
    assert_eq!(host.bytes(0, data.len()), data);
}

#[test]
fn c22_zero_length_write_ignores_key_and_address_also_when_duplicated() {
    let mut host = Host::new();
    let nowhere = RemoteAddr { va: u64::MAX, rkey: 0xDEAD_BEEF };
    host.recv(write(Only, 100, nowhere, 0, b"").ack_req());
    assert_eq!(host.sent(), [ack(100, 1)]);
    host.recv(write(Only, 100, nowhere, 0, b"").ack_req());
    assert_eq!(host.sent(), [ack(100, 1)]);
    host.recv(write(Only, 101, host.at(0), 1, b"a").ack_req());
    assert_eq!(host.sent(), [ack(101, 2)], "it took one PSN");
}

#[test]
fn c32_write_with_immediate_uses_a_receive_and_not_its_buffer() {
    let mut host = Host::new();
    host.try_post_recv(7, &[]).expect("a receive without entries is a receive");
    let data = pattern(5000);
    host.recv(write(First, 100, host.at(0), 5000, &data[..MTU]));
    for n in 1..4 {
        host.recv(write_more(Middle, 100 + n as u32, &data[n * MTU..(n + 1) * MTU]));
    }
    assert_eq!((host.sent(), host.received()), (vec![], vec![]));
    host.recv(write_more(Last, 104, &data[4 * MTU..]).imm(0xAABB_CCDD).ack_req());
    assert_eq!(host.sent(), [ack(104, 1)]);
    let [completion] = host.recv_completions()[..] else { panic!("one completion") };
    assert_eq!((completion.wr_id, completion.status), (7, WcStatus::Success));
    assert_eq!((completion.opcode, completion.byte_len), (WcOpcode::RecvRdmaWithImm, 5000));
    assert_eq!(completion.immediate, Some(0xAABB_CCDD));
    assert_eq!(host.bytes(0, 5000), data);
}

#[test]
fn c32_only_the_packet_with_the_immediate_needs_a_receive() {
    let mut host = Host::new();
    let data = pattern(MTU + 4);
    host.recv(write(First, 100, host.at(0), data.len() as u32, &data[..MTU]));
    host.recv(write_more(Last, 101, &data[MTU..]).imm(1).ack_req());
    assert_eq!(host.sent(), [rnr(101, 14, 0)]);
    assert_eq!(host.bytes(0, MTU), data[..MTU], "what came before is placed");
    assert_eq!(host.bytes(MTU, 4), [0; 4]);
    host.post_recv(1, 4096, 0);
    host.recv(write_more(Last, 101, &data[MTU..]).imm(1).ack_req());
    assert_eq!((host.sent(), host.received()), (vec![ack(101, 1)], ok([1])));
    assert_eq!(host.bytes(0, data.len()), data);
}

#[test]
fn c32_write_only_with_immediate_and_no_receive_is_refused_untouched() {
    let mut host = Host::new();
    host.recv(write(Only, 100, host.at(0), 1, b"a").imm(1).ack_req());
    assert_eq!(host.sent(), [rnr(100, 14, 0)]);
    assert_eq!(host.bytes(0, 1), [0]);
}

#[test]
fn duplicate_write_with_immediate_uses_no_second_receive() {
    let mut host = Host::new();
    host.post_recv(1, 0, 0);
    host.post_recv(2, 0, 0);
    host.recv(write(Only, 100, host.at(0), 1, b"a").imm(1).ack_req());
    host.recv(write(Only, 100, host.at(0), 1, b"a").imm(1).ack_req());
    assert_eq!((host.sent(), host.received()), (vec![ack(100, 1)], ok([1])));
}

#[test]
fn p4_5_a_send_behind_a_write_completes_after_it_is_placed() {
    let mut host = Host::new();
    host.post_recv(1, 4096, 16);
    host.recv(write(Only, 100, host.at(0), 4, b"data"));
    host.recv(send(Only, 101, b"go").ack_req());
    assert_eq!(host.sent(), [ack(101, 2)]);
    assert_eq!((host.received(), host.bytes(0, 4)), (ok([1]), b"data".to_vec()));
}
