//! Programs of the guest that use the connection manager.

use std::net::IpAddr;
use std::time::Duration;

use crate::agent::{Agent, Handle};
use crate::peer::Result;

/// How long a program may take to listen, and how long to finish.
const READY_LIMIT: Duration = Duration::from_secs(20);
const RUN_LIMIT: Duration = Duration::from_secs(60);
/// SIGKILL.
const KILL: i32 = 9;

/// Starts a program that listens, and waits until it does: the kernel's list of ids tells.
pub(super) fn serve(agent: &mut Agent, words: &[&str], port: u16) -> Result<Handle> {
    let program = agent.spawn(words)?;
    let look =
        format!("until rdma resource show cm_id | grep -q 'state LISTEN.*:{port}\\b'; do sleep 0.1; done");
    let looking = agent.spawn(&["sh", "-c", &look])?;
    let state = agent.wait(looking, READY_LIMIT)?;
    agent.close(looking)?;
    match state.exit {
        Some(0) => Ok(program),
        _ => {
            let said = agent.wait(program, Duration::ZERO)?.output;
            agent.close(program)?;
            Err(format!("{} does not listen after {READY_LIMIT:?}: {said}", words[0]).into())
        }
    }
}

/// Waits until a program has ended; returns its exit status and what it said.
pub(super) fn end(agent: &mut Agent, program: Handle) -> Result<(i32, String)> {
    let state = agent.wait(program, RUN_LIMIT)?;
    agent.close(program)?;
    let output = state.output.trim().to_owned();
    match state.exit {
        Some(code) => Ok((code, output)),
        None => Err(format!("the guest's program did not end within {RUN_LIMIT:?}: {output}").into()),
    }
}

/// Waits until a program has ended well.
pub(super) fn finish(agent: &mut Agent, program: Handle) -> Result<String> {
    match end(agent, program)? {
        (0, output) => Ok(output),
        (code, output) => Err(format!("the guest's program ended with {code}: {output}").into()),
    }
}

/// Ends a program that would run for ever.
pub(super) fn stop(agent: &mut Agent, program: Handle) -> Result<()> {
    agent.kill(program, KILL)?;
    agent.wait(program, RUN_LIMIT)?;
    Ok(agent.close(program)?)
}

/// `ucmatose` that connects to us, with the messages it is to exchange.
pub(super) fn ucmatose(agent: &mut Agent, to: IpAddr, port: u16, options: &[&str]) -> Result<Handle> {
    let (to, port) = (to.to_string(), port.to_string());
    let words = ["ucmatose", "-s", &to, "-p", &port].into_iter().chain(options.iter().copied());
    Ok(agent.spawn(&words.collect::<Vec<_>>())?)
}
