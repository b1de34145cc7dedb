//! A bad network, on purpose.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;

use crate::{Mode, Nic, NicStats, RxFrame};

/// What becomes of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It passes.
    Pass,
    /// It is lost.
    Lose,
    /// It passes twice.
    Duplicate,
    /// It passes with this bit flipped, counted from the lowest of the first byte on, modulo the frame's length.
    Corrupt {
        /// Which bit.
        bit: usize,
    },
    /// It passes after this many later frames, or as many calls that see none.
    Hold {
        /// How many.
        frames: usize,
    },
}

/// Decides over frames one by one: it is given the number of the frame in its direction, from 0, and its bytes.
pub type Plan = Box<dyn FnMut(u64, &[u8]) -> Fate + Send>;

/// Faults at random, the same for the same seed. `Default` has none.
///
/// Each rate is the probability for a frame, 0 to 1; the first that strikes counts, in the order of the fields.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seeded {
    /// Where the random numbers start.
    pub seed: u64,
    /// How often a frame is lost.
    pub loss: f64,
    /// How often one passes twice.
    pub duplication: f64,
    /// How often a bit of one is flipped.
    pub corruption: f64,
    /// How often one is held back.
    pub reordering: f64,
    /// How many frames overtake one that is held back, at most.
    pub span: usize,
}

impl Seeded {
    /// The plan that these rates make.
    pub fn plan(self) -> Plan {
        let mut state = self.seed;
        Box::new(move |_, _| {
            let mut dice = unit(random(&mut state));
            let choice = random(&mut state) as usize;
            let mut strikes = |rate: f64| {
                dice -= rate;
                dice < 0.0
            };
            if strikes(self.loss) {
                Fate::Lose
            } else if strikes(self.duplication) {
                Fate::Duplicate
            } else if strikes(self.corruption) {
                Fate::Corrupt { bit: choice }
            } else if strikes(self.reordering) {
                Fate::Hold { frames: 1 + choice % self.span.max(1) }
            } else {
                Fate::Pass
            }
        })
    }
}

/// SplitMix64: small, and good enough for dice.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// A random number from 0 up to 1.
fn unit(random: u64) -> f64 {
    (random >> 11) as f64 / (1_u64 << 53) as f64
}

/// Loses, repeats, corrupts and reorders frames by plan, each direction by its own.
///
/// Nothing depends on a clock: the same calls with the same plans do the same.
pub struct Fault<N> {
    nic: N,
    tx: Line,
    rx: Line,
    scratch: Box<[u8]>,
    pool: Vec<Vec<u8>>,
}

/// One direction.
struct Line {
    plan: Option<Plan>,
    number: u64,
    /// Frames on their way.
    ready: VecDeque<Vec<u8>>,
    /// Frames held back, with the number of frames or calls to wait for.
    held: Vec<(usize, Vec<u8>)>,
    lost: u64,
}

impl<N: Nic> Fault<N> {
    /// Wraps `nic`; a direction without a plan is left alone.
    pub fn new(nic: N, tx: Option<Plan>, rx: Option<Plan>) -> Self {
        let scratch = vec![0; nic.max_frame()].into();
        let (tx, rx) = (Line::new(tx), Line::new(rx));
        Self { nic, tx, rx, scratch, pool: Vec::new() }
    }

    /// The wrapped backend.
    pub fn inner(&self) -> &N {
        &self.nic
    }

    /// Sends what is ready, as far as there are frames for it.
    fn pump(&mut self) -> io::Result<()> {
        let (ready, pool) = (&mut self.tx.ready, &mut self.pool);
        self.nic.tx(ready.len(), &mut |to| {
            let frame = ready.pop_front()?;
            to[..frame.len()].copy_from_slice(&frame);
            let len = frame.len();
            pool.push(frame);
            Some(len)
        })?;
        Ok(())
    }
}

impl Line {
    fn new(plan: Option<Plan>) -> Self {
        Self { plan, number: 0, ready: VecDeque::new(), held: Vec::new(), lost: 0 }
    }

