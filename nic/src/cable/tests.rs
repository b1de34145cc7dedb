use std::os::fd::AsRawFd;

use super::*;

fn send(nic: &mut Cable, bytes: &[u8]) -> usize {
    let mut once = Some(bytes);
    let sent = nic.tx(2, &mut |frame| {
        let bytes = once.take()?;
        frame[..bytes.len()].copy_from_slice(bytes);
        Some(bytes.len())
    });
    nic.flush().unwrap();
    sent.unwrap()
}

fn receive(nic: &mut Cable) -> Vec<Vec<u8>> {
    let mut got = Vec::new();
    nic.rx(64, &mut |frame| got.push(frame.head.to_vec())).unwrap();
    got
}

fn readable(nic: &Cable) -> bool {
    let fd = nic.fd().unwrap().as_raw_fd();
    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: the pointer is to one pollfd on the stack, and the count says one.
    unsafe { libc::poll(&mut poll, 1, 0) == 1 }
}

#[test]
fn frames_arrive_in_order_in_both_directions() {
    let (mut left, mut right) = pair(4, 64);
    assert_eq!(send(&mut left, b"one"), 1);
    assert_eq!(send(&mut left, b"two"), 1);
    assert_eq!(send(&mut right, b"back"), 1);
    assert_eq!(receive(&mut right), [b"one", b"two"]);
    assert_eq!(receive(&mut left), [b"back"]);
    assert_eq!(receive(&mut left), Vec::<Vec<u8>>::new());
}

#[test]
fn a_full_cable_lends_nothing_until_frames_are_taken() {
    let (mut left, mut right) = pair(2, 64);
    assert_eq!(left.tx(9, &mut |_| Some(1)).unwrap(), 2);
    assert_eq!(left.tx(9, &mut |_| panic!("lent a frame of a full cable")).unwrap(), 0);
    assert_eq!(right.rx(1, &mut |_| ()).unwrap(), 1);
    assert_eq!(left.tx(9, &mut |_| Some(1)).unwrap(), 1);
}

#[test]
fn a_frame_that_was_not_filled_is_kept() {
    let (mut left, mut right) = pair(1, 64);
    for _ in 0..10 {
        assert_eq!(left.tx(1, &mut |_| None).unwrap(), 0);
    }
    assert_eq!(send(&mut left, b"x"), 1);
    assert_eq!(receive(&mut right), [b"x"]);
}

#[test]
fn a_cable_without_a_peer_loses_frames_and_counts_them() {
    let (mut left, right) = pair(2, 64);
    drop(right);
    for _ in 0..5 {
        assert_eq!(send(&mut left, b"x"), 1);
    }
    assert_eq!(receive(&mut left).len(), 0);
    assert_eq!((left.stats().tx_dropped, left.stats().tx_frames), (5, 0));
}

#[test]
fn what_a_dropped_peer_sent_still_arrives() {
    let (mut left, mut right) = pair(2, 64);
    send(&mut right, b"farewell");
    drop(right);
    assert_eq!(receive(&mut left), [b"farewell"]);
}

#[test]
fn both_ends_count_what_they_carried() {
    let (mut left, mut right) = pair(4, 64);
    send(&mut left, b"12345");
    receive(&mut right);
    assert_eq!((left.stats().tx_frames, left.stats().tx_bytes), (1, 5));
    assert_eq!((right.stats().rx_frames, right.stats().rx_bytes), (1, 5));
}

#[test]
#[should_panic = "not within its buffer"]
fn a_length_beyond_the_frame_is_a_broken_caller() {
    let (mut left, _right) = pair(1, 64);
    let _ = left.tx(1, &mut |frame| Some(frame.len() + 1));
}

#[test]
fn the_descriptor_is_readable_while_a_frame_waits() {
    let (mut left, mut right) = pair_with_fd(4, 64).unwrap();
    assert_eq!(receive(&mut right).len(), 0);
    assert!(!readable(&right));
    send(&mut left, b"x");
    assert!(readable(&right));
    assert_eq!(receive(&mut right), [b"x"]);
    assert!(!readable(&right));
    assert!(!readable(&left));
}

#[test]
fn two_threads_that_sleep_lose_no_frame_and_no_wakeup() {
    const FRAMES: u64 = 20_000;
    let (mut left, mut right) = pair_with_fd(8, 64).unwrap();
    let sender = std::thread::spawn(move || {
        let mut next = 0;
        while next < FRAMES {
            let sent = left.tx(8, &mut |frame| {
                frame[..8].copy_from_slice(&next.to_ne_bytes());
                (next < FRAMES).then(|| next += 1).map(|()| 8)
            });
            left.flush().unwrap();
            if sent.unwrap() == 0 {
                std::thread::yield_now();
            }
        }
    });
    let mut expected = 0;
    while expected < FRAMES {
        let got = right.rx(4, &mut |frame| {
            assert_eq!(frame.head, expected.to_ne_bytes());
            expected += 1;
        });
        if got.unwrap() < 4 && expected < FRAMES {
            wait(&right);
        }
    }
    sender.join().unwrap();
}

/// Sleeps until the descriptor is readable; a lost wakeup shows as a failure here.
fn wait(nic: &Cable) {
    let fd = nic.fd().unwrap().as_raw_fd();
    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: the pointer is to one pollfd on the stack, and the count says one.
    assert_eq!(unsafe { libc::poll(&mut poll, 1, 10_000) }, 1, "no wakeup within ten seconds");
}
