//! Times that a busy machine does not blur.

use std::time::Instant;

/// Rounds of which the best counts: short ones, so that some are left alone by whatever else runs.
const ROUNDS: usize = 1000;
const CALLS_PER_ROUND: u32 = 100;

/// Nanoseconds a call of each variant in its best round, the variants taking turns.
///
/// Ratios of these hold on a machine that is busy or changes its frequency, where a mean does not.
pub fn best_in_turn<T, const N: usize>(target: &mut T, variants: [fn(&mut T); N]) -> [f64; N] {
    let mut best = [f64::MAX; N];
    for _ in 0..ROUNDS {
        for (variant, best) in variants.iter().zip(&mut best) {
            *best = best.min(one_round(|| variant(target)));
        }
    }
    best
}

/// Nanoseconds a call in the best round.
pub fn best_of(mut call: impl FnMut()) -> f64 {
    (0..ROUNDS).map(|_| one_round(&mut call)).fold(f64::MAX, f64::min)
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn one_round(mut call: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..CALLS_PER_ROUND {
        call();
    }
    start.elapsed().as_nanos() as f64 / f64::from(CALLS_PER_ROUND)
}
