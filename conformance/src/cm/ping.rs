//! `rping` of rdma-core in the guest against `uroce ping` here, each as the server of the other. The client's side compares
//! what comes back with what it sent.

use std::path::Path;
use std::time::Duration;

use super::guest;
use crate::agent::Agent;
use crate::peer::Result;
use crate::pingpong::Local;

/// Pings of a run.
const COUNT: &str = "25";
/// How long ours may take to finish.
const LIMIT: Duration = Duration::from_secs(60);
/// What ours says when it listens.
const LISTENS: &str = "waiting for a client";

/// One run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job<'a> {
    pub(super) program: &'a Path,
    pub(super) interface: &'a str,
    /// Address of the server.
    pub(super) server: std::net::IpAddr,
    pub(super) port: u16,
    pub(super) size: u32,
}

impl Job<'_> {
    /// `rping` serves.
    pub(super) fn client(self, agent: &mut Agent) -> Result<()> {
        let texts = self.texts();
        let [server, port, size] = texts.each_ref().map(String::as_str);
        let theirs =
            guest::serve(agent, &["rping", "-s", "-V", "-a", server, "-p", port, "-S", size], self.port)?;
        let words = ["ping", self.interface, server, "-p", port, "-S", size, "-C", COUNT, "-V"];
        let ours = Local::start(self.program, &words.map(str::to_owned))?.finish(LIMIT);
        if ours.is_err() {
            guest::stop(agent, theirs)?;
            return ours;
        }
        guest::finish(agent, theirs).map(drop)
    }

    /// `uroce ping` serves.
    pub(super) fn server(self, agent: &mut Agent) -> Result<()> {
        let texts = self.texts();
        let [server, port, size] = texts.each_ref().map(String::as_str);
        let words = ["ping", self.interface, "-s", "-a", server, "-p", port];
        let mut ours = Local::start(self.program, &words.map(str::to_owned))?;
        ours.until_said(LISTENS)?;
        let words = ["rping", "-c", "-V", "-a", server, "-p", port, "-S", size, "-C", COUNT];
        let theirs = agent.spawn(&words)?;
        let theirs = guest::finish(agent, theirs).map(drop);
        theirs.and(ours.finish(LIMIT))
    }

    fn texts(&self) -> [String; 3] {
        [self.server.to_string(), self.port.to_string(), self.size.to_string()]
    }
}
