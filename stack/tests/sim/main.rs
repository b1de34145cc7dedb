//! Two endpoints in virtual time on a cable that loses, duplicates, reorders, corrupts and delays.
//!
//! Each seed makes its own queue pairs, work and faults. A shadow of all memory tells what must come out: every work
//! request completes once, in order, with the right bytes; nothing is lost, nothing is executed twice.
//!
//! A failure prints its seed. `UROCE_SEED=n` runs that seed alone; `UROCE_SEEDS=n` sets how many run.

mod cable;
mod endpoint;
mod parties;
mod plan;
mod rng;
mod shared;
mod unreliable;
mod world;

use cable::Faults;
use unreliable::Unreliable;
use world::World;

/// Seeds of each test unless `UROCE_SEEDS` says otherwise.
const SEEDS: u64 = 1000;

#[test]
fn a_perfect_cable() {
    run_seeds(SEEDS / 4, Faults::default());
}

#[test]
fn a_cable_that_loses_duplicates_reorders_and_corrupts() {
    run_seeds(SEEDS, Faults { loss: 0.01, duplication: 0.01, reordering: 0.05, corruption: 0.001 });
}

#[test]
fn a_cable_that_loses_one_packet_in_twenty() {
    run_seeds(SEEDS / 2, Faults { loss: 0.05, ..Faults::default() });
}

#[test]
fn a_cable_that_reorders_wildly() {
    run_seeds(SEEDS / 2, Faults { reordering: 0.3, duplication: 0.1, ..Faults::default() });
}

#[test]
fn the_same_seed_does_the_same() {
    let faults = Faults { loss: 0.02, duplication: 0.02, reordering: 0.1, corruption: 0.01 };
    let run = || World::new(42, faults).run().expect("seed 42");
    assert_eq!(run(), run());
}

#[test]
fn unreliable_services_on_a_perfect_cable_lose_nothing() {
    each_seed(SEEDS / 4, Faults::default(), |seed, faults| {
        let (sent, arrived) = Unreliable::new(seed, faults).run()?;
        if sent == arrived { Ok(()) } else { Err(format!("{arrived} of {sent} messages arrived")) }
    });
}

#[test]
fn unreliable_services_on_a_cable_that_loses_and_corrupts() {
    run_unreliable(Faults { loss: 0.05, corruption: 0.01, ..Faults::default() });
}

#[test]
fn unreliable_services_on_a_cable_that_duplicates() {
    run_unreliable(Faults { duplication: 0.1, loss: 0.01, ..Faults::default() });
}

#[test]
fn unreliable_services_on_a_cable_that_reorders_wildly() {
    run_unreliable(Faults { reordering: 0.3, duplication: 0.05, loss: 0.02, corruption: 0.001 });
}

/// Even so most of what is sent arrives: nine messages in twenty at least, of each seed.
fn run_unreliable(faults: Faults) {
    each_seed(SEEDS / 4, faults, |seed, faults| {
        let (sent, arrived) = Unreliable::new(seed, faults).run()?;
        if 20 * arrived >= 9 * sent { Ok(()) } else { Err(format!("{arrived} of {sent} messages arrived")) }
    });
}

fn run_seeds(count: u64, faults: Faults) {
    each_seed(count, faults, |seed, faults| World::new(seed, faults).run().map(|_| ()));
}

type Run = fn(u64, Faults) -> Result<(), String>;

fn each_seed(count: u64, faults: Faults, run: Run) {
    let number = |name| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
    if let Some(seed) = number("UROCE_SEED") {
        return run_seed(seed, faults, run);
    }
    (0..number("UROCE_SEEDS").unwrap_or(count)).for_each(|seed| run_seed(seed, faults, run));
}

fn run_seed(seed: u64, faults: Faults, run: Run) {
    let outcome = std::panic::catch_unwind(|| run(seed, faults));
    let failure = match outcome {
        Ok(Ok(())) => return,
        Ok(Err(failure)) => failure,
        Err(_) => "panicked".to_owned(),
    };
    panic!("seed {seed} with {faults:?}: {failure}\nrun it alone with UROCE_SEED={seed}");
}
