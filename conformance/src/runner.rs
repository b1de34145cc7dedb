//! Runs scenarios on pairs of peers and collects what came of it.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::cm;
use crate::deviation::Deviation;
use crate::peer::{Family, Peer, Result, Route};
use crate::pingpong;
use crate::scenario::{Pair, Scenario};
use crate::scenarios;
use crate::watchdog::Watchdog;

/// The routes that scenarios run over, unless they ask for fewer.
pub const ROUTES: [Route; 4] = [
    Route { family: Family::V4, mtu: 1024 },
    Route { family: Family::V4, mtu: 4096 },
    Route { family: Family::V6, mtu: 1024 },
    Route { family: Family::V6, mtu: 4096 },
];

/// One scenario in one direction over one route.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Name of the scenario.
    pub scenario: String,
    /// The route, as text.
    pub route: String,
    /// Who acted on whom.
    pub direction: String,
    /// How long it took.
    pub time: Duration,
    /// What went wrong, if anything.
    pub failure: Option<String>,
    /// Where rdma_rxe was expected to differ from the specification.
    pub deviations: Vec<&'static Deviation>,
}

/// Which scenarios to run: those whose name contains the text; all for none.
#[derive(Clone, Debug, Default)]
pub struct Filter(pub Option<String>);

impl Filter {
    /// Whether a scenario is asked for.
    pub fn wants(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|text| name.contains(text.as_str()))
    }
}

/// Runs every wanted scenario over its routes, in both directions; `seen` gets each row of cells as it is done.
pub fn run(
    first: &mut dyn Peer,
    second: &mut dyn Peer,
    filter: &Filter,
    watchdog: &Watchdog,
    mut seen: impl FnMut(&[Cell]),
) {
    for route in ROUTES {
        for scenario in scenarios::all(route).iter().filter(|scenario| filter.wants(&scenario.name)) {
            let there = cell(scenario, route, first, second, watchdog);
            seen(&[there, cell(scenario, route, second, first, watchdog)]);
        }
    }
}

/// Names of all scenarios, whatever their routes.
pub fn names() -> BTreeSet<String> {
    let scenarios = ROUTES.iter().flat_map(|route| scenarios::all(*route));
    scenarios.map(|scenario| scenario.name).chain(pingpong::names()).chain(cm::names()).collect()
}

fn cell(
    scenario: &Scenario,
    route: Route,
    active: &mut dyn Peer,
    passive: &mut dyn Peer,
    watchdog: &Watchdog,
) -> Cell {
    let cell = Cell {
        scenario: scenario.name.clone(),
        route: route.to_string(),
        direction: format!("{} to {}", active.name(), passive.name()),
        time: Duration::ZERO,
        failure: None,
        deviations: Vec::new(),
    };
    let _watched = watchdog.watch(&cell);
    let start = Instant::now();
    let (result, deviations) = attempt(scenario, route, active, passive);
    Cell { time: start.elapsed(), failure: result.err().map(|error| error.to_string()), deviations, ..cell }
}

fn attempt(
    scenario: &Scenario,
    route: Route,
    active: &mut dyn Peer,
    passive: &mut dyn Peer,
) -> (Result<()>, Vec<&'static Deviation>) {
    let mut pair = match Pair::open(active, passive, route, scenario) {
        Ok(pair) => pair,
        Err(error) => return (Err(error), Vec::new()),
    };
    let result = (scenario.run)(&mut pair);
    let (closed, deviations) = pair.close();
    (result.and(closed), deviations)
}
