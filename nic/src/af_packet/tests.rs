//! Both sides joined by a pair of sockets: what leaves as one arrives as it was.

use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;

use super::headers::Headers;
use super::inbox::Inbox;
use super::outbox::Outbox;
use super::vnet;
use crate::NicStats;
use crate::testing::{Flow, take_udp_checksum};

const MAX_FRAME: usize = 4218;
const V4: Flow = Flow { v6: false, vlan: false, port: 0xc001 };

/// Carries frames from one side to the other.
struct Wire {
    outbox: Outbox,
    inbox: Inbox,
    near: UnixDatagram,
    far: UnixDatagram,
    stats: NicStats,
    /// How many messages the kernel saw.
    messages: usize,
}

impl Wire {
    /// Between peers that know each other.
    fn new() -> Self {
        let mut wire = Self::between_strangers();
        for flow in [V4, Flow { v6: true, ..V4 }] {
            wire.inbox.peers.note(Headers::of(&flow.frame(0, 20)).unwrap().destination(), true);
        }
        wire
    }

    fn between_strangers() -> Self {
        let (near, far) = UnixDatagram::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        let (outbox, inbox) = (Outbox::new(MAX_FRAME), Inbox::new(MAX_FRAME));
        Self { outbox, inbox, near, far, stats: NicStats::default(), messages: 0 }
    }

    /// Sends what waits longest; false when the socket is full or nothing waits.
    fn send(&mut self, together: bool) -> bool {
        let (sent, result) = match together {
            true => self.outbox.send(self.near.as_fd(), &self.inbox.peers),
            false => self.outbox.send_plain(self.near.as_fd()),
        };
        if result.is_ok() {
            self.messages += usize::from(sent.frames > 0);
            self.outbox.release(sent);
        }
        result.is_ok() && sent.frames > 0
    }

    fn receive(&mut self, arrived: &mut Vec<Vec<u8>>) {
        let mut more = true;
        while more {
            // A budget that ends within a frame which holds several.
            while self.inbox.show(7, &mut self.stats, &mut |frame| arrived.push(frame.head.to_vec())) > 0 {}
            more = self.inbox.fill(self.far.as_fd()).is_ok();
        }
    }

    fn carry(&mut self, frames: &[Vec<u8>], together: bool) -> Vec<Vec<u8>> {
        let mut arrived = Vec::new();
        for frame in frames {
            while self.outbox.is_full() {
                if !self.send(together) {
                    self.receive(&mut arrived);
                }
            }
            let filled = self.outbox.fill(&mut |to| {
                to[..frame.len()].copy_from_slice(frame);
                Some(frame.len())
            });
            assert!(filled);
        }
        while !self.outbox.is_empty() {
            if !self.send(together) {
                self.receive(&mut arrived);
            }
        }
        self.receive(&mut arrived);
        stripped(&arrived)
    }
}

/// Frames without their UDP checksums.
fn stripped(frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut frames = frames.to_vec();
    for frame in &mut frames {
        take_udp_checksum(frame);
    }
    frames
}

/// How many messages carry these frames, which arrive as they were.
fn messages_for(frames: &[Vec<u8>]) -> usize {
    let mut wire = Wire::new();
    let arrived = wire.carry(frames, true);
    assert_eq!(arrived.len(), frames.len());
    assert!(arrived == stripped(frames), "frames arrive in order and unchanged");
    assert_eq!(wire.stats.rx_frames, frames.len() as u64);
    wire.messages
}

#[test]
fn frames_of_one_flow_leave_as_one() {
    for flow in [V4, Flow { v6: true, ..V4 }, Flow { vlan: true, ..V4 }, Flow { v6: true, vlan: true, ..V4 }]
    {
        let frames: Vec<_> = (1..=10).map(|number| flow.frame(number, 1040)).collect();
        assert_eq!(messages_for(&frames), 1, "{flow:?}");
    }
}

#[test]
fn identifications_go_round_within_one() {
    let frames: Vec<_> = (0xfffa..0x1_0006).map(|number| V4.frame(number, 100)).collect();
    assert_eq!(messages_for(&frames), 1);
}

#[test]
fn a_shorter_frame_is_the_last_of_its_message() {
    let sizes = [200, 200, 60, 60, 200, 200, 1, 200];
    let frames: Vec<_> = (0..).zip(sizes).map(|(number, size)| V4.frame(number, size)).collect();
    // 200 200 60, 60, 200 200 1, 200.
    assert_eq!(messages_for(&frames), 4);
}