    /// Decides over a frame that its two pieces make.
    fn pass(&mut self, head: &[u8], rest: &[u8], pool: &mut Vec<Vec<u8>>) {
        let mut frame = copy(head, rest, pool);
        let fate = self.plan.as_mut().map_or(Fate::Pass, |plan| plan(self.number, &frame));
        self.number += 1;
        self.age();
        match fate {
            Fate::Pass => self.ready.push_back(frame),
            Fate::Lose => {
                self.lost += 1;
                pool.push(frame);
            }
            Fate::Duplicate => {
                self.ready.push_back(copy(&frame, &[], pool));
                self.ready.push_back(frame);
            }
            Fate::Corrupt { bit } => {
                let bit = bit % (8 * frame.len());
                frame[bit / 8] ^= 1 << (bit % 8);
                self.ready.push_back(frame);
            }
            Fate::Hold { frames } => self.held.push((frames, frame)),
        }
        self.release();
    }

    /// A call that saw no frame brings those held back nearer too: else the last one would wait for ever.
    fn idle(&mut self) {
        self.age();
        self.release();
    }

    fn age(&mut self) {
        for (wait, _) in &mut self.held {
            *wait = wait.saturating_sub(1);
        }
    }

    fn release(&mut self) {
        let due = self.held.extract_if(.., |(wait, _)| *wait == 0);
        self.ready.extend(due.map(|(_, frame)| frame));
    }
}

fn copy(head: &[u8], rest: &[u8], pool: &mut Vec<Vec<u8>>) -> Vec<u8> {
    let mut frame = pool.pop().unwrap_or_default();
    frame.clear();
    frame.extend_from_slice(head);
    frame.extend_from_slice(rest);
    frame
}

impl<N: Nic> Nic for Fault<N> {
    fn rx(&mut self, budget: usize, deliver: &mut dyn FnMut(RxFrame<'_>)) -> io::Result<usize> {
        if self.rx.plan.is_none() {
            return self.nic.rx(budget, deliver);
        }
        let (line, pool) = (&mut self.rx, &mut self.pool);
        if line.ready.len() < budget {
            let got = self
                .nic
                .rx(budget - line.ready.len(), &mut |frame| line.pass(frame.head, frame.rest, pool))?;
            if got == 0 {
                line.idle();
            }
        }
        let count = budget.min(line.ready.len());
        for frame in line.ready.drain(..count) {
            deliver(RxFrame::linear(&frame));
            pool.push(frame);
        }
        Ok(count)
    }

    fn tx(&mut self, budget: usize, fill: &mut dyn FnMut(&mut [u8]) -> Option<usize>) -> io::Result<usize> {
        if self.tx.plan.is_none() {
            return self.nic.tx(budget, fill);
        }
        let mut count = 0;
        // Frames are taken one by one, so that a full backend is felt here too.
        while count < budget {
            self.pump()?;
            if !self.tx.ready.is_empty() {
                return Ok(count);
            }
            let Some(len) = fill(&mut self.scratch) else { break };
            assert!(
                len > 0 && len <= self.scratch.len(),
                "a filled frame of {len} bytes is not within its buffer"
            );
            count += 1;
            self.tx.pass(&self.scratch[..len], &[], &mut self.pool);
        }
        if count == 0 {
            self.tx.idle();
        }
        self.pump()?;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pump()?;
        self.nic.flush()
    }

    fn max_frame(&self) -> usize {
        self.nic.max_frame()
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.nic.fd()
    }

    fn stats(&self) -> NicStats {
        let mut stats = self.nic.stats();
        stats.fault_dropped += self.tx.lost + self.rx.lost;
        stats
    }

    fn mode(&self) -> Mode {
        self.nic.mode()
    }
}

impl<N: fmt::Debug> fmt::Debug for Fault<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fault").field("nic", &self.nic).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cable;

    fn send(nic: &mut dyn Nic, numbers: std::ops::Range<u8>) {
        let mut numbers = numbers.peekable();
        while numbers.peek().is_some() {
            nic.tx(64, &mut |to| {
                to[0] = numbers.next()?;
                to[1] = 0;
                Some(2)
            })
            .unwrap();
            nic.flush().unwrap();
        }
    }

