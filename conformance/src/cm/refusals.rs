//! Connections that do not come about.

use uroce::{ConnParam, Connection, Error, Listener, RejectReason};

use super::{Ends, PATIENCE, guest};
use crate::agent::Handle;
use crate::peer::Result;
use crate::scenario::check_equal;

/// What the application that refuses says.
const WORD: &str = "no room here";

/// The guest's listener refuses us.
pub(super) fn refused_there(ends: &mut Ends<'_>) -> Result<()> {
    let (address, port) = (ends.guest.to_string(), ends.port.to_string());
    let words = ["python3", "-B", "/uroce/refuse.py", &address, &port, WORD];
    let program = guest::serve(ends.agent, &words, ends.port)?;
    let answer = ends.context.connect(ends.there(), &ConnParam::default());
    let said = refusal(answer, RejectReason::ConsumerDefined)?;
    guest::finish(ends.agent, program)?;
    check_equal("what the refusal carries", said.get(..WORD.len()), Some(WORD.as_bytes()))
}

/// Our listener refuses the guest.
pub(super) fn refused_here(ends: &mut Ends<'_>) -> Result<()> {
    let listener = Listener::bind(ends.context, ends.here())?;
    let program = guest::ucmatose(ends.agent, ends.own, ends.port, &[])?;
    let incoming = listener.accept_request_within(Some(PATIENCE))?;
    incoming.ok_or("the guest did not ask for a connection")?.reject(WORD.as_bytes())?;
    rejected_there(ends, program, RejectReason::ConsumerDefined)
}

/// Nobody listens in the guest.
pub(super) fn nobody_there(ends: &mut Ends<'_>) -> Result<()> {
    let answer = ends.context.connect(ends.there(), &ConnParam::default());
    refusal(answer, RejectReason::InvalidServiceId).map(drop)
}

/// Nobody listens here, at this port.
pub(super) fn nobody_here(ends: &mut Ends<'_>) -> Result<()> {
    let _answering = ends.context.create_event_channel()?;
    let program = guest::ucmatose(ends.agent, ends.own, ends.port, &[])?;
    rejected_there(ends, program, RejectReason::InvalidServiceId)
}

/// Checks that a connection was refused for this reason; returns what the peer's application said.
fn refusal(answer: std::result::Result<Connection, Error>, expected: RejectReason) -> Result<Vec<u8>> {
    match answer {
        Err(Error::Rejected { reason, private_data }) => {
            check_equal("the reason of the refusal", reason, expected).map(|()| private_data)
        }
        Err(error) => Err(error.into()),
        Ok(_) => Err("the connection was granted".into()),
    }
}

/// Checks that the guest's program ends because it was refused for this reason.
fn rejected_there(ends: &mut Ends<'_>, program: Handle, reason: RejectReason) -> Result<()> {
    let (code, output) = guest::end(ends.agent, program)?;
    let expected = format!("RDMA_CM_EVENT_REJECTED, error: {}", reason.code());
    check_equal("whether ucmatose succeeds", code == 0, false)?;
    if output.contains(&expected) { Ok(()) } else { Err(format!("no {expected:?} in: {output}").into()) }
}
