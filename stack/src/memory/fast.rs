//! Regions for fast registration: work requests, in the order of the send queue, say what they show.

use super::object::{AccessError, Kind, Subject, View};
use super::table::same_number;
use super::{Memory, MrKeys, Region};
use crate::engine::Pd;
use crate::error::Error;
use crate::rng::Rng;
use crate::work::RegisterMr;

impl Memory {
    /// A region that opens nothing until a work request registers it (IBTA, Allocate L_Key).
    pub(crate) fn allocate(&mut self, rng: &mut Rng, pd: Pd, region: Region) -> Result<MrKeys, Error> {
        self.insert(rng, pd, Kind::Fast(region), None).map(MrKeys::new)
    }

    /// Registers a part of the allocated memory under a key with any tag (IBTA, Fast Register Physical MR). What is
    /// registered has to be invalidated first.
    pub(crate) fn fast_register(&mut self, by: Subject, reg: &RegisterMr) -> Result<(), AccessError> {
        let object = self.object(reg.mr)?;
        let Kind::Fast(allocated) = &object.kind else { return Err(AccessError::Refused) };
        if object.pd != by.pd || object.view.is_some() || !same_number(reg.mr, reg.key) {
            return Err(AccessError::Refused);
        }
        let memory = allocated.part(reg.offset, reg.length).ok_or(AccessError::Refused)?;
        let view = View::of_region(memory, reg.iova, reg.access).map_err(|_| AccessError::Refused)?;
        let object = self.owned(reg.mr).ok_or(AccessError::Refused)?;
        (object.key, object.view) = (reg.key, Some(view));
        Ok(())
    }
}
