//! The figures of a transfer.

use std::fmt::{self, Display};

use serde::Serialize;

use crate::stats::{gbps, rounded};

/// What a transfer came to.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Rate {
    pub(super) bytes: u64,
    seconds: f64,
    gbps: f64,
}

impl Rate {
    pub(super) fn new(bytes: u64, seconds: f64) -> Self {
        Self { bytes, seconds: rounded(seconds), gbps: rounded(gbps(bytes, seconds)) }
    }
}

impl Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes in {:.2} s, {:.2} Gbit/s", self.bytes, self.seconds, self.gbps)
    }
}
