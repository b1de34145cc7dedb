//! Packets of a peer that means harm.

use proptest::prelude::*;
use uroce_stack::wire::{Aeth, AtomicEth, Feth, Operation, Reth, Service, icrc};

use crate::common::*;

/// Ethernet, IPv4 and UDP header.
pub(crate) const BTH_AT: usize = 42;

/// What a packet of the peer is made of. PSNs are relative to where the connection stands.
#[derive(Clone, Debug)]
pub(crate) struct Forged {
    pub(crate) kind: usize,
    pub(crate) psn_offset: i8,
    va_offset: i64,
    length: u32,
    good_key: bool,
    payload: usize,
    syndrome: u8,
    flags: (bool, bool),
    /// Whether lengths fit each other and a message is opened before it goes on: what an honest peer would send.
    pub(crate) fitting: bool,
    /// A byte from the transport headers on that is set to a value, with the ICRC made right again.
    patch: Option<(usize, u8)>,
}

fn any_length() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), 0u32..20, Just(256), Just(257), 0u32..6000, Just(1 << 31), any::<u32>()]
}

prop_compose! {
    pub(crate) fn any_forged()(
        kind in 0..KINDS,
        psn_offset in prop_oneof![12 => Just(0i8), 3 => -3i8..4, 1 => any::<i8>()],
        va_offset in prop_oneof![24 => (0i64..64).prop_map(|word| 8 * word), 1 => 3000i64..4200, 1 => any::<i64>()],
        length in any_length(),
        good_key in prop::bool::weighted(0.98),
        payload in prop_oneof![Just(256usize), 0usize..20, 250usize..260, 0usize..1100],
        syndrome in prop_oneof![20 => Just(0x1Fu8), 4 => Just(0x60), 2 => 0x20u8..0x40, 1 => any::<u8>()],
        flags: (bool, bool),
        fitting in prop::bool::weighted(0.8),
        patch in prop::option::weighted(0.1, (0usize..64, any::<u8>())),
    ) -> Forged {
        Forged { kind, psn_offset, va_offset, length, good_key, payload, syndrome, flags, fitting, patch }
    }
}

const KINDS: usize = 25;

/// The operation of one kind, its headers filled with what was forged.
fn operation(kind: usize, reth: Reth, aeth: Aeth, word: u32) -> Operation {
    use Position::{First, Last, Middle, Only};
    let send = |position, immediate, invalidate| Operation::Send { position, immediate, invalidate };
    let write = |position, reth, immediate| Operation::Write { position, reth, immediate };
    let response = |position, aeth| Operation::ReadResponse { position, aeth };
    let atomic = AtomicEth { va: reth.va, rkey: reth.rkey, swap_or_add: 1, compare: word.into() };
    match kind {
        0 => send(First, None, None),
        1 => send(Middle, None, None),
        2 => send(Last, None, None),
        3 => send(Last, Some(word), None),
        4 => send(Only, None, None),
        5 => send(Only, Some(word), None),
        6 => send(Last, None, Some(word)),
        7 => send(Only, None, Some(word)),
        8 => write(First, Some(reth), None),
        9 => write(Middle, None, None),
        10 => write(Last, None, None),
        11 => write(Last, None, Some(word)),
        12 => write(Only, Some(reth), None),
        13 => write(Only, Some(reth), Some(word)),
        14 => Operation::ReadRequest(reth),
        15 => response(First, Some(aeth)),
        16 => response(Middle, None),
        17 => response(Last, Some(aeth)),
        18 => response(Only, Some(aeth)),
        19 => Operation::Acknowledge(aeth),
        20 => Operation::AtomicAcknowledge { aeth, original: word.into() },
        21 => Operation::CompareSwap(atomic),
        22 => Operation::FetchAdd(atomic),
        23 => Operation::Flush { feth: Feth { placement: 3, selectivity: 1 }, reth },
        _ => Operation::AtomicWrite(reth),
    }
}

