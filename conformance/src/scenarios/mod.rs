//! The scenarios: each runs in both directions, over every route, with data compared byte by byte.

mod atomics;
mod refusals;
mod transfers;

use crate::peer::Route;
use crate::scenario::Scenario;

/// All scenarios for a route.
pub(crate) fn all(route: Route) -> Vec<Scenario> {
    let mut list = transfers::all(route.mtu as usize);
    list.extend(atomics::all());
    list.extend(refusals::all(route.mtu as usize));
    list
}
