//! `uroce stat`: what running endpoints count, looked at from outside.
//!
//! Every command that drives a device [serves](Serving) its counters at a socket of its own; this command finds them
//! and shows them once, again and again, or to a scraper.

mod document;
mod find;
mod http;
mod openmetrics;
mod places;
mod serve;
mod show;

pub(crate) use serve::Serving;

use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use clap::Args;

use crate::clock::Stopwatch;
use crate::error::{Context, Failure, Result};
use crate::{interrupt, out, tcp};
use document::Endpoint;
use find::Wanted;
use http::Answer;
use show::Before;

const AFTER_HELP: &str = "\
Examples:
  uroce stat                            every endpoint that runs, a line each
  uroce stat eth0                       its counters, of the device and of each queue pair
  uroce stat eth0 --watch               again every second, with differences and rates
  uroce stat --serve                    OpenMetrics at http://127.0.0.1:9791/metrics

Endpoints of other users are shown to root only.";

/// Where metrics are unless said otherwise.
const PORT: u16 = 9791;
/// Moves to the top left corner and clears what is below.
const CLEAR: &str = "\x1b[H\x1b[J";

/// `uroce stat`
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct StatArgs {
    /// Interface whose endpoints to show, with every counter; without it, all in a line each
    iface: Option<String>,
    /// Only those of this process, with every counter
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Show again every so many seconds, with differences and rates
    #[arg(short, long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1", value_parser = seconds)]
    watch: Option<Duration>,
    /// Show counters that are 0, too
    #[arg(short, long)]
    all: bool,
    /// Answer scrapers over HTTP, in OpenMetrics [default: 127.0.0.1:9791]
    #[arg(long, value_name = "ADDR:PORT", num_args = 0..=1, default_missing_value = "9791", value_parser = address, conflicts_with_all = ["watch", "all", "json"])]
    serve: Option<SocketAddr>,
    /// Print JSON; with --watch a line each time
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub(crate) fn main(args: &StatArgs) -> Result<()> {
    let wanted = Wanted { interface: args.iface.clone(), pid: args.pid };
    match (args.serve, args.watch) {
        (Some(address), _) => serve(address, &wanted),
        (None, Some(period)) => watch(args, &wanted, period),
        (None, None) => once(args, &wanted),
    }
}

impl StatArgs {
    /// Whether counters are wanted, not a list.
    const fn is_specific(&self) -> bool {
        self.iface.is_some() || self.pid.is_some()
    }
}

fn once(args: &StatArgs, wanted: &Wanted) -> Result<()> {
    let endpoints = wanted.find();
    if args.json {
        return out::json(&endpoints);
    }
    match (endpoints.is_empty(), args.is_specific()) {
        (true, true) => Err(Failure::new(
            "no endpoint runs there that this user may look at: `uroce stat` lists all that do; endpoints of other \
             users are shown to root only",
        )),
        (true, false) => {
            out::note("no endpoint runs here: start one, for instance `uroce bw write eth0`");
            Ok(())
        }
        (false, true) => out::line(show::counters(&endpoints, None, args.all)),
        (false, false) => out::line(show::list(&endpoints)),
    }
}

/// Until the command is asked to end, which is how it succeeds.
fn watch(args: &StatArgs, wanted: &Wanted, period: Duration) -> Result<()> {
    let mut before: Option<(Vec<Endpoint>, Stopwatch)> = None;
    loop {
        let (endpoints, at) = (wanted.find(), Stopwatch::start());
        let earlier = before.as_ref();
        let earlier = earlier.map(|(then, since)| Before { endpoints: then, seconds: since.seconds() });
        print_again(args, &endpoints, earlier)?;
        before = Some((endpoints, at));
        if wait(period).is_err() {
            return Ok(());
        }
    }
}

fn print_again(args: &StatArgs, endpoints: &[Endpoint], before: Option<Before<'_>>) -> Result<()> {
    if args.json {
        return out::compact_json(&endpoints);
    }
    let text = match before {
        _ if endpoints.is_empty() => "no endpoint runs here now".to_owned(),
        _ if args.is_specific() => show::counters(endpoints, before, args.all),
        Some(before) => show::rates(endpoints, before),
        None => show::list(endpoints),
    };
    if std::io::stdout().is_terminal() { out::line(format_args!("{CLEAR}{text}")) } else { out::line(text) }
}

fn serve(address: SocketAddr, wanted: &Wanted) -> Result<()> {
    let listener = tcp::listen_at(address)?;
    // Port 0 lets the system choose.
    let address = listener.local_addr().context("cannot tell where it listens")?;
    out::note(format_args!("OpenMetrics at http://{address}/metrics"));
    if !address.ip().is_loopback() {
        out::note(
            "whoever reaches this address may read the counters: there is no password and no encryption",
        );
    }
    match http::serve(&listener, |path| answer(path, wanted)) {
        // How it is meant to end.
        Err(Failure::Interrupted) => Ok(()),
        ended => ended,
    }
}

fn answer(path: &str, wanted: &Wanted) -> Result<Answer> {
    match path {
        "/metrics" => Ok(Answer {
            status: "200 OK",
            content_type: openmetrics::CONTENT_TYPE,
            body: openmetrics::text(wanted.find())?,
        }),
        "/" => Ok(Answer::said("200 OK", "uroce: the metrics are at /metrics")),
        _ => Ok(Answer::said("404 Not Found", "there is nothing here: the metrics are at /metrics")),
    }
}

/// Lets time pass in small steps: a person who ends the command should not have to wait.
fn wait(period: Duration) -> Result<()> {
    const STEP: Duration = Duration::from_millis(50);
    let stopwatch = Stopwatch::start();
    while let Some(left) = period.checked_sub(stopwatch.elapsed()).filter(|left| !left.is_zero()) {
        interrupt::pause_unless_asked(left.min(STEP))?;
    }
    Ok(())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.1..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "a period is 0.1 to 86400 seconds".to_owned())
}

/// An address with a port, or a port of the loopback address.
fn address(text: &str) -> Result<SocketAddr, String> {
    let loopback = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    let address = text.parse::<SocketAddr>().ok().or_else(|| text.parse().ok().map(loopback));
    address.ok_or_else(|| format!("give an address and a port, such as 127.0.0.1:{PORT} or [::1]:{PORT}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_of_this_machine_unless_said() {
        assert_eq!(address("80"), Ok("127.0.0.1:80".parse().unwrap()));
        assert_eq!(address("[::]:80"), Ok("[::]:80".parse().unwrap()));
        assert!(address("localhost").is_err() && address("70000").is_err());
    }

    #[test]
    fn periods() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert!(["0", "-1", "x", "NaN", "1e99"].iter().all(|text| seconds(text).is_err()));
    }

    #[test]
    fn paths() {
        let wanted = Wanted { pid: Some(0), ..Wanted::default() };
        let metrics = answer("/metrics", &wanted).unwrap();
        assert!(metrics.body.ends_with("# EOF\n") && metrics.status == "200 OK");
        assert_eq!(answer("/", &wanted).unwrap().status, "200 OK");
        assert_eq!(answer("/etc/passwd", &wanted).unwrap().status, "404 Not Found");
    }
}
