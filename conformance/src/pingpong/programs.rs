//! The ping-pong programs of rdma-core and what is run with each.

use crate::scenario::Routes;

/// One of them.
#[derive(Debug)]
pub(super) struct Program {
    /// Its name; scenarios are named after what follows `ibv_`.
    pub(super) name: &'static str,
    /// What makes `uroce pingpong` its other end.
    pub(super) own: &'static [&'static str],
    /// Options for both.
    pub(super) options: &'static [&'static str],
    /// Whether both are told the path MTU; datagrams have the port's.
    pub(super) takes_mtu: bool,
    /// Where it is run.
    pub(super) routes: Routes,
    /// Message sizes in bytes, each with the number of exchanges.
    pub(super) sizes: &'static [(u32, u32)],
}

/// All of them. Nothing repeats a lost message of the unreliable ones: they are kept small.
pub(super) const ALL: &[Program] = &[
    Program {
        name: "ibv_rc_pingpong",
        own: &[],
        options: &[],
        takes_mtu: true,
        routes: Routes::Every,
        sizes: &[(1, 300), (4096, 200), (1 << 20, 10)],
    },
    Program {
        name: "ibv_uc_pingpong",
        own: &["--uc"],
        options: &[],
        takes_mtu: true,
        routes: Routes::OnePerFamily,
        sizes: &[(1, 200), (16384, 50)],
    },
    Program {
        name: "ibv_ud_pingpong",
        own: &["--ud"],
        options: &[],
        takes_mtu: false,
        routes: Routes::OnePerFamily,
        sizes: &[(1, 200), (2048, 100)],
    },
    Program {
        name: "ibv_srq_pingpong",
        own: &["--srq"],
        options: &["-q", "4"],
        takes_mtu: true,
        routes: Routes::OnePerFamily,
        sizes: &[(1, 200), (16384, 50)],
    },
];

impl Program {
    /// The scenario of a size.
    pub(super) fn scenario(&self, size: u32) -> String {
        format!("{}/{size}", self.name.trim_start_matches("ibv_"))
    }
}

/// Names of all scenarios.
pub(super) fn names() -> impl Iterator<Item = String> {
    ALL.iter().flat_map(|program| program.sizes.iter().map(|(size, _)| program.scenario(*size)))
}
