//! The guest's program is killed while it is connected: its kernel ends the connection, and we hear of it.

use uroce::{ConnParam, Listener};

use super::messages::ends_there;
use super::{Ends, PATIENCE, guest, rate};
use crate::peer::Result;

/// Without messages, `ucmatose` waits for the end of the connection.
const OPTIONS: [&str; 2] = ["-C", "0"];

/// The one that we are connected to.
pub(super) fn server(ends: &mut Ends<'_>) -> Result<()> {
    let program = rate::serve(ends.agent, ends.guest, ends.port)?;
    let connection = ends.context.connect(ends.there(), &ConnParam::default())?;
    guest::stop(ends.agent, program)?;
    ends_there(&connection)
}

/// The one that is connected to us.
pub(super) fn client(ends: &mut Ends<'_>) -> Result<()> {
    let listener = Listener::bind(ends.context, ends.here())?;
    let program = guest::ucmatose(ends.agent, ends.own, ends.port, &OPTIONS)?;
    let incoming = listener.accept_request_within(Some(PATIENCE))?;
    let connection =
        incoming.ok_or("the guest did not ask for a connection")?.accept(&ConnParam::default())?;
    guest::stop(ends.agent, program)?;
    ends_there(&connection)
}
