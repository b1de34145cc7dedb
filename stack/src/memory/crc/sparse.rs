//! Moving bytes on without multiplying, for passes that only read.
//!
//! Some multiples of the polynomial have few terms. One with the exponents 8 * 2246, 8 * (2246 - 1850), ..., 0 says
//! that a byte may be taken out where it is and added in four other places instead: 1850, 2118, 2198 and 2246 bytes
//! on (the idea is that of Sam Russell's "Chorba"). That costs four loads and XORs, which a CPU does beside its
//! multiplications. So the multiplier, which limits the loops here, is spared a third of the bytes.
//!
//! A copying pass gains nothing: what is moved would have to be copied in a burst, faster than caches take it.

use core::arch::x86_64::*;
use core::array;

use super::fold::factors;
use super::fold256;

/// Bytes of a block: most of a packet of the largest path MTU, the only one that is worth the code.
pub(super) const LEN: usize = REST + 18 * ROUND;

const STEP: usize = size_of::<__m256i>();
const ROUND: usize = 4 * STEP;

/// Bytes that come first and are not moved.
const FIRST: usize = ROUND;
/// Bytes behind them that are moved: none of them onto another, as every distance is larger, nor out of the block.
const MOVED: usize = 1408;
/// Where the bytes begin that others are added to.
const REST: usize = FIRST + MOVED;
/// How far bytes are moved. There are few choices; with this one loads hardly ever wait.
const DISTANCES: [usize; 4] = [1850, 2118, 2198, 2246];

/// Folds a block, with `register` added to its first bytes, into 128 bytes.
#[target_feature(enable = "avx2,vpclmulqdq")]
pub(super) fn fold_block(register: __m256i, block: &[u8; LEN]) -> [__m256i; 4] {
    let mut lanes = array::from_fn(|lane| load(block, lane * STEP));
    lanes[0] = _mm256_xor_si256(lanes[0], register);
    // Each round is code of its own, as most add from other distances.
    macro_rules! rounds {
        ($by:expr; $($round:literal)+) => {
            let by = fold256::constants(const { factors($by as u32) });
            $(
                let next = round::<{ REST + $round * ROUND }>(block);
                lanes = array::from_fn(|lane| fold256::fold(lanes[lane], next[lane], by));
            )+
        };
    }
    rounds!(REST; 0);
    rounds!(ROUND; 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17);
    lanes
}

/// The 128 bytes at `AT`, with all that is moved there.
#[inline]
#[target_feature(enable = "avx2")]
fn round<const AT: usize>(block: &[u8; LEN]) -> [__m256i; 4] {
    [step::<AT, 0>(block), step::<AT, 1>(block), step::<AT, 2>(block), step::<AT, 3>(block)]
}

/// The 32 bytes of one lane of a round, with all that is moved there.
#[inline]
#[target_feature(enable = "avx2")]
fn step<const AT: usize, const LANE: usize>(block: &[u8; LEN]) -> __m256i {
    let at = AT + LANE * STEP;
    let mut sum = load(block, at);
    for distance in DISTANCES {
        if let Some(from) = at.checked_sub(distance)
            && (FIRST + 1 - STEP..REST).contains(&from)
        {
            sum = _mm256_xor_si256(sum, moved(block, from));
        }
    }
    sum
}

/// The 32 bytes at `from`, zero where they are not among those to be moved.
#[inline]
#[target_feature(enable = "avx2")]
fn moved(block: &[u8; LEN], from: usize) -> __m256i {
    /// Ones for 32 bytes, zeros before and behind.
    static ONES: [u8; 3 * STEP] = {
        let mut ones = [0; 3 * STEP];
        let mut at = STEP;
        while at < 2 * STEP {
            ones[at] = 0xff;
            at += 1;
        }
        ones
    };
    let bytes = load(block, from);
    if from < FIRST {
        _mm256_and_si256(bytes, load(&ONES, from + STEP - FIRST))
    } else if from + STEP > REST {
        _mm256_and_si256(bytes, load(&ONES, from + 2 * STEP - REST))
    } else {
        bytes
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load<const N: usize>(bytes: &[u8; N], at: usize) -> __m256i {
    let bytes: &[u8] = &bytes[at..at + STEP];
    // SAFETY: 32 bytes are readable there; the load needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[cfg(test)]
mod tests {
    use super::super::fold::power;
    use super::*;

    #[test]
    fn a_byte_is_the_sum_of_those_it_is_moved_to() {
        let longest = DISTANCES[3];
        let sum = DISTANCES.iter().fold(0, |sum, distance| sum ^ power(8 * (longest - distance) as u32));
        assert_eq!(sum, power(8 * longest as u32));
    }

    #[test]
    fn no_byte_is_moved_onto_one_that_is_moved_or_out_of_the_block() {
        assert!(DISTANCES.iter().all(|distance| (MOVED..=LEN - REST).contains(distance)));
    }
}