    fn receive(nic: &mut dyn Nic) -> Vec<Vec<u8>> {
        let mut got = Vec::new();
        while nic.rx(64, &mut |frame| got.push(frame.head.to_vec())).unwrap() > 0 {}
        got
    }

    fn numbers(frames: &[Vec<u8>]) -> Vec<u8> {
        frames.iter().map(|frame| frame[0]).collect()
    }

    fn script(fates: &'static [Fate]) -> Option<Plan> {
        Some(Box::new(|number, _| fates.get(number as usize).copied().unwrap_or(Fate::Pass)))
    }

    #[test]
    fn a_scripted_line_does_what_it_is_told_on_sending() {
        let (left, mut right) = cable::pair(64, 64);
        let fates =
            &[Fate::Pass, Fate::Lose, Fate::Duplicate, Fate::Corrupt { bit: 9 }, Fate::Hold { frames: 2 }];
        let mut left = Fault::new(left, script(fates), None);
        send(&mut left, 0..8);
        let got = receive(&mut right);
        assert_eq!(numbers(&got), [0, 2, 2, 3, 5, 6, 4, 7]);
        assert_eq!(got[3], [3, 2]);
        assert_eq!(left.stats().fault_dropped, 1);
    }

    #[test]
    fn a_scripted_line_does_what_it_is_told_on_receiving() {
        let (mut left, right) = cable::pair(64, 64);
        let fates = &[Fate::Hold { frames: 1 }, Fate::Pass, Fate::Lose, Fate::Duplicate];
        let mut right = Fault::new(right, None, script(fates));
        send(&mut left, 0..5);
        assert_eq!(numbers(&receive(&mut right)), [1, 0, 3, 3, 4]);
    }

    #[test]
    fn the_last_frame_is_not_held_for_ever() {
        let (left, mut right) = cable::pair(64, 64);
        let mut left = Fault::new(left, script(&[Fate::Hold { frames: 3 }]), None);
        send(&mut left, 0..1);
        for _ in 0..3 {
            assert!(receive(&mut right).is_empty());
            left.tx(1, &mut |_| None).unwrap();
        }
        assert_eq!(numbers(&receive(&mut right)), [0]);
    }

    #[test]
    fn a_full_backend_is_felt_and_nothing_is_lost() {
        let (left, mut right) = cable::pair(2, 64);
        let all = || Some(Box::new(|_, _: &[u8]| Fate::Duplicate) as Plan);
        let mut left = Fault::new(left, all(), None);
        let mut number = 0;
        let mut fill = |to: &mut [u8]| {
            to[0] = number;
            number += 1;
            Some(2)
        };
        assert_eq!(left.tx(9, &mut fill).unwrap(), 2);
        assert_eq!(left.tx(9, &mut fill).unwrap(), 0);
        assert_eq!(numbers(&receive(&mut right)), [0, 0]);
        left.flush().unwrap();
        assert_eq!(numbers(&receive(&mut right)), [1, 1]);
    }

    #[test]
    fn the_same_seed_does_the_same_and_rates_are_met() {
        let rates =
            Seeded { seed: 7, loss: 0.1, duplication: 0.05, corruption: 0.02, reordering: 0.2, span: 4 };
        let fates = |seed| {
            let mut plan = Seeded { seed, ..rates }.plan();
            (0..10_000).map(|number| plan(number, &[0; 64])).collect::<Vec<_>>()
        };
        assert_eq!(fates(7), fates(7));
        assert_ne!(fates(7), fates(8));
        let share = |wanted: fn(&Fate) -> bool| fates(7).iter().filter(|fate| wanted(fate)).count();
        assert!((900..1100).contains(&share(|fate| *fate == Fate::Lose)));
        assert!((400..600).contains(&share(|fate| *fate == Fate::Duplicate)));
        assert!((150..250).contains(&share(|fate| matches!(fate, Fate::Corrupt { .. }))));
        assert!((1850..2150).contains(&share(|fate| matches!(fate, Fate::Hold { frames: 1..=4 }))));
    }
}
