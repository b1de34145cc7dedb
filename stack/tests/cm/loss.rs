//! Two connection managers over a link that loses, delays and doubles datagrams: whatever it does, both agree in the end.
//!
//! A failure prints its seed. `UROCE_SEED=n` runs that seed alone; `UROCE_SEEDS=n` sets how many run.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::host::*;
use crate::peer::PEER_GUID;
use uroce_stack::Instant;
use uroce_stack::QpType;
use uroce_stack::cm::*;
use uroce_stack::wire::Qpn;
use uroce_stack::wire::cm::{CmKind, CmMad};

/// xorshift64*, for the link.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33
    }

    fn percent(&mut self, chance: u64) -> bool {
        self.next() % 100 < chance
    }
}

/// One end, with an application that does what is asked of it.
struct End {
    cm: Cm,
    address: &'static str,
    conn: Option<ConnId>,
    /// What the application has heard and done, in order.
    log: Vec<&'static str>,
}

impl End {
    fn new(address: &'static str, guid: u64, seed: u8) -> Self {
        let config = CmConfig { ca_guid: guid, ..config(seed) };
        let cm = Cm::new(config).expect("the configuration is valid");
        Self { cm, address, conn: None, log: Vec::new() }
    }

    fn answer(&mut self, now: Instant, event: CmEvent) {
        match event {
            CmEvent::ConnectRequest(request) => {
                self.conn = Some(request.id);
                self.log.push("request");
                self.cm.accept(now, request.id, &accept_params(b"")).expect("it was just asked for");
            }
            CmEvent::Reply(reply) => {
                self.log.push("reply");
                self.cm.establish(reply.id, b"").expect("it was just granted");
            }
            CmEvent::DisconnectRequest { id, .. } => {
                self.log.push("asked to end");
                self.cm.disconnect(now, id, b"").expect("it was just asked for");
            }
            CmEvent::Established { .. } => self.log.push("established"),
            CmEvent::Disconnected { .. } => self.log.push("disconnected"),
            CmEvent::TimewaitExit { .. } => self.log.push("over"),
            CmEvent::Rejected { .. } => self.log.push("rejected"),
            CmEvent::Unreachable { .. } => self.log.push("unreachable"),
            CmEvent::MraReceived { .. } => {}
            other => panic!("no such thing happens here: {other:?}"),
        }
    }

    fn state(&self) -> Option<CmState> {
        self.conn.and_then(|id| self.cm.state(id))
    }

    fn is_done(&self) -> bool {
        self.cm.connections() == 0
    }
}

/// When, in order of sending: to which end, what.
type Wire = BTreeMap<(Instant, u64), (usize, Datagram)>;

struct Link {
    ends: [End; 2],
    now: Instant,
    wire: Wire,
    sent: u64,
    dice: Dice,
    loss: u64,
    /// Loses the first of each kind that is in here.
    lose_once: Vec<CmKind>,
}

impl Link {
    fn new(seed: u64, loss: u64, lose_once: &[CmKind]) -> Self {
        let mut ends =
            [End::new(HERE, OUR_GUID, seed as u8), End::new(THERE, PEER_GUID, (seed >> 8) as u8 ^ 0x80)];
        ends[1].cm.listen(&ListenParams::new(SERVICE, QpType::Rc)).expect("nobody else");
        let dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let lose_once = lose_once.to_vec();
        Self { ends, now: Instant::from_nanos(1), wire: Wire::new(), sent: 0, dice, loss, lose_once }
    }

    fn connect(&mut self) {
        let id = self.ends[0].cm.connect(self.now, &connect_params(b"")).expect("it is possible");
        self.ends[0].conn = Some(id);
    }

    fn disconnect(&mut self, end: usize) {
        let end = &mut self.ends[end];
        if end.state() == Some(CmState::Established) {
            end.log.push("ends");
            let id = end.conn.expect("it is established");
            end.cm.disconnect(self.now, id, b"").expect("it is established");
        }
    }

