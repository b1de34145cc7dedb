//! Invalidation: work requests, and SENDs of the peer, that close what a key opens.

use super::Memory;
use super::object::{AccessError, Kind, Subject};
use super::window::MwType;
use crate::access::Access;

impl Memory {
    /// Closes a type 2 window that is bound to the queue pair, or a fast-registered region that no window is bound to
    /// (IBTA, Local Invalidate and Send with Invalidate). The key stays, and opens nothing.
    ///
    /// Nothing else can be invalidated: what control calls register only they take back.
    pub(crate) fn invalidate(&mut self, by: Subject, key: u32) -> Result<(), AccessError> {
        let object = self.object(key)?;
        object.remote(by, Access::empty())?;
        match object.kind {
            Kind::Window(MwType::Type2) => self.show(key, None),
            Kind::Fast(_) if object.windows == 0 => self.close(key),
            _ => return Err(AccessError::Refused),
        }
        Ok(())
    }

    fn close(&mut self, key: u32) {
        if let Some(region) = self.owned(key) {
            region.view = None;
        }
    }
}
