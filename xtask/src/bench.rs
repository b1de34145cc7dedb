//! `cargo xtask bench`: the figures of the README, each beside what it is to be compared with.

use std::process::{Command, ExitCode};
use std::time::Duration;

use serde_json::{Value, json};

use crate::error::{Context, Failure, Result};
use crate::netns::{self, Namespace};
use crate::packages::Group;
use crate::process::{Process, output};
use crate::progress::Progress;
use crate::{command, machine, packages, process};

/// What the comparison takes.
const RIVAL: Group = Group { reason: "measure UCX over TCP on the same cable", names: &["ucx-utils"] };
/// Carries a path MTU of 4096.
const LINK_MTU: u32 = 4200;
const SERVER: &str = "10.77.0.1";
/// Time that a server gets to listen.
const HEAD_START: Duration = Duration::from_millis(700);

/// What to measure and how often.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// Times that each is measured, in turn with the others
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// One figure: how it is had, and in which unit.
struct Figure {
    name: &'static str,
    unit: &'static str,
    measure: fn(&Cable) -> Result<f64>,
}

const FIGURES: [Figure; 7] = [
    Figure { name: "stack alone, 64 KiB WRITE", unit: "Gb/s", measure: cable_write },
    Figure { name: "stack alone, 64-byte WRITE", unit: "Mmsg/s", measure: cable_small },
    Figure { name: "veth, AF_XDP, 64 KiB WRITE", unit: "Gb/s", measure: xdp_write },
    Figure { name: "veth, AF_PACKET, 64 KiB WRITE", unit: "Gb/s", measure: packet_write },
    Figure { name: "veth, UCX over TCP, 64 KiB", unit: "Gb/s", measure: ucx_bandwidth },
    Figure { name: "veth, AF_XDP, 8 bytes, half round trip", unit: "us", measure: xdp_latency },
    Figure { name: "veth, UCX over TCP, 8 bytes", unit: "us", measure: ucx_latency },
];

/// Two namespaces and a veth pair between them.
struct Cable {
    near: Namespace,
    far: Namespace,
}

/// Measures everything in turn, so that what else the machine does weighs on all alike.
pub(crate) fn main(arguments: &Arguments) -> Result<ExitCode> {
    let progress = Progress::new("bench");
    for group in [&packages::BUILD, &packages::NETWORK, &RIVAL] {
        packages::ensure(group, &progress)?;
    }
    if let Some(reason) = machine::namespaces_missing() {
        return Err(Failure::new(format!("cannot compare over a cable: {reason}")));
    }
    command::build(false, &progress)?;
    netns::sweep();
    let cable = Cable::new()?;
    let mut samples: Vec<Vec<f64>> = FIGURES.iter().map(|_| Vec::new()).collect();
    for round in 1..=arguments.rounds.max(1) {
        progress.say(format!("round {round} of {}", arguments.rounds.max(1)));
        for (figure, samples) in FIGURES.iter().zip(&mut samples) {
            samples.push((figure.measure)(&cable)?);
        }
    }
    report(&mut samples, arguments.json);
    Ok(ExitCode::SUCCESS)
}

fn report(samples: &mut [Vec<f64>], as_json: bool) {
    samples.iter_mut().for_each(|samples| samples.sort_by(f64::total_cmp));
    let rows = FIGURES.iter().zip(samples.iter());
    if as_json {
        let rows: Vec<Value> = rows
            .map(|(figure, samples)| {
                let [min, median, max] = spread(samples);
                json!({"name": figure.name, "unit": figure.unit, "min": min, "median": median, "max": max})
            })
            .collect();
        return println!("{:#}", Value::from(rows));
    }
    println!("{:<38}{:>9}{:>9}{:>9}", "", "min", "median", "max");
    for (figure, samples) in rows {
        let [min, median, max] = spread(samples);
        println!("{:<38}{min:>9.2}{median:>9.2}{max:>9.2}  {}", figure.name, figure.unit);
    }
    let median = |index: usize| spread(&samples[index])[1];
    for (way, index) in [("AF_XDP", 2), ("AF_PACKET", 3)] {
        println!("64 KiB over veth, {way}: {:.2} times UCX over TCP", median(index) / median(4));
    }
}

fn spread(sorted: &[f64]) -> [f64; 3] {
    [sorted[0], sorted[sorted.len() / 2], sorted[sorted.len() - 1]]
}

