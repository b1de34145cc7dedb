//! Memory regions that control calls register.

use super::object::{Kind, Object, View};
use super::{Memory, Region};
use crate::access::Access;
use crate::engine::Pd;
use crate::error::Error;
use crate::rng::Rng;

/// The keys of a memory region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MrKeys {
    /// Names the region in local work requests.
    pub lkey: u32,
    /// Names the region in requests of peers. The same number as `lkey`, as on most hardware: the access rights, not
    /// the secrecy of the key, decide what a peer may do.
    pub rkey: u32,
}

impl MrKeys {
    pub(super) const fn new(key: u32) -> Self {
        Self { lkey: key, rkey: key }
    }
}

/// What of a memory region changes while its keys stay, as `ibv_rereg_mr` (IBTA, Reregister Memory Region). What is
/// `None` stays too.
#[derive(Clone, Debug, Default)]
pub struct Reregister {
    /// The protection domain it moves to.
    pub pd: Option<Pd>,
    /// The memory that it shows from now on, and the address of the first byte: its iova.
    pub memory: Option<(Region, u64)>,
    /// Its new access rights.
    pub access: Option<Access>,
}

impl Memory {
    /// Opens `region` to who knows the keys; its first byte gets the address `iova`.
    pub(crate) fn register(
        &mut self,
        rng: &mut Rng,
        pd: Pd,
        region: Region,
        iova: u64,
        access: Access,
    ) -> Result<MrKeys, Error> {
        let view = View::of_region(region, iova, access)?;
        self.insert(rng, pd, Kind::Registered, Some(view)).map(MrKeys::new)
    }

    /// Revokes the key; afterwards no byte of the region is touched. Refused while windows are bound to it (IBTA,
    /// Deregister Memory Region).
    pub(crate) fn deregister(&mut self, key: u32) -> Result<Region, Error> {
        self.idle_region(key)?;
        let object = self.remove(key).ok_or(NOT_FOUND)?;
        match (object.kind, object.view) {
            (Kind::Fast(memory), _) => Ok(memory),
            (_, Some(view)) => Ok(view.memory),
            _ => Err(NOT_FOUND),
        }
    }

    /// Deregisters, and unbinds the windows that are in the way.
    pub(crate) fn revoke(&mut self, key: u32) -> Result<Region, Error> {
        let mr = self.region(key)?.key;
        self.unbind(|binding| binding.mr == mr);
        self.deregister(key)
    }

    /// Changes a region under its key; hands the former memory back when other memory took its place.
    pub(crate) fn reregister(&mut self, key: u32, change: Reregister) -> Result<Option<Region>, Error> {
        let object = self.idle_region(key)?;
        let (Kind::Registered, Some(view)) = (&object.kind, &mut object.view) else {
            return Err(Error::Invalid("a region for fast registration is changed by work requests only"));
        };
        let access = change.access.unwrap_or(view.access);
        let is_replaced = change.memory.is_some();
        let (memory, iova) = change.memory.unwrap_or_else(|| (view.memory.clone(), view.base));
        let former = core::mem::replace(view, View::of_region(memory, iova, access)?);
        object.pd = change.pd.unwrap_or(object.pd);
        Ok(is_replaced.then_some(former.memory))
    }

    fn region(&mut self, key: u32) -> Result<&mut Object, Error> {
        self.owned(key).filter(|object| !object.is_window()).ok_or(NOT_FOUND)
    }

    /// A region that no window is bound to.
    fn idle_region(&mut self, key: u32) -> Result<&mut Object, Error> {
        let region = self.region(key)?;
        if region.windows == 0 { Ok(region) } else { Err(Error::Busy("memory region")) }
    }
}

impl View {
    /// All of `memory`, from the address `iova` on.
    pub(super) fn of_region(memory: Region, iova: u64, access: Access) -> Result<Self, Error> {
        if !access.is_valid_for_region() {
            return Err(Error::Invalid("REMOTE_WRITE and REMOTE_ATOMIC on a region also need LOCAL_WRITE"));
        }
        if access.contains(Access::FLUSH_PERSISTENT) {
            return Err(Error::Invalid(
                "no memory here survives a loss of power: register the region without FLUSH_PERSISTENT",
            ));
        }
        if access.contains(Access::ZERO_BASED) && iova != 0 {
            return Err(Error::Invalid(
                "the addresses of a ZERO_BASED region start at 0: pass 0 as its iova",
            ));
        }
        if iova.checked_add(memory.len() as u64).is_none() {
            return Err(Error::Invalid("the region's addresses pass the end of the 64-bit address space"));
        }
        Ok(Self { memory, base: iova, access, binding: None })
    }
}

const NOT_FOUND: Error = Error::NotFound("memory region");
