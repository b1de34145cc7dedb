//! Virtual time: both ends, the cable between them, and nothing else.

use uroce_stack::Instant;
use uroce_stack::wire::{Mtu, Packet, Psn};

use crate::cable::{Cable, Faults};
use crate::endpoint::{Agreement, Endpoint, Side};
use crate::plan::{Plan, Target};
use crate::rng::Rng;

/// More virtual time than any run needs: 200 seconds.
const TIME_LIMIT: u64 = 200_000_000_000;

pub(crate) struct World {
    ends: [Endpoint; 2],
    cable: Cable,
    now: u64,
    rng: Rng,
    /// By end and queue pair: what must be in its area once all is done.
    shadows: [Vec<Vec<u8>>; 2],
}

impl World {
    pub(crate) fn new(seed: u64, faults: Faults) -> Self {
        let mut rng = Rng::new(seed, 0);
        let ends = [Endpoint::new(0, rng.seed()), Endpoint::new(1, rng.seed())];
        let cable = Cable::new(Rng::new(seed, 1), faults);
        let mut world = Self { ends, cable, now: 0, rng, shadows: Default::default() };
        for _ in 0..1 + world.rng.below(3) {
            world.add_pair();
        }
        world
    }

    /// Runs until every work request is done; tells the virtual time and the frames it took.
    pub(crate) fn run(mut self) -> Result<(u64, u64), String> {
        while !self.ends.iter().all(Endpoint::is_done) {
            self.step()?;
            self.advance()?;
        }
        self.check_memory()?;
        Ok((self.now, self.cable.sent()))
    }

    fn add_pair(&mut self) {
        let rng = &mut self.rng;
        let agreed = Agreement {
            mtu: rng.pick(&[Mtu::B256, Mtu::B512, Mtu::B1024]),
            ipv6: rng.chance(0.3),
            depth: rng.pick(&[1, 2, 4, 16]),
            psns: [start_psn(rng), start_psn(rng)],
        };
        let mut targets: Vec<Target> = Vec::new();
        for end in &mut self.ends {
            let capacity = rng.pick(&[4, 16, 64]);
            targets.push(end.add(rng, capacity));
        }
        let index = self.ends[0].sides.len() - 1;
        let numbers = [self.ends[0].sides[index].qpn, self.ends[1].sides[index].qpn];
        self.ends[0].connect(index, numbers[1], &agreed);
        self.ends[1].connect(index, numbers[0], &agreed);
        self.plan(index, targets, agreed.mtu.bytes());
    }

    /// End 0 acts on what end 1 offers, and the other way round.
    fn plan(&mut self, index: usize, mut targets: Vec<Target>, mtu: usize) {
        let plans =
            [Plan::new(&mut self.rng, &mut targets[1], mtu), Plan::new(&mut self.rng, &mut targets[0], mtu)];
        let expected = [Side::expected_by_peer(&plans[1]), Side::expected_by_peer(&plans[0])];
        for ((end, plan), expected) in self.ends.iter_mut().zip(plans).zip(expected) {
            end.sides[index].set_plan(plan, expected);
        }
        for (shadows, target) in self.shadows.iter_mut().zip(targets) {
            shadows.push(target.shadow);
        }
    }

    fn step(&mut self) -> Result<(), String> {
        let now = Instant::from_nanos(self.now);
        while let Some((to, frame)) = self.cable.receive(self.now) {
            trace(self.now, to, &frame);
            let cut = frame.len().min(80 + self.rng.below(400));
            self.ends[to].engine.receive(now, &frame[..cut], &frame[cut..]);
        }
        let mut frame = [0; 5000];
        for (index, end) in self.ends.iter_mut().enumerate() {
            end.engine.expire(now);
            while let Some(len) = end.engine.transmit(now, &mut frame) {
                self.cable.send(self.now, 1 - index, &frame[..len]);
            }
            end.engine.publish(&mut |_| {});
            end.act(&mut self.rng)?;
        }
        Ok(())
    }

    /// To the next arrival or timer, or a little further when an application has just posted.
    fn advance(&mut self) -> Result<(), String> {
        let timers = self.ends.iter().filter_map(|end| end.engine.next_deadline()).map(Instant::as_nanos);
        let busy = self.ends.iter().any(|end| end.engine.has_work()) || !self.all_posted();
        let soon = busy.then_some(self.now + 1_000);
        let next = timers.chain(self.cable.next_arrival()).chain(soon).min();
        self.now = next.ok_or("nothing is under way, yet not all is done")?.max(self.now + 1);
        if self.now > TIME_LIMIT { Err("not done in time".into()) } else { Ok(()) }
    }

    fn all_posted(&self) -> bool {
        self.ends.iter().flat_map(|end| &end.sides).all(Side::has_posted_all)
    }

    fn check_memory(&self) -> Result<(), String> {
        for (end, shadows) in self.ends.iter().zip(&self.shadows) {
            for (side, shadow) in end.sides.iter().zip(shadows) {
                side.check_area(shadow)?;
            }
        }
        Ok(())
    }
}

/// Often just before the wrap.
fn start_psn(rng: &mut Rng) -> Psn {
    let any = rng.word() as u32;
    if rng.chance(0.5) { Psn::new(0xFF_FFFF - any % 40) } else { Psn::new(any) }
}

/// With `UROCE_TRACE` set, prints every frame that arrives.
fn trace(now: u64, to: usize, frame: &[u8]) {
    if std::env::var_os("UROCE_TRACE").is_none() {
        return;
    }
    let what = match Packet::parse(frame, &[]) {
        Ok(packet) => format!("{} {} {:?}", packet.bth.dest_qp, packet.bth.psn, packet.operation),
        Err(malformed) => format!("{malformed:?}"),
    };
    println!("{now:>12} to {to}: {what}");
}