    /// One end, the other, or both end it; or who asked for it gives up.
    fn end_somehow(&mut self) {
        match self.dice.next() % 4 {
            0 => self.disconnect(0),
            1 => self.disconnect(1),
            2 => (0..2).for_each(|end| self.disconnect(end)),
            _ => {
                let id = self.ends[0].conn.expect("it was asked for");
                if self.ends[0].cm.destroy(self.now, id).is_ok() {
                    self.ends[0].log.push("over");
                }
            }
        }
    }

    /// Lets everything happen until nothing more does, or `until` has come.
    fn run(&mut self, until: Instant) {
        for _ in 0..100_000 {
            self.settle();
            let deadlines = self.ends.iter().filter_map(|end| end.cm.next_deadline());
            let arrivals = self.wire.keys().next().map(|(at, _)| *at);
            let Some(next) = deadlines.chain(arrivals).min().filter(|next| *next <= until) else {
                self.now = until;
                return;
            };
            self.now = self.now.max(next);
            self.deliver();
            for end in &mut self.ends {
                end.cm.expire(self.now);
            }
        }
        panic!("no end of it");
    }

    fn settle(&mut self) {
        for from in 0..2 {
            while let Some(event) = self.ends[from].cm.next_event() {
                self.ends[from].answer(self.now, event);
            }
            while let Some(datagram) = self.ends[from].cm.poll_transmit() {
                self.send(1 - from, datagram);
            }
        }
    }

    fn send(&mut self, to: usize, datagram: Datagram) {
        assert_eq!(datagram.destination, ip(self.ends[to].address));
        let kind = CmMad::parse(&datagram.mad).expect("a message").message.kind();
        if let Some(place) = self.lose_once.iter().position(|lost| *lost == kind) {
            self.lose_once.remove(place);
            return;
        }
        let copies = 1 + u64::from(self.loss > 0 && self.dice.percent(10));
        for _ in 0..copies {
            if self.dice.percent(self.loss) {
                continue;
            }
            // Up to 20 ms, and now and then longer than any timeout: duplicates and late ones.
            let late = self.loss > 0 && self.dice.percent(5);
            let millis = if late { self.dice.next() % 12_000 } else { 1 + self.dice.next() % 20 };
            self.sent += 1;
            self.wire.insert((self.now + Duration::from_millis(millis), self.sent), (to, datagram));
        }
    }

    fn deliver(&mut self) {
        while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (to, datagram) = entry.remove();
            let (source, destination) = (datagram.source, datagram.destination);
            let sender = Sender { source, destination, source_qp: Qpn::GSI };
            self.ends[to].cm.receive(self.now, &sender, &datagram.mad);
        }
    }

    fn in_seconds(&self, seconds: u64) -> Instant {
        self.now + Duration::from_secs(seconds)
    }

    fn logs(&self) -> [&[&'static str]; 2] {
        [&self.ends[0].log, &self.ends[1].log]
    }
}

const ACTIVE: &[&str] = &["reply", "ends", "disconnected", "over"];
const PASSIVE: &[&str] = &["request", "established", "asked to end", "over"];

/// Each message is lost once: everything still happens, in the same order.
#[test]
fn each_message_may_get_lost() {
    let lost: [&[CmKind]; 8] = [
        &[],
        &[CmKind::Req],
        &[CmKind::Rep],
        &[CmKind::Rtu],
        &[CmKind::Dreq],
        &[CmKind::Drep],
        &[CmKind::Req, CmKind::Rep, CmKind::Rtu],
        &[CmKind::Req, CmKind::Rep, CmKind::Rtu, CmKind::Dreq, CmKind::Drep],
    ];
    for lost in lost {
        let mut link = Link::new(1, 0, lost);
        link.connect();
        link.run(link.in_seconds(30));
        assert!(link.lose_once.iter().all(|kind| matches!(kind, CmKind::Dreq | CmKind::Drep)), "{lost:?}");
        link.disconnect(0);
        link.run(link.in_seconds(30));
        assert_eq!(link.logs(), [ACTIVE, PASSIVE], "{lost:?}");
        assert!(link.ends.iter().all(End::is_done) && link.lose_once.is_empty());
    }
}

