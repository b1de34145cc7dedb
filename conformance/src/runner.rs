//! Runs scenarios on pairs of peers and collects what came of it.

use std::time::{Duration, Instant};

use crate::peer::{Family, Peer, Result, Route};
use crate::scenario::{Pair, Scenario};
use crate::scenarios;

/// The routes every scenario runs over.
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

/// Runs every wanted scenario over every route, in both directions; `seen` gets each row of cells as it is done.
pub fn run(
    first: &mut dyn Peer,
    second: &mut dyn Peer,
    filter: &Filter,
    mut seen: impl FnMut(&[Cell]),
) -> Vec<Cell> {
    let mut cells = Vec::new();
    for route in ROUTES {
        for scenario in scenarios::all(route).iter().filter(|scenario| filter.wants(&scenario.name)) {
            let row = [cell(scenario, route, first, second), cell(scenario, route, second, first)];
            seen(&row);
            cells.extend(row);
        }
    }
    cells
}

fn cell(scenario: &Scenario, route: Route, active: &mut dyn Peer, passive: &mut dyn Peer) -> Cell {
    let direction = format!("{} to {}", active.name(), passive.name());
    let start = Instant::now();
    let failure = attempt(scenario, route, active, passive).err().map(|error| error.to_string());
    let name = scenario.name.clone();
    Cell { scenario: name, route: route.to_string(), direction, time: start.elapsed(), failure }
}

fn attempt(scenario: &Scenario, route: Route, active: &mut dyn Peer, passive: &mut dyn Peer) -> Result<()> {
    let mut pair = Pair::open(active, passive, route, scenario.demands)?;
    let result = (scenario.run)(&mut pair);
    let closed = pair.close();
    result.and(closed)
}
