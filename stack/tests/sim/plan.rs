//! What one side of one queue pair does, and what must come of it.

use uroce_stack::{RemoteAddr, SendFlags, SendOp, WcOpcode};

use crate::rng::Rng;

/// Bytes of each area; messages are at most an eighth.
pub(crate) const AREA: usize = 16 * 1024;
/// Words that atomic operations act on, at the start of the written area.
const WORDS: usize = 8;

/// One work request, its effect and its result.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) op: SendOp,
    pub(crate) flags: SendFlags,
    pub(crate) inline: bool,
    /// How the local bytes are cut into pieces.
    pub(crate) pieces: Vec<usize>,
    /// Bytes sent, or the bytes that a READ or an atomic operation must return.
    pub(crate) bytes: Vec<u8>,
}

/// What a receive must get.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub(crate) opcode: WcOpcode,
    pub(crate) immediate: Option<u32>,
    pub(crate) byte_len: u32,
    /// Bytes in the receive buffer.
    pub(crate) bytes: Vec<u8>,
}

/// The memory that this side may reach at its peer, as it is after every step so far.
pub(crate) struct Target {
    pub(crate) addr: u64,
    pub(crate) rkey: u32,
    /// What the peer's area must hold in the end. The first half changes, the second half is only read.
    pub(crate) shadow: Vec<u8>,
}

/// The steps of one side, and what its peer receives.
#[derive(Default)]
pub(crate) struct Plan {
    pub(crate) steps: Vec<Step>,
    pub(crate) expected: Vec<Expected>,
    /// A READ of bytes that may change is under way: whatever changes them must be fenced, as a READ may be
    /// executed again.
    read_is_open: bool,
}

impl Plan {
    pub(crate) fn new(rng: &mut Rng, target: &mut Target, mtu: usize) -> Self {
        let mut plan = Self::default();
        for _ in 0..20 + rng.below(60) {
            plan.add(rng, target, mtu);
        }
        plan
    }

    fn add(&mut self, rng: &mut Rng, target: &mut Target, mtu: usize) {
        let step = match rng.below(7) {
            0 | 1 => self.send(rng, mtu),
            2 | 3 => self.write(rng, target, mtu),
            4 => self.read(rng, target, mtu),
            5 => self.atomic(rng, target, true),
            _ => self.atomic(rng, target, false),
        };
        self.steps.push(step);
    }

    fn send(&mut self, rng: &mut Rng, mtu: usize) -> Step {
        let bytes = message(rng, mtu);
        let immediate = rng.chance(0.3).then(|| rng.word() as u32);
        let (opcode, byte_len) = (WcOpcode::Recv, bytes.len() as u32);
        self.expected.push(Expected { opcode, immediate, byte_len, bytes: bytes.clone() });
        step(rng, SendOp::Send { immediate }, bytes, false)
    }

    fn write(&mut self, rng: &mut Rng, target: &mut Target, mtu: usize) -> Step {
        let bytes = message(rng, mtu);
        let immediate = rng.chance(0.3).then(|| rng.word() as u32);
        if immediate.is_some() {
            let (opcode, byte_len) = (WcOpcode::RecvRdmaWithImm, bytes.len() as u32);
            self.expected.push(Expected { opcode, immediate, byte_len, bytes: Vec::new() });
        }
        let at = WORDS * 8 + rng.below(AREA / 2 - WORDS * 8 - bytes.len());
        target.shadow[at..at + bytes.len()].copy_from_slice(&bytes);
        let op = SendOp::Write { remote: remote(target, at), immediate };
        let fenced = self.fence(rng);
        step(rng, op, bytes, fenced)
    }

    fn read(&mut self, rng: &mut Rng, target: &Target, mtu: usize) -> Step {
        let len = message_len(rng, mtu);
        let changing = rng.chance(0.5);
        let at = rng.below(AREA / 2 - len) + if changing { 0 } else { AREA / 2 };
        self.read_is_open |= changing;
        let bytes = target.shadow[at..at + len].to_vec();
        let fenced = rng.chance(0.1);
        step(rng, SendOp::Read { remote: remote(target, at) }, bytes, fenced)
    }

    fn atomic(&mut self, rng: &mut Rng, target: &mut Target, add: bool) -> Step {
        let at = rng.below(WORDS) * 8;
        let word = &mut target.shadow[at..at + 8];
        let former = u64::from_ne_bytes(word.try_into().expect("8 bytes"));
        let (value, guess) = (rng.word(), rng.word());
        let compare = if rng.chance(0.7) { former } else { guess };
        let new = match (add, compare == former) {
            (true, _) => former.wrapping_add(value),
            (false, true) => value,
            (false, false) => former,
        };
        word.copy_from_slice(&new.to_ne_bytes());
        let remote = remote(target, at);
        let op = if add {
            SendOp::FetchAdd { remote, add: value }
        } else {
            SendOp::CompareSwap { remote, compare, swap: value }
        };
        let fenced = self.fence(rng);
        let mut step = step(rng, op, former.to_ne_bytes().to_vec(), fenced);
        step.pieces = vec![8];
        step
    }

    fn fence(&mut self, rng: &mut Rng) -> bool {
        std::mem::take(&mut self.read_is_open) || rng.chance(0.1)
    }
}

fn step(rng: &mut Rng, op: SendOp, bytes: Vec<u8>, fenced: bool) -> Step {
    let mut flags = SendFlags::empty();
    flags.set(SendFlags::FENCE, fenced);
    flags.set(SendFlags::SIGNALED, rng.chance(0.7));
    flags.set(SendFlags::SOLICITED, rng.chance(0.2));
    let inline =
        bytes.len() <= 64 && matches!(op, SendOp::Send { .. } | SendOp::Write { .. }) && rng.chance(0.5);
    let pieces = pieces(rng, bytes.len());
    Step { op, flags, inline, pieces, bytes }
}

fn message(rng: &mut Rng, mtu: usize) -> Vec<u8> {
    let len = message_len(rng, mtu);
    rng.bytes(len)
}

/// Often a boundary, often anything.
fn message_len(rng: &mut Rng, mtu: usize) -> usize {
    let boundary = rng.pick(&[0, 1, 3, 8, mtu - 1, mtu, mtu + 1, 2 * mtu, 2 * mtu + 1]);
    let any = rng.below(AREA / 8);
    if rng.chance(0.5) { boundary.min(AREA / 8) } else { any }
}

fn pieces(rng: &mut Rng, len: usize) -> Vec<usize> {
    let mut pieces = Vec::new();
    let mut left = len;
    while pieces.len() < 3 && rng.chance(0.4) {
        let piece = rng.below(left + 1);
        left -= piece;
        pieces.push(piece);
    }
    pieces.push(left);
    pieces
}

fn remote(target: &Target, at: usize) -> RemoteAddr {
    RemoteAddr { va: target.addr + at as u64, rkey: target.rkey }
}
