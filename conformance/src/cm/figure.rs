//! What was measured, beside what was passed.

use std::time::Duration;

use serde::Serialize;

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Of what, with its unit.
    pub name: &'static str,
    /// Who acted on whom.
    pub direction: &'static str,
    /// How much.
    pub value: f64,
}

impl Figure {
    /// How many of `count` there were in a second.
    pub(super) fn rate(name: &'static str, direction: &'static str, count: usize, time: Duration) -> Self {
        Self { name, direction, value: count as f64 / time.as_secs_f64().max(f64::MIN_POSITIVE) }
    }
}

impl std::fmt::Display for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, {}: {:.0}", self.name, self.direction, self.value)
    }
}
