//! Random numbers that peers must not guess: queue pair numbers, keys, first IP identifications.

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng};

/// A cryptographic generator, seeded once by the driver.
pub(crate) struct Rng(ChaCha12Rng);

impl Rng {
    pub(crate) fn new(seed: [u8; 32]) -> Self {
        Self(ChaCha12Rng::from_seed(seed))
    }

    pub(crate) fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// A number in `0..bound`; `bound` is not 0. The bias is below bound / 2^64.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        let wide = u128::from(self.0.next_u64()) * u128::from(bound);
        (wide >> 64) as u32
    }
}

impl core::fmt::Debug for Rng {
    /// The state stays secret.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Rng")
    }
}