impl Cable {
    fn new() -> Result<Self> {
        let (near, far) = (Namespace::new("bench-a")?, Namespace::new("bench-b")?);
        netns::join((&near, "ep0"), (&far, "ep1"))?;
        for (end, interface, address) in [(&near, "ep0", SERVER), (&far, "ep1", "10.77.0.2")] {
            end.ip(&format!("addr add {address}/24 dev {interface}"))?;
            end.ip(&format!("link set {interface} mtu {LINK_MTU} up"))?;
        }
        Ok(Self { near, far })
    }

    /// Runs a server at one end and its client at the other; what the client printed.
    fn run(&self, mut server: Command, mut client: Command) -> Result<String> {
        server.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let server = Process::spawn(&mut server)?;
        std::thread::sleep(HEAD_START);
        let said = output(&mut client);
        drop(server);
        said
    }

    fn uroce(&self, arguments: &[&str], field: &str) -> Result<f64> {
        let program = command::path();
        let mut server = self.near.command(&program);
        server.args(&arguments[..2]).arg("ep0").args(&arguments[2..]);
        let mut client = self.far.command(&program);
        client.args(&arguments[..2]).args(["ep1", SERVER]).args(&arguments[2..]).arg("--json");
        number(&self.run(server, client)?, field)
    }

    /// The number in column `column` of the last line of UCX's table.
    fn ucx(&self, arguments: &[&str], column: usize) -> Result<f64> {
        let at = |end: &Namespace, interface: &str, core: &str| {
            let mut command = end.command("env");
            command.args([
                "UCX_TLS=tcp",
                &format!("UCX_NET_DEVICES={interface}"),
                "ucx_perftest",
                "-c",
                core,
            ]);
            command
        };
        let mut client = at(&self.far, "ep1", "1");
        client.arg(SERVER).args(arguments);
        let said = self.run(at(&self.near, "ep0", "0"), client)?;
        let last = said.lines().rfind(|line| line.starts_with("Final:"));
        let word = last.and_then(|line| line.split_whitespace().nth(column));
        word.and_then(|word| word.parse().ok())
            .ok_or_else(|| Failure::new(format!("UCX printed no result:\n{}", process::tail(&said, 10))))
    }
}

fn cable_write(_: &Cable) -> Result<f64> {
    alone(&["bw", "write", "cable", "-s", "65536", "-m", "4096", "-n", "50000", "--json"], "gbps")
}

fn cable_small(_: &Cable) -> Result<f64> {
    alone(&["bw", "write", "cable", "-s", "64", "-n", "3000000", "--json"], "mmsgs")
}

fn xdp_write(cable: &Cable) -> Result<f64> {
    veth_write(cable, "xdp")
}

fn packet_write(cable: &Cable) -> Result<f64> {
    veth_write(cable, "packet")
}

fn veth_write(cable: &Cable, backend: &str) -> Result<f64> {
    let arguments = ["bw", "write", "-s", "65536", "-m", "4096", "-n", "30000", "--backend", backend];
    cable.uroce(&arguments, "gbps")
}

fn xdp_latency(cable: &Cable) -> Result<f64> {
    cable.uroce(&["lat", "write", "-s", "8", "-n", "50000", "--backend", "xdp"], "p50_us")
}

fn ucx_bandwidth(cable: &Cable) -> Result<f64> {
    // Column 5: overall bandwidth in units of 2^20 bytes a second.
    Ok(cable.ucx(&["-t", "tag_bw", "-s", "65536", "-n", "30000"], 5)? * f64::from(1 << 20) * 8.0 / 1e9)
}

fn ucx_latency(cable: &Cable) -> Result<f64> {
    // Column 2: the median, half a round trip.
    cable.ucx(&["-t", "tag_lat", "-s", "8", "-n", "50000"], 2)
}

fn alone(arguments: &[&str], field: &str) -> Result<f64> {
    number(&output(Command::new(command::path()).args(arguments))?, field)
}

fn number(text: &str, field: &str) -> Result<f64> {
    let value: Value = serde_json::from_str(text).context(format!("reading {text}"))?;
    let row = value.get(0).unwrap_or(&value);
    row.get(field).and_then(Value::as_f64).ok_or_else(|| Failure::new(format!("no {field} in {text}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_in_an_object_or_in_the_first_of_many() {
        assert_eq!(number(r#"{"gbps": 1.5}"#, "gbps").unwrap(), 1.5);
        assert_eq!(number(r#"[{"gbps": 2.5}]"#, "gbps").unwrap(), 2.5);
        assert!(number("{}", "gbps").is_err());
    }

    #[test]
    fn the_spread_is_minimum_median_maximum() {
        assert_eq!(spread(&[1.0, 2.0, 9.0]), [1.0, 2.0, 9.0]);
        assert_eq!(spread(&[4.0]), [4.0, 4.0, 4.0]);
    }
}
