//! Control calls: memory regions and windows.

use super::{Engine, Pd};
use crate::access::Access;
use crate::error::Error;
use crate::memory::{MrKeys, MwType, Region, Reregister};

impl Engine {
    /// Registers memory; its first byte gets the address `iova`.
    ///
    /// # Errors
    /// When remote write or atomic access is asked for without local write, when the addresses pass 2^64, or when
    /// there are as many regions as the limits allow.
    pub fn register_mr(
        &mut self,
        pd: Pd,
        region: Region,
        iova: u64,
        access: Access,
    ) -> Result<MrKeys, Error> {
        self.check_region(pd, &region)?;
        self.memory.register(&mut self.rng, pd, region, iova, access)
    }

    /// Allocates a region for fast registration: it may not be used until a [`crate::SendOp::RegisterMr`] says how, and
    /// again after it was invalidated.
    ///
    /// # Errors
    /// When there are as many regions as the limits allow.
    pub fn alloc_mr(&mut self, pd: Pd, region: Region) -> Result<MrKeys, Error> {
        self.check_region(pd, &region)?;
        self.memory.allocate(&mut self.rng, pd, region)
    }

    /// Changes the memory, the access rights or the protection domain of a region; its keys stay. Tells the former
    /// memory when that was replaced: no byte of it is touched any more.
    ///
    /// # Errors
    /// As for [`register_mr`](Self::register_mr), and [`Error::Busy`] while windows are bound to the region. The region
    /// is as it was then.
    pub fn reregister_mr(&mut self, lkey: u32, change: Reregister) -> Result<Option<Region>, Error> {
        if let Some(pd) = change.pd {
            self.check_pd(pd)?;
        }
        self.memory.reregister(lkey, change)
    }

    /// Revokes a region and hands it back. When this returns, no byte of it is touched any more: work requests that
    /// name it fail, and peers that do get a NAK.
    ///
    /// # Errors
    /// When there is no such region, and [`Error::Busy`] while windows are bound to it.
    pub fn deregister_mr(&mut self, lkey: u32) -> Result<Region, Error> {
        self.memory.deregister(lkey)
    }

    /// As [`deregister_mr`](Self::deregister_mr), but unbinds the windows that are bound to the region.
    ///
    /// # Errors
    /// When there is no such region.
    pub fn revoke_mr(&mut self, lkey: u32) -> Result<Region, Error> {
        self.memory.revoke(lkey)
    }

    /// A new memory window, bound to nothing; tells its key.
    ///
    /// # Errors
    /// When there are as many windows as the limits allow.
    pub fn alloc_mw(&mut self, pd: Pd, kind: MwType) -> Result<u32, Error> {
        self.check_pd(pd)?;
        self.memory.alloc_mw(&mut self.rng, pd, kind)
    }

    /// Ends a memory window, bound or not.
    ///
    /// # Errors
    /// When there is no window of this key.
    pub fn dealloc_mw(&mut self, rkey: u32) -> Result<(), Error> {
        self.memory.dealloc_mw(rkey)
    }

    fn check_region(&self, pd: Pd, region: &Region) -> Result<(), Error> {
        self.check_pd(pd)?;
        let (found, high) = (region.len() as u64, self.config.limits.max_mr_size);
        if found > high {
            return Err(Error::OutOfRange { what: "the length of the region", found, low: 0, high });
        }
        Ok(())
    }
}
