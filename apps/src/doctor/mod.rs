//! `uroce doctor`: can this machine run it, and if not, what to do. One line for each question.

mod finding;
mod host;
mod interface;
mod xdp;

use std::process::ExitCode;

use clap::Args;
use uroce_nic::host::Interface;

use crate::error::Result;
use crate::out;
use finding::{Finding, Verdict};

const AFTER_HELP: &str = "\
Each line starts with `fine`, `limit` (works, but not as well as it could) or `fails`, and ends with the remedy.
To see what the driver can do, the XDP program is attached for a moment, as long as nothing else uses the interface.

Examples:
  uroce doctor                          this machine, and every Ethernet interface that is up
  sudo uroce doctor eth0 --json

Exit status: 0 it works, perhaps with limits; 1 it does not.";

/// `uroce doctor`
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct DoctorArgs {
    /// Interface [default: every Ethernet interface that is up]
    iface: Option<String>,
    /// Print findings as JSON
    #[arg(long)]
    json: bool,
}

/// Examines the machine.
pub(crate) fn main(args: &DoctorArgs) -> Result<ExitCode> {
    let interfaces = match &args.iface {
        Some(name) => vec![Interface::find(name)?],
        None => host::interfaces_up()?,
    };
    let mut findings = host::examine();
    if interfaces.is_empty() {
        findings.push(Finding::fails("interface", "no Ethernet interface is up", "`ip link set IFACE up`"));
    }
    findings.extend(interfaces.iter().flat_map(interface::examine));
    match args.json {
        true => out::json(&findings)?,
        false => print(&findings)?,
    }
    Ok(if works(&findings) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(findings: &[Finding]) -> Result<()> {
    out::line(finding::table(findings))?;
    let limited = findings.iter().any(|finding| finding.verdict == Verdict::Limit);
    out::line(match (works(findings), limited) {
        (false, _) => "uroce will not work here as it is.",
        (true, true) => "uroce works here, with the limits named above.",
        (true, false) => "uroce works here.",
    })
}

/// Whether nothing about the machine fails, and nothing about one interface at least.
fn works(findings: &[Finding]) -> bool {
    let fails = |about: Option<&str>| {
        findings
            .iter()
            .any(|finding| finding.interface.as_deref() == about && finding.verdict == Verdict::Fails)
    };
    let mut names: Vec<&str> = findings.iter().filter_map(|finding| finding.interface.as_deref()).collect();
    names.dedup();
    !fails(None) && names.iter().any(|name| !fails(Some(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_good_interface_is_enough() {
        let kernel = Finding::fine("kernel", "6.18");
        let bad = Finding::fails("link", "down", "up").about("eth0");
        let good = Finding::fine("link", "up").about("eth1");
        assert!(works(&[kernel.clone(), bad.clone(), good.clone()]));
        assert!(!works(&[kernel, bad.clone()]));
        assert!(!works(&[Finding::fails("kernel", "2.6", "newer"), good]));
    }
}
