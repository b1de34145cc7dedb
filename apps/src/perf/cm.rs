//! Queue pairs that the connection manager connects, in place of what the two ends told each other over TCP.
//!
//! The client dials once for each of its queue pairs; the server knows each of them by the number that the client has told
//! before.

use uroce::{ConnParam, Context, Endpoint, PreparedQueuePair, QpAttr, QpState};

use super::side::{Card, Prepared, RD_ATOMIC, Side};
use crate::clock::Stopwatch;
use crate::cm::{self, Asking, Link, Listener};
use crate::control::PATIENCE;
use crate::error::{Failure, Result};

/// 0.64 ms, as without the connection manager, which leaves it at 655 ms (IBTA 9.7.5.2.8, table 45).
const RNR_TIMER: u8 = 12;

/// Connects all queue pairs to a server that listens at the address of its own.
pub(super) fn dial(ctx: &Context, prepared: Prepared, peer: &Card, port: u16) -> Result<Side> {
    let endpoints = peer.endpoints()?;
    prepared.linked(&endpoints, |qp, endpoint| {
        let resolved = cm::resolve(ctx, &endpoint.gid.ip().to_string(), port)?;
        let depths =
            ConnParam { responder_resources: RD_ATOMIC, initiator_depth: RD_ATOMIC, ..ConnParam::default() };
        hurry(resolved.connect(qp, &depths)?)
    })
}

/// Takes all queue pairs of the client whose card this is. They ask in the order of the card.
pub(super) fn answer(prepared: Prepared, peer: &Card, listener: &Listener) -> Result<Side> {
    let endpoints = peer.endpoints()?;
    prepared.linked(&endpoints, |qp: PreparedQueuePair, endpoint| {
        hurry(asking(listener, endpoint)?.accept(qp, &[])?)
    })
}

/// The request of this queue pair. Others are refused.
fn asking(listener: &Listener, endpoint: &Endpoint) -> Result<Asking> {
    let stopwatch = Stopwatch::start();
    while stopwatch.elapsed() < PATIENCE {
        let Some(asking) = listener.event()?.and_then(Asking::of) else { continue };
        if asking.request.qp_num == endpoint.qpn && asking.peer().ip() == endpoint.gid.ip() {
            return Ok(asking);
        }
        asking.id.reject(b"a measurement with another client is under way")?;
    }
    let seconds = PATIENCE.as_secs();
    Err(Failure::new(format!(
        "the client has not asked for its connection for {seconds} s: it ended, or UDP port 4791 is closed"
    )))
}

/// Lets the peer try again sooner when it finds no receive.
fn hurry(link: Link) -> Result<Link> {
    let attr = QpAttr { min_rnr_timer: Some(RNR_TIMER), ..QpAttr::to(QpState::Rts) };
    link.qp.modify(&attr).map_err(uroce::Error::from)?;
    Ok(link)
}
