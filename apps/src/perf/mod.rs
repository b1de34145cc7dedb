//! `uroce bw` and `uroce lat`: figures in perftest's way.
//!
//! The end that measures is the initiator; the other one is the [`Responder`]. Between two processes they agree
//! over TCP ([`session`]); with `cable` in place of the interface both are in this process, on one thread, and each
//! turn of the initiator's loop gives the responder one, too: see [`Other`].

mod args;
mod bandwidth;
mod cm;
mod connection;
mod latency;
mod marker;
mod other;
mod plan;
mod report;
mod responder;
mod session;
mod side;

pub(crate) use args::{BwArgs, LatArgs};

use uroce::Drive;

use crate::device::{self, CABLE, cable_pair, path_mtu};
use crate::error::{Failure, Result};
use args::PerfArgs;
use other::{InProcess, Other};
use plan::{Plan, Test};
use report::Report;
use responder::Responder;
use side::Side;

/// Runs `uroce bw`.
pub(crate) fn bw(args: &BwArgs) -> Result<()> {
    run(&args.common, &args.plan())
}

/// Runs `uroce lat`.
pub(crate) fn lat(args: &LatArgs) -> Result<()> {
    run(&args.common, &args.plan())
}

fn run(args: &PerfArgs, plan: &Plan) -> Result<()> {
    args.check()?;
    plan.check()?;
    let reports = match (&args.host, args.iface == CABLE) {
        (Some(_), true) => {
            return Err(Failure::usage("with `cable` both ends are in this process: there is no HOST"));
        }
        (None, true) if plan.cm => {
            return Err(Failure::usage(
                "on the cable there is no connection manager to ask: leave --cm away",
            ));
        }
        (None, true) => on_cable(args, plan)?,
        (Some(host), false) => session::client(args, plan, host)?,
        (None, false) => session::server(args, plan)?,
    };
    if args.json { report::print_json(&reports) } else { Ok(()) }
}

/// Both ends on this thread.
fn on_cable(args: &PerfArgs, plan: &Plan) -> Result<Vec<Report>> {
    let (left, right) = cable_pair(Drive::Inline, Drive::Inline)?;
    let plan = plan.with_mtu(path_mtu(&left, plan.mtu)?)?;
    let (near, far) = (Side::prepare(&left, &plan)?, Side::prepare(&right, &plan)?);
    let (ours, theirs) = (near.card(), far.card());
    let far = far.connect(&plan, &ours)?;
    let near = near.connect(&plan, &theirs)?;
    left.show(&near.qps);
    right.show(&far.qps);
    let responder = Responder::new(&plan, far, &ours)?;
    let mut other = InProcess::new(responder);
    measure(args, &plan, &near, &theirs, &mut other)
}

/// Measures every size of the plan and shows each as it is done.
fn measure(
    args: &PerfArgs,
    plan: &Plan,
    near: &Side,
    theirs: &side::Card,
    other: &mut dyn Other,
) -> Result<Vec<Report>> {
    let mode = near.ctx.query_port().mode.to_string();
    let shown = report::Shown::start(plan, &mode, args.json)?;
    let mut reports = Vec::new();
    for size in plan.sizes() {
        other.begin(size)?;
        let measured = match plan.test {
            Test::Bw(op) => bandwidth::measure(plan, op, size, near, theirs, other, !args.json)?,
            Test::Lat(op) => latency::measure(plan, op, size, near, theirs, other, !args.json)?,
        };
        let report = Report::new(plan, size, &mode, measured);
        shown.row(&report)?;
        reports.push(report);
    }
    device::log_counters(&near.ctx);
    Ok(reports)
}
