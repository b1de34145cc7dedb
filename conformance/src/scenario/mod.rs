//! A scenario, the pair of ends it runs on, and what it may check.

mod checks;
mod pair;

use crate::peer::{Demands, Family, Result, Route};

pub use checks::{
    FIRST_PLACE, check_equal, check_memory, check_status, check_success, eventually_memory, pattern, place,
    untouched,
};
pub use pair::{LIMIT, Pair, SILENCE};

/// Bytes around what an operation touches that are checked to be untouched.
const MARGIN: usize = 64;

/// What a scenario does; an error is a failure and its text the reason.
pub type Run = Box<dyn Fn(&mut Pair<'_>) -> Result<()>>;

/// Which routes a scenario is worth running over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routes {
    /// All of them.
    Every,
    /// One of each family, each with another path MTU.
    OnePerFamily,
    /// One: what is tested has nothing to do with the way.
    One,
}

impl Routes {
    /// Whether the route is one of them.
    pub fn contain(self, route: Route) -> bool {
        let plain = route.family == Family::V4 && route.mtu == 1024;
        match self {
            Self::Every => true,
            Self::OnePerFamily => plain || (route.family == Family::V6 && route.mtu == 4096),
            Self::One => plain,
        }
    }
}

/// One thing that must work, or must be refused, between any two ends.
pub struct Scenario {
    /// Its name, such as `write/1025`.
    pub name: String,
    /// What it asks of both ends beyond the usual.
    pub demands: Demands,
    /// Where it runs.
    pub routes: Routes,
    /// Runs it.
    pub run: Run,
}

impl Scenario {
    /// A scenario over the memory that one message of `length` bytes takes.
    pub fn message(
        name: impl Into<String>,
        length: usize,
        run: impl Fn(&mut Pair<'_>) -> Result<()> + 'static,
    ) -> Self {
        let demands = Demands::memory(length + 4 * MARGIN);
        Self { name: name.into(), demands, routes: Routes::One, run: Box::new(run) }
    }

    /// The same over these routes; without a word it is one.
    #[must_use]
    pub fn over(self, routes: Routes) -> Self {
        Self { routes, ..self }
    }

    /// The same with changed demands.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Demands)) -> Self {
        change(&mut self.demands);
        self
    }
}

impl std::fmt::Debug for Scenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scenario").field("name", &self.name).finish_non_exhaustive()
    }
}
