//! Finding the way to a peer, beside the application.

use std::net::SocketAddr;
use std::sync::Arc;

use super::event::CmEventType;
use super::shared::{IdShared, News};
use crate::context::Context;
use crate::error::{Error, RouteError};

/// Finds the next hop in a thread of its own, as the kernel may take seconds for a neighbour, and reports it.
pub(super) fn start(
    ctx: &Context,
    id: &Arc<IdShared>,
    local: SocketAddr,
    remote: SocketAddr,
) -> Result<(), Error> {
    let (ctx, id) = (ctx.clone(), Arc::clone(id));
    let work = move || {
        let found = find(&ctx, local, remote);
        let news = match found {
            Ok(()) => News::new(CmEventType::AddrResolved, 0),
            Err(error) => News::new(CmEventType::AddrError, -error.errno()),
        };
        id.raise(news);
        // Whoever drives inline sleeps on the channel's descriptor, which the event has made readable.
    };
    std::thread::Builder::new()
        .name("uroce-resolve".into())
        .spawn(work)
        .map(drop)
        .map_err(Error::system("cannot start a thread that resolves an address"))
}

fn find(ctx: &Context, local: SocketAddr, remote: SocketAddr) -> Result<(), RouteError> {
    let hop = ctx.next_hop(local.ip(), remote.ip())?;
    ctx.with_connection_manager(|service, _, _| service.learn(remote.ip(), hop));
    Ok(())
}