/// The RTU is lost and the connection ended before it is repeated: the passive side never was established.
#[test]
fn a_connection_may_end_before_its_rtu_arrives() {
    let mut link = Link::new(1, 0, &[CmKind::Rtu]);
    link.connect();
    link.run(link.in_seconds(1));
    link.disconnect(0);
    link.run(link.in_seconds(30));
    assert_eq!(link.logs(), [ACTIVE, &["request", "asked to end", "over"]]);
}

#[test]
fn both_ends_may_end_it_at_once() {
    for lost in [&[][..], &[CmKind::Dreq], &[CmKind::Drep], &[CmKind::Dreq, CmKind::Drep]] {
        let mut link = Link::new(1, 0, lost);
        link.connect();
        link.run(link.in_seconds(1));
        link.disconnect(0);
        link.disconnect(1);
        link.run(link.in_seconds(60));
        let ended = |log: &[&str]| log.ends_with(&["over"]) && log.contains(&"ends");
        assert!(link.logs().iter().all(|log| ended(log)), "{lost:?}: {:?}", link.logs());
        assert!(link.ends.iter().all(End::is_done));
    }
}

/// Seeds of each test unless `UROCE_SEEDS` says otherwise.
const SEEDS: u64 = 3000;

/// Runs `run` with many seeds; how many did.
fn each_seed(run: impl Fn(u64)) -> u64 {
    let number = |name| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
    let seeds = match number("UROCE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("UROCE_SEEDS").unwrap_or(SEEDS),
    };
    let count = seeds.end - seeds.start;
    for seed in seeds {
        let shown = ShowSeed(seed);
        run(seed);
        drop(shown);
    }
    count
}

/// Prints the seed when its run panics.
struct ShowSeed(u64);

impl Drop for ShowSeed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("UROCE_SEED={} fails", self.0);
        }
    }
}

/// A third of all datagrams is lost. Without anybody ending it, both are connected or neither is.
#[test]
fn both_are_connected_or_neither_is() {
    let connected = Cell::new(0);
    let count = each_seed(|seed| {
        let mut link = Link::new(seed, 33, &[]);
        link.connect();
        link.run(link.in_seconds(300));
        let states = [link.ends[0].state(), link.ends[1].state()];
        assert_eq!(states[0], states[1], "{:?}", link.logs());
        assert!(matches!(states[0], None | Some(CmState::Established)), "{states:?}");
        connected.set(connected.get() + u64::from(states[0].is_some()));
    });
    assert!(connected.get() * 100 >= count * 95, "{} of {count}", connected.get());
}

/// Somebody ends it, at any time: in the end nothing is left, and both applications know.
#[test]
fn whoever_ends_it_whenever_nothing_is_left() {
    each_seed(|seed| {
        let mut link = Link::new(seed, 10 + seed % 60, &[]);
        link.connect();
        let pause = link.dice.next() % 20_000;
        link.run(link.now + Duration::from_millis(pause));
        link.end_somehow();
        link.run(link.in_seconds(400));
        // What was not established then may be so now.
        for _ in 0..2 {
            (0..2).for_each(|end| link.disconnect(end));
            link.run(link.in_seconds(400));
        }
        assert!(link.ends.iter().all(End::is_done), "{:?}", link.logs());
        let last = [link.ends[0].log.last(), link.ends[1].log.last()];
        let is_end = |last: &&'static str| matches!(*last, "over" | "rejected" | "unreachable");
        assert!(last.iter().flatten().all(|last| is_end(last)), "{:?}", link.logs());
    });
}
