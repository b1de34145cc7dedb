//! XRC domains.

use std::sync::Arc;

use uroce_stack::Xrcd;

use crate::context::Context;
use crate::error::Error;

/// What XRC targets and the shared receive queues that they receive for have in common (`ibv_xrcd`). A cheap handle:
/// clones name the same domain, which lives until its last user is gone.
#[derive(Clone, Debug)]
pub struct XrcDomain(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ctx: Context,
    xrcd: Xrcd,
}

impl XrcDomain {
    pub(crate) fn new(ctx: &Context) -> Result<Self, Error> {
        let xrcd = ctx.core().control(|port, _| port.engine.open_xrcd())?;
        Ok(Self(Arc::new(Inner { ctx: ctx.clone(), xrcd })))
    }

    /// The device that it belongs to.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.ctx
    }

    pub(crate) fn handle(&self) -> Xrcd {
        self.0.xrcd
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let closed = self.ctx.core().control(|port, _| port.engine.close_xrcd(self.xrcd));
        debug_assert_eq!(closed, Ok(()), "every user of the domain holds a handle to it");
    }
}
