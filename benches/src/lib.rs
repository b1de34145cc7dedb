//! Benchmarks: the wire code, the copy and CRC kernel, the stack alone.

mod pair;

pub use pair::{Pair, Work};
