//! The steps of `cargo xtask test`, in order.

use std::process::Command;

use crate::{lab, machine, packages, place, process};

/// Crates whose code differs without AF_XDP.
const WITH_BACKEND: &[&str] = &["uroce-nic", "uroce", "uroce-cli", "uroce-conformance"];

/// One step.
#[derive(Debug)]
pub(super) struct Step {
    /// Its name in the table.
    pub(super) name: &'static str,
    /// Why the machine cannot run it, or nothing when it can.
    pub(super) missing: fn() -> Option<String>,
    /// What it does.
    pub(super) work: Work,
}

/// What a step does.
#[derive(Debug)]
pub(super) enum Work {
    /// Runs a command.
    Command(fn() -> Command),
    /// Runs tests with the runner that is there.
    Tests(&'static [&'static str]),
    /// The scenarios against the real rdma_rxe.
    Interop,
}

/// All steps; the quick ones leave the guest out.
pub(super) fn all() -> Vec<Step> {
    vec![
        Step { name: "formatting", missing: nothing, work: Work::Command(formatting) },
        Step { name: "lints", missing: no_build_tools, work: Work::Command(lints) },
        Step { name: "lints without AF_XDP", missing: nothing, work: Work::Command(portable_lints) },
        Step { name: "tests", missing: no_build_tools, work: Work::Tests(TESTS) },
        Step { name: "captured traffic", missing: nothing, work: Work::Tests(CAPTURES) },
        Step { name: "tests without AF_XDP", missing: nothing, work: Work::Tests(PORTABLE_TESTS) },
        Step { name: "documentation tests", missing: no_build_tools, work: Work::Command(doc_tests) },
        Step { name: "documentation", missing: no_build_tools, work: Work::Command(documentation) },
        Step { name: "rdma_rxe", missing: no_guest, work: Work::Interop },
    ]
}

const TESTS: &[&str] = &["--workspace", "--exclude", "uroce-pcap-tests"];
const CAPTURES: &[&str] = &["-p", "uroce-pcap-tests"];
const PORTABLE_TESTS: &[&str] = &[
    "--no-default-features",
    "-p",
    WITH_BACKEND[0],
    "-p",
    WITH_BACKEND[1],
    "-p",
    WITH_BACKEND[2],
    "-p",
    WITH_BACKEND[3],
];

/// The command that runs tests: nextest where it is installed, otherwise cargo's own runner.
pub(super) fn runner(selection: &[&str]) -> Command {
    if has_nextest() { nextest(selection) } else { cargo_test(selection) }
}

/// Where nextest leaves what the tests printed.
pub(super) fn record() -> std::path::PathBuf {
    place::target().join("nextest/default/junit.xml")
}

fn nextest(selection: &[&str]) -> Command {
    let mut command = cargo(&["nextest", "run", "--config-file"]);
    command.arg(place::root().join("xtask/nextest.toml")).args(selection);
    command
}

fn cargo_test(selection: &[&str]) -> Command {
    let mut command = cargo(&["test", "--no-fail-fast", "--lib", "--bins", "--tests"]);
    command.args(selection).args(["--", "--show-output"]);
    command
}

fn has_nextest() -> bool {
    process::exists("cargo-nextest")
}

fn formatting() -> Command {
    cargo(&["fmt", "--all", "--check"])
}

fn lints() -> Command {
    cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
}

fn portable_lints() -> Command {
    cargo(&["clippy", "--workspace", "--all-targets", "--no-default-features", "--", "-D", "warnings"])
}

fn doc_tests() -> Command {
    cargo(&["test", "--workspace", "--doc"])
}

fn documentation() -> Command {
    let mut command = cargo(&["doc", "--workspace", "--no-deps", "--lib"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    command
}

fn cargo(words: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.args(words).current_dir(place::root());
    command
}

fn nothing() -> Option<String> {
    None
}

fn no_build_tools() -> Option<String> {
    let list = packages::missing(&packages::BUILD).join(" ");
    (!list.is_empty()).then(|| format!("needs {list}, to {}: apt-get install {list}", packages::BUILD.reason))
}

fn no_guest() -> Option<String> {
    no_build_tools().or_else(machine::namespaces_missing).or_else(lab::missing)
}
