//! The same scenarios against a live peer: the rdma_rxe of a Linux kernel, or uRoCE itself.
//!
//! A [`scenario::Scenario`] runs on a pair of [`peer::Peer`]s and knows neither; [`rxe::Rxe`] is the rdma_rxe of a
//! guest, driven through the agent that runs there ([`agent::Agent`]), and [`own::Own`] is uRoCE.
#![allow(
    clippy::disallowed_methods,
    reason = "live peers take real time: scenarios wait for them and time them"
)]

pub mod agent;
pub mod cm;
pub mod deviation;
pub mod own;
pub mod peer;
pub mod pingpong;
pub mod report;
pub mod runner;
pub mod rxe;
pub mod scenario;
mod scenarios;
pub mod watchdog;
