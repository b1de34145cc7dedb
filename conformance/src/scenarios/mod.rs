//! The scenarios: each runs in both directions, with data compared byte by byte.

mod atomics;
mod common;
mod datagrams;
mod endings;
mod errors;
mod flush;
mod invalidate;
mod multicast;
mod refusals;
mod shared;
mod states;
mod transfers;
mod unreliable;
mod windows;

use crate::peer::Route;
use crate::scenario::Scenario;

/// All scenarios for a route. Those that open our device in another way come last.
pub(crate) fn all(route: Route) -> Vec<Scenario> {
    let mtu = route.mtu as usize;
    let mut list = transfers::all(mtu);
    list.extend(atomics::all());
    list.extend(refusals::all(mtu));
    list.extend(unreliable::all(mtu));
    list.extend(datagrams::all(mtu));
    list.extend(multicast::all());
    list.extend(shared::all());
    list.extend(windows::all());
    list.extend(invalidate::all());
    list.extend(errors::all());
    list.extend(states::all());
    list.extend(endings::all());
    list.extend(flush::all());
    list.retain(|scenario| scenario.routes.contain(route));
    list
}