/// Whom it is sent to, and where that connection stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aim {
    pub(crate) to: Qpn,
    pub(crate) rkey: u32,
    pub(crate) va: u64,
    pub(crate) next_request: u32,
    pub(crate) newest_sent: u32,
}

/// The message whose packets are arriving, as far as the peer knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Open {
    Nothing,
    Send,
    Write { left: u32 },
}

impl Forged {
    /// The same, as an honest peer would send it: the message that is open goes on, and lengths fit.
    pub(crate) fn honest(&self, open: Open, awaited: usize) -> Self {
        let mut honest = self.clone();
        let continues = self.kind.is_multiple_of(2);
        honest.kind = match (open, self.kind) {
            (_, 15..=20) => awaited,
            (Open::Send, kind) => 1 + usize::from(continues) * (1 + kind % 2),
            (Open::Write { left }, _) if left > 256 => 9,
            (Open::Write { .. }, kind) => 10 + kind / 2 % 2,
            (Open::Nothing, 1..=3 | 6 | 7) => 4,
            (Open::Nothing, 9..=11) => 12,
            (Open::Nothing, 23..) => 14,
            (Open::Nothing, kind) => kind,
        };
        honest.payload = match (honest.kind, open) {
            (0 | 1 | 8 | 9 | 15 | 16, _) => 256,
            (2 | 3, _) => self.payload % 256 + 1,
            (10 | 11, Open::Write { left }) => left as usize,
            (kind, _) if kind == 17 || kind == 18 => self.length as usize % 257,
            _ => self.payload % 257,
        };
        honest.length = match honest.kind {
            8 => 257 + self.length % 1000,
            12 | 13 => honest.payload as u32,
            14 => self.length % 2000,
            _ => self.length,
        };
        honest
    }

    /// The frame of it, with a right ICRC.
    pub(crate) fn frame(&self, aim: &Aim) -> Vec<u8> {
        let rkey = if self.good_key { aim.rkey } else { !aim.rkey };
        let reth = Reth { va: aim.va.wrapping_add_signed(self.va_offset), rkey, length: self.length };
        let aeth = Aeth { syndrome: Syndrome::from_code(self.syndrome), msn: 1 };
        let operation = operation(self.kind, reth, aeth, self.length);
        let base = if self.is_response() { aim.newest_sent } else { aim.next_request };
        let psn = base.wrapping_add_signed(self.psn_offset.into());
        let payload = vec![0xA5; if carries_payload(&operation) { self.payload } else { 0 }];
        let mut pkt = Pkt::new(psn, operation, &payload);
        (pkt.ack_request, pkt.solicited) = self.flags;
        let mut frame = pkt.frame(aim.to);
        patch(&mut frame, self.patch);
        frame
    }

    pub(crate) const fn is_response(&self) -> bool {
        matches!(self.kind, 15..=20)
    }

    /// PSNs that it takes.
    pub(crate) fn psns(&self) -> u32 {
        if self.kind == 14 { self.length.div_ceil(256).max(1) } else { 1 }
    }

    /// What is open after it.
    pub(crate) fn leaves(&self, open: Open) -> Open {
        match (self.kind, open) {
            (0 | 1, _) => Open::Send,
            (8, _) => Open::Write { left: self.length.saturating_sub(256) },
            (9, Open::Write { left }) => Open::Write { left: left.saturating_sub(256) },
            (15..=20, _) => open,
            _ => Open::Nothing,
        }
    }
}

fn carries_payload(operation: &Operation) -> bool {
    operation.opcode(Service::Rc).expect("an RC operation").carries_payload()
}

fn patch(frame: &mut [u8], patch: Option<(usize, u8)>) {
    let end = frame.len() - 4;
    let Some((offset, value)) = patch.filter(|(offset, _)| BTH_AT + offset < end) else { return };
    frame[BTH_AT + offset] = value;
    let crc = icrc(&frame[14..end]).expect("an IPv4 packet");
    frame[end..].copy_from_slice(&crc.to_le_bytes());
}
