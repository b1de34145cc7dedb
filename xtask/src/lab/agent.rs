//! Running one command in the guest through its agent. (The conformance crate has the full client; this one is small
//! so that the lab does not need the endpoint to compile.)

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::network::{GUEST, Network};
use crate::error::{Context, Failure, Result};
use crate::process::status;

/// Port the agent listens on.
pub(crate) const PORT: u16 = 7011;
/// The hidden command that runs inside the endpoint's namespace.
const COMMAND: &str = "in-guest";

/// Where the agent listens, as seen from the endpoint's namespace.
pub(crate) fn address() -> String {
    format!("{}:{PORT}", GUEST.v4)
}

/// Runs a command in the guest and returns its exit status. This process steps into the endpoint's namespace by
/// running itself there.
pub(super) fn run(network: &Network, words: &[String]) -> Result<ExitCode> {
    let this = std::env::current_exe().context("finding this program")?;
    let status = status(network.endpoint().command(this).args(["lab", COMMAND, "--"]).args(words))?;
    Ok(ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)))
}

/// The inner half of [`run`]: talks to the agent.
pub(super) fn run_here(words: &[String]) -> Result<ExitCode> {
    let stream = TcpStream::connect(address()).context(format!("reaching the agent at {}", address()))?;
    let mut agent = BufReader::new(stream);
    let handle = call(&mut agent, "spawn", json!({ "argv": words }))?["handle"].clone();
    let mut shown = 0;
    loop {
        let state = call(&mut agent, "wait", json!({ "handle": handle, "timeout_ms": 500 }))?;
        shown = show(state["output"].as_str().unwrap_or_default(), shown);
        if let Some(code) = state["exit"].as_i64() {
            return Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)));
        }
    }
}

/// Prints what is new of a program's output and returns how much has been shown.
fn show(output: &str, shown: usize) -> usize {
    print!("{}", output.get(shown..).unwrap_or_default());
    let _ = std::io::stdout().flush(); // a closed terminal shows at the next print
    output.len()
}

fn call(agent: &mut BufReader<TcpStream>, name: &str, arguments: Value) -> Result<Value> {
    let request = json!({ "id": 0, "call": name, "args": arguments });
    let mut line = String::new();
    writeln!(agent.get_mut(), "{request}").context("talking to the agent")?;
    agent.read_line(&mut line).context("talking to the agent")?;
    let mut reply: Value = serde_json::from_str(&line).context("reading the agent's reply")?;
    match reply.get("error") {
        Some(error) => Err(Failure::new(format!("in the guest: {}", error["message"]))),
        None => Ok(reply["ok"].take()),
    }
}
