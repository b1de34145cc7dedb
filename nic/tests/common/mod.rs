//! Frames to send between two ends, and the counting of what arrives.
#![allow(dead_code, unreachable_pub, reason = "each test program uses its part of this module")]

use std::collections::BTreeMap;

use uroce_nic::testing::{VethPair, take_udp_checksum};
use uroce_nic::{Nic, ROCE_PORT};

/// Frames taken at a time.
const BUDGET: usize = 64;

/// Ethernet, IPv4 and UDP headers.
pub const HEADERS: usize = 14 + 20 + 8;

/// A frame of `length` bytes from the left end to the right one, numbered, with a payload that depends on both.
pub fn frame(length: usize, number: u32) -> Vec<u8> {
    let mut frame = headers(length, ROCE_PORT);
    frame.extend(number.to_be_bytes());
    while frame.len() < length {
        frame.push((frame.len() as u32 * 7 + number) as u8);
    }
    frame
}

/// Headers of a frame of `length` bytes to a UDP port of the right end.
pub fn headers(length: usize, port: u16) -> Vec<u8> {
    assert!(length >= HEADERS + 4, "a frame holds its number");
    let (ip, udp) = (length - 14, length - 34);
    let mut frame = Vec::with_capacity(length);
    frame.extend(VethPair::RIGHT_MAC);
    frame.extend(VethPair::LEFT_MAC);
    frame.extend([0x08, 0x00, 0x45, 0, (ip >> 8) as u8, ip as u8, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    frame.extend([10, 77, 0, 1, 10, 77, 0, 2]);
    let sum = checksum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame.extend([0xc0, 0x00]);
    frame.extend(port.to_be_bytes());
    frame.extend([(udp >> 8) as u8, udp as u8, 0, 0]);
    frame
}

/// The frame with a tag of VLAN 5, priority 3.
pub fn in_vlan(frame: &[u8]) -> Vec<u8> {
    [&frame[..12], &[0x81, 0x00, 0x60, 0x05], &frame[12..]].concat()
}

fn checksum(header: &[u8]) -> u16 {
    let sum: u32 = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// Sends the frames, as many as the ring takes at a time, while `meanwhile` is called between.
pub fn send(nic: &mut dyn Nic, frames: &[Vec<u8>], mut meanwhile: impl FnMut()) {
    let mut left = frames.iter();
    let mut patience = 100_000;
    while !left.as_slice().is_empty() {
        let sent = nic.tx(64, &mut |to| {
            let frame = left.next()?;
            to[..frame.len()].copy_from_slice(frame);
            Some(frame.len())
        });
        nic.flush().unwrap();
        meanwhile();
        patience -= i32::from(sent.unwrap() == 0);
        assert!(patience > 0, "the ring stays full");
    }
}

/// What arrived, joined from both pieces, in order; without UDP checksums, which backends may fill in.
#[derive(Default)]
pub struct Arrived {
    pub frames: Vec<Vec<u8>>,
    /// How many frames came in one piece, and how many in two.
    pub pieces: BTreeMap<usize, usize>,
}

impl Arrived {
    /// Takes what is there, so that the descriptor tells when there is more.
    pub fn take(&mut self, nic: &mut dyn Nic) {
        while self.take_some(nic) == BUDGET {}
    }

    fn take_some(&mut self, nic: &mut dyn Nic) -> usize {
        nic.rx(BUDGET, &mut |frame| {
            *self.pieces.entry(1 + usize::from(!frame.rest.is_empty())).or_default() += 1;
            let mut frame = [frame.head, frame.rest].concat();
            assert!(take_udp_checksum(&mut frame), "a wrong UDP checksum");
            self.frames.push(frame);
        })
        .unwrap()
    }

    /// Takes until there are `count`, or none has come for half a second.
    pub fn take_until(&mut self, nic: &mut dyn Nic, count: usize) {
        while self.frames.len() < count && wait(nic, 500) {
            self.take(nic);
        }
    }
}

/// Waits until the descriptor is readable.
pub fn wait(nic: &dyn Nic, millis: i32) -> bool {
    use std::os::fd::AsRawFd;
    let fd = nic.fd().expect("a backend of the kernel has a descriptor").as_raw_fd();
    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: the pointer is to one pollfd on the stack, and the count says one.
    unsafe { libc::poll(&mut poll, 1, millis) > 0 }
}
