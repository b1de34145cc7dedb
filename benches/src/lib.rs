//! Benchmarks: the wire code, the copy and CRC kernel, the stack alone.

mod pair;
mod timing;

pub use pair::{Pair, Work};
pub use timing::{best_in_turn, best_of};
