//! Client of the agent in the conformance guest: verbs on the guest's rdma_rxe, and programs in the guest.
//!
//! The agent (`conformance/agent/agent.py`) speaks JSON lines over TCP: a request names a call and its arguments, the
//! reply carries its result or an error. A connection owns the objects it creates; they are closed with it.

mod calls;
mod hex;
mod types;

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub use types::*;

/// Version of the protocol this client speaks.
pub const VERSION: u32 = 2;

/// Longest time the agent may take to answer, beyond the waiting a call asks for: the guest is emulated and slow.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The connection to the guest broke or could not be made.
    #[error("the agent in the guest cannot be reached: {0}; its console log tells whether it still runs")]
    Connection(#[from] io::Error),
    /// The agent answered something this client does not understand.
    #[error("the agent's answer makes no sense: {0}; is it of the same version as this program?")]
    Protocol(String),
    /// The call was carried out in the guest and failed there.
    #[error("`{call}` failed in the guest ({kind}, errno {errno}): {message}")]
    Refused {
        /// The call.
        call: String,
        /// `verbs`, `system` or `request`.
        kind: String,
        /// The error number, 0 if there is none.
        errno: i32,
        /// What the guest said.
        message: String,
    },
}

impl AgentError {
    /// The error number of a call refused in the guest.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Refused { errno, .. } => Some(*errno),
            _ => None,
        }
    }
}

/// One connection to the agent.
#[derive(Debug)]
pub struct Agent {
    address: SocketAddr,
    stream: BufReader<TcpStream>,
    last_id: u64,
    /// A call got no answer: what may still come belongs to nobody.
    is_broken: bool,
}

impl Agent {
    /// Connects, and checks that both sides speak the same version.
    ///
    /// # Errors
    /// When nobody listens at `address`, or when the agent is of another version.
    pub fn connect(address: SocketAddr) -> Result<Self, AgentError> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        let mut agent = Self { address, stream: BufReader::new(stream), last_id: 0, is_broken: false };
        let hello = agent.hello()?;
        if hello.version == VERSION {
            Ok(agent)
        } else {
            Err(AgentError::Protocol(format!("it speaks version {}, this program {VERSION}", hello.version)))
        }
    }

    /// Connects anew if a call before got no answer; tells whether it did. Objects of the connection before are gone.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn restore(&mut self) -> Result<bool, AgentError> {
        if !self.is_broken {
            return Ok(false);
        }
        *self = Self::connect(self.address)?;
        Ok(true)
    }

    /// One call: sends the request and waits for its reply, at most `wait` longer than usual.
    fn call<R: DeserializeOwned>(
        &mut self,
        name: &str,
        args: impl Serialize,
        wait: Duration,
    ) -> Result<R, AgentError> {
        self.last_id += 1;
        let mut request = json!({ "id": self.last_id, "call": name, "args": args }).to_string();
        request.push('\n');
        let answer = self.exchange(&request, PATIENCE + wait).inspect_err(|_| self.is_broken = true)?;
        self.read(name, &answer)
    }

    fn exchange(&mut self, request: &str, limit: Duration) -> io::Result<String> {
        self.stream.get_ref().set_read_timeout(Some(limit))?;
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut line = String::new();
        match self.stream.read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line),
        }
    }

    fn read<R: DeserializeOwned>(&self, name: &str, line: &str) -> Result<R, AgentError> {
        let mut reply: Value =
            serde_json::from_str(line).map_err(|error| AgentError::Protocol(error.to_string()))?;
        if reply["id"] != self.last_id {
            return Err(AgentError::Protocol(format!(
                "request {} was answered as {}",
                self.last_id, reply["id"]
            )));
        }
        match reply.get("error") {
            Some(error) => Err(refusal(name, error)),
            None => serde_json::from_value(reply["ok"].take())
                .map_err(|error| AgentError::Protocol(format!("{name}: {error}"))),
        }
    }
}

fn refusal(call: &str, error: &Value) -> AgentError {
    let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
    let errno = error["errno"].as_i64().and_then(|errno| i32::try_from(errno).ok()).unwrap_or(0);
    AgentError::Refused { call: call.into(), kind: text("kind"), errno, message: text("message") }
}

#[cfg(test)]
mod tests;
