//! Regions that change while peers use them (IBTA, Reregister Memory Region; protocol section 4.14).

use crate::common::*;
use Position::{First, Last, Only};
use uroce_stack::{MwType, Reregister};

const REFUSED: NakCode = NakCode::RemoteAccessError;

fn change(host: &mut Host, change: Reregister) -> Option<Region> {
    host.engine.reregister_mr(host.keys.lkey, change).expect("the region can be changed")
}

#[test]
fn rights_change_under_the_same_key() {
    let mut host = Host::new();
    host.recv(read(100, host.at(0), 4));
    assert_eq!(host.sent(), [read_response(Only, 100, 1, &[0; 4])]);
    let access = Some(Access::LOCAL_WRITE | Access::REMOTE_WRITE);
    assert!(change(&mut host, Reregister { access, ..Reregister::default() }).is_none());
    host.recv(write(Only, 101, host.at(0), 4, b"more").ack_req());
    assert_eq!((host.sent(), host.bytes(0, 4)), (vec![ack(101, 2)], b"more".to_vec()));
    host.recv(read(102, host.at(0), 4));
    assert_eq!(host.sent(), [nak(102, REFUSED, 2)]);
}

#[test]
fn other_memory_takes_the_place_of_the_former() {
    let mut host = Host::new();
    host.fill(0, b"old!");
    let memory = Region::alloc(64);
    assert!(memory.write_at(0, b"new!"));
    let former = change(&mut host, Reregister { memory: Some((memory, 0)), ..Reregister::default() });
    assert_eq!(former.map(|former| former.len()), Some(AREA));
    host.recv(read(100, RemoteAddr { va: 0, rkey: host.keys.rkey }, 4));
    assert_eq!(host.sent(), [read_response(Only, 100, 1, b"new!")]);
    host.recv(read(101, host.at(0), 4));
    assert_eq!(host.sent(), [nak(101, REFUSED, 1)]);
    assert_eq!(host.bytes(0, 4), b"old!", "nothing touches the former memory");
}

#[test]
fn s05_a_region_that_moves_to_another_domain_leaves_this_one() {
    let mut host = Host::new();
    let pd = host.engine.alloc_pd().expect("room");
    let stranger = host.neighbour(1, pd);
    change(&mut host, Reregister { pd: Some(pd), ..Reregister::default() });
    host.recv(read(100, host.at(0), 1).at(&stranger));
    assert_eq!(host.sent(), [read_response(Only, 100, 1, &[0]).to_neighbour(1)]);
    host.recv(read(100, host.at(0), 1));
    assert_eq!(host.sent(), [nak(100, REFUSED, 0)]);
}

#[test]
fn c20_a_right_taken_during_a_read_ends_it_with_the_psn_that_failed() {
    let mut host = Host::new();
    host.recv(read(100, host.at(0), 4096));
    for psn in [100, 101] {
        assert_eq!(host.transmit().map(|packet| packet.psn), Some(psn));
    }
    change(&mut host, Reregister { access: Some(Access::LOCAL_WRITE), ..Reregister::default() });
    assert_eq!((host.sent(), host.state()), (vec![nak(102, REFUSED, 1)], QpState::Err));
}

/// The rights are checked when the WRITE opens, and again with each packet.
#[test]
fn c20_a_right_taken_during_a_write_ends_it_with_the_packet_that_failed() {
    let mut host = Host::new();
    host.recv(write(First, 100, host.at(0), 2048, &[1; 1024]));
    change(
        &mut host,
        Reregister { access: Some(Access::LOCAL_WRITE | Access::REMOTE_READ), ..Reregister::default() },
    );
    host.recv(write_more(Last, 101, &[2; 1024]).ack_req());
    assert_eq!((host.sent(), host.bytes(1024, 1024)), (vec![nak(101, REFUSED, 0)], vec![0; 1024]));
}

#[test]
fn memory_exchanged_during_a_message_is_where_the_rest_of_it_comes_from() {
    let mut host = Host::with(Setup { window: 1, ..Setup::default() });
    host.post_send(1, 2048);
    assert_eq!(host.sent()[0].payload, [0; 1024]);
    let memory = Region::alloc(AREA);
    assert!(memory.write_at(1024, &[7; 1024]));
    change(&mut host, Reregister { memory: Some((memory, VA)), ..Reregister::default() });
    host.recv(ack(500, 0));
    assert_eq!(host.sent()[0].payload, [7; 1024]);
}

#[test]
fn a_region_behind_a_window_stays_as_it_is() {
    let mut host = Host::open();
    let window = host.bound(MwType::Type1, 0, 8);
    let refused = host.engine.reregister_mr(host.keys.lkey, Reregister::default());
    assert!(matches!(refused, Err(uroce_stack::Error::Busy(_))), "{refused:?}");
    host.recv(read(100, window, 1));
    assert_eq!(host.sent(), [read_response(Only, 100, 1, &[0])]);
}

#[test]
fn a_refused_change_changes_nothing() {
    let mut host = Host::new();
    let memory = || Some((Region::alloc(64), u64::MAX));
    for wrong in [
        Reregister { access: Some(Access::REMOTE_WRITE), ..Reregister::default() },
        Reregister { access: Some(Access::FLUSH_PERSISTENT), ..Reregister::default() },
        Reregister { memory: memory(), ..Reregister::default() },
    ] {
        assert!(host.engine.reregister_mr(host.keys.lkey, wrong).is_err());
    }
    host.recv(write(Only, 100, host.at(0), 4, b"same").ack_req());
    assert_eq!((host.sent(), host.bytes(0, 4)), (vec![ack(100, 1)], b"same".to_vec()));
}
