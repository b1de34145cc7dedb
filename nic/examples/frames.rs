//! How many frames a second AF_XDP carries over a veth pair, and how much CPU time each costs.
//!
//! `cargo run --release -p uroce-nic --example frames` as root. Both ends in one thread, then in two processes, for
//! frames of a small message, of path MTU 1024 and of path MTU 4096.

#[cfg(feature = "af-xdp")]
#[path = "frames/measure.rs"]
mod measure;

#[cfg(feature = "af-xdp")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    measure::run(std::env::args().skip(1).collect())
}

#[cfg(not(feature = "af-xdp"))]
fn main() {
    eprintln!("built without AF_XDP: nothing to measure; build with `--features af-xdp`");
}