#[test]
fn what_differs_leaves_by_itself() {
    let first = V4.frame(7, 300);
    let (other_flow, id_skipped) = (Flow { port: 0xc002, ..V4 }.frame(8, 300), V4.frame(9, 300));
    let changed = |at: usize, value: u8| {
        let mut frame = V4.frame(8, 300);
        frame[at] = value;
        frame
    };
    // Destination MAC, traffic class, TTL, IPv4 checksum, UDP length, UDP checksum.
    let changes = [(5, 9), (15, 1), (22, 9), (24, 0), (38, 0), (40, 1)].map(|(at, value)| changed(at, value));
    for second in changes.into_iter().chain([other_flow, id_skipped]) {
        assert_eq!(messages_for(&[first.clone(), second]), 2);
    }
}

#[test]
fn a_message_holds_what_ip_and_the_kernel_carry() {
    let long: Vec<_> = (0..15).map(|number| V4.frame(number, 4112)).collect();
    assert_eq!(messages_for(&long), 1);
    let longer: Vec<_> = (0..16).map(|number| V4.frame(number, 4112)).collect();
    assert_eq!(messages_for(&longer), 2);
    let many: Vec<_> = (0..65).map(|number| V4.frame(number, 20)).collect();
    assert_eq!(messages_for(&many), 2);
}

#[test]
fn strangers_get_single_frames_and_hear_of_us() {
    let mut wire = Wire::between_strangers();
    let frames: Vec<_> = (0..40).map(|number| V4.frame(number, 500)).collect();
    assert!(wire.carry(&frames, true) == frames);
    assert_eq!(wire.messages, 40);
    let headers = Headers::of(&frames[0]).unwrap();
    // Both sides are one here: what it sent has told that its sender takes more at once.
    assert!(wire.inbox.peers.take(headers.source()) && !wire.inbox.peers.take(headers.destination()));
    assert!(wire.carry(&frames, false) == frames);
    assert!(!wire.inbox.peers.take(headers.source()), "the frames that came last have no checksum");
}

#[test]
fn without_the_offload_each_frame_leaves_by_itself() {
    let frames: Vec<_> = (0..40).map(|number| V4.frame(number, 500)).collect();
    let mut wire = Wire::new();
    assert!(wire.carry(&frames, false) == frames);
    assert_eq!(wire.messages, 40);
}

#[test]
fn any_mixture_arrives_as_it_was() {
    for seed in 0..50 {
        let mut state = seed;
        let mut numbers = [0xffe0_u32; 4];
        let frames: Vec<_> = (0..600).map(|_| mixed(&mut state, &mut numbers)).collect();
        let messages = messages_for(&frames);
        assert!(messages < 450, "seed {seed}: {messages} messages");
    }
}

/// Most often a frame like the one before it.
fn mixed(state: &mut u64, numbers: &mut [u32; 4]) -> Vec<u8> {
    let dice = random(state);
    let which = if dice.is_multiple_of(8) { dice as usize / 8 % 4 } else { 0 };
    let flow = Flow { v6: which & 1 != 0, vlan: which & 2 != 0, port: 0xc000 + which as u16 };
    numbers[which] += if dice.is_multiple_of(29) { 2 } else { 1 };
    let size = match dice / 64 % 16 {
        0 => 1 + dice as usize / 1024 % 4112,
        1 => 4128,
        2 => 20,
        _ => 4112,
    };
    flow.frame(numbers[which], size)
}

#[test]
fn what_a_kernel_would_not_say_is_no_harm() {
    for seed in 0..2000 {
        let mut state = seed;
        let mut bytes = vnet::segmented(42, random(&mut state) as usize % 5000).to_vec();
        bytes.extend(V4.frame(1, random(&mut state) as usize % 9000));
        for _ in 0..random(&mut state) % 6 {
            let at = random(&mut state) as usize % bytes.len().min(60);
            bytes[at] = random(&mut state) as u8;
        }
        bytes.truncate(random(&mut state) as usize % (bytes.len() + 1));
        let mut wire = Wire::new();
        wire.near.send(&bytes).unwrap();
        let mut arrived = Vec::new();
        wire.receive(&mut arrived);
        assert!(arrived.iter().all(|frame| frame.len() <= MAX_FRAME), "seed {seed}");
    }
}

#[test]
fn frames_too_long_are_counted() {
    let mut wire = Wire::new();
    let frame = V4.frame(1, 9000);
    wire.near.send(&[&vnet::COMPLETE, &frame[..]].concat()).unwrap();
    wire.near.send(&[&vnet::segmented(42, 4500), &frame[..]].concat()).unwrap();
    wire.near.send(&[&vnet::segmented(42, 3000), &frame[..]].concat()).unwrap();
    let mut arrived = Vec::new();
    wire.receive(&mut arrived);
    assert_eq!((arrived.len(), wire.stats.rx_oversize), (3, 2));
}

/// SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
