//! Figures, as a table or as JSON.

use serde::{Deserialize, Serialize};

use super::connection::Connection;
use super::plan::{Plan, Test};
use crate::error::Result;
use crate::out;
use crate::stats::{Latency, gbps, mmsgs, rounded};

/// What a run gave.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Measured {
    /// `lost`: of the messages and those that warmed up, where they can be lost and are counted.
    Bandwidth {
        messages: u64,
        seconds: f64,
        lost: Option<u64>,
    },
    Latency {
        iterations: u64,
        latency: Latency,
    },
}

/// The figures of one size.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Report {
    Bandwidth {
        op: String,
        connection: Connection,
        size: u32,
        mtu: usize,
        qps: u32,
        messages: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lost: Option<u64>,
        seconds: f64,
        gbps: f64,
        mmsgs: f64,
        backend: String,
    },
    Latency {
        op: String,
        connection: Connection,
        size: u32,
        mtu: usize,
        iterations: u64,
        #[serde(flatten)]
        latency: Latency,
        backend: String,
    },
}

impl Report {
    pub(crate) fn new(plan: &Plan, size: u32, mode: &str, measured: Measured) -> Self {
        let (op, backend) = (plan.test.op().to_owned(), mode.to_owned());
        let mtu = plan.mtu.map_or(0, uroce::Mtu::bytes);
        let connection = plan.connection;
        match measured {
            Measured::Bandwidth { messages, seconds, lost } => Self::Bandwidth {
                op,
                connection,
                size,
                mtu,
                qps: plan.qps,
                messages,
                lost,
                seconds: rounded(seconds),
                gbps: rounded(gbps(messages * u64::from(size), seconds)),
                mmsgs: rounded(mmsgs(messages, seconds)),
                backend,
            },
            Measured::Latency { iterations, latency } => {
                Self::Latency { op, connection, size, mtu, iterations, latency: round_all(latency), backend }
            }
        }
    }

    fn line(&self) -> String {
        match self {
            Self::Bandwidth { size, messages, lost, seconds, gbps, mmsgs, .. } => {
                let lost = lost.filter(|lost| *lost > 0).map(|lost| format!("  {lost} were lost"));
                let lost = lost.unwrap_or_default();
                format!("{size:>10} {messages:>12} {seconds:>10.3} {gbps:>10.2} {mmsgs:>10.4}{lost}")
            }
            Self::Latency { size, iterations, latency, .. } => {
                let Latency { min_us, avg_us, p50_us, p99_us, p999_us, max_us } = latency;
                format!(
                    "{size:>10} {iterations:>12} {min_us:>9.2} {avg_us:>9.2} {p50_us:>9.2} {p99_us:>9.2} \
                     {p999_us:>9.2} {max_us:>9.2}"
                )
            }
        }
    }
}

/// A table that grows while it is measured.
#[derive(Debug)]
pub(crate) struct Shown {
    wanted: bool,
}

impl Shown {
    pub(crate) fn start(plan: &Plan, mode: &str, json: bool) -> Result<Self> {
        let shown = Self { wanted: !json };
        if shown.wanted {
            out::line(title(plan, mode))?;
            out::line(header(plan.test))?;
        }
        Ok(shown)
    }

    pub(crate) fn row(&self, report: &Report) -> Result<()> {
        if self.wanted { out::line(report.line()) } else { Ok(()) }
    }
}

/// One object, or an array of them when there were several sizes.
pub(crate) fn print_json(reports: &[Report]) -> Result<()> {
    match reports {
        [one] => out::json(one),
        many => out::json(&many),
    }
}

fn title(plan: &Plan, mode: &str) -> String {
    let mtu = plan.mtu.map_or(0, uroce::Mtu::bytes);
    let flows = match plan.test {
        Test::Bw(_) => format!(
            ", queue pairs {}, tx depth {}, completion every {}",
            plan.qps, plan.tx_depth, plan.cq_mod
        ),
        Test::Lat(_) => String::new(),
    };
    format!("{}: {mode}, path MTU {mtu}, {}{flows}", plan.test.command(), plan.connection.name())
}

fn header(test: Test) -> String {
    match test {
        Test::Bw(_) => {
            format!("{:>10} {:>12} {:>10} {:>10} {:>10}", "bytes", "messages", "seconds", "Gb/s", "Mmsg/s")
        }
        Test::Lat(_) => format!(
            "{:>10} {:>12} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
            "bytes", "iterations", "min us", "avg us", "p50 us", "p99 us", "p99.9 us", "max us"
        ),
    }
}

fn round_all(latency: Latency) -> Latency {
    let Latency { min_us, avg_us, p50_us, p99_us, p999_us, max_us } = latency;
    Latency {
        min_us: rounded(min_us),
        avg_us: rounded(avg_us),
        p50_us: rounded(p50_us),
        p99_us: rounded(p99_us),
        p999_us: rounded(p999_us),
        max_us: rounded(max_us),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fit_their_header() {
        let report = Report::Bandwidth {
            op: "write".into(),
            connection: Connection::Rc,
            size: 65536,
            mtu: 4096,
            qps: 1,
            messages: 5000,
            lost: None,
            seconds: 0.04,
            gbps: 65.5,
            mmsgs: 0.125,
            backend: "cable".into(),
        };
        let header = header(Test::Bw(crate::perf::args::BwOp::Write));
        assert_eq!(report.line().len(), header.len());
        let latency = Latency { p50_us: 4.2, ..Latency::default() };
        let report = Report::Latency {
            op: "write".into(),
            connection: Connection::Rc,
            size: 8,
            mtu: 4096,
            iterations: 9,
            latency,
            backend: "cable".into(),
        };
        assert_eq!(report.line().len(), super::header(Test::Lat(crate::perf::args::LatOp::Write)).len());
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!((&json["p50_us"], &json["op"]), (&4.2.into(), &"write".into()));
    }
}
