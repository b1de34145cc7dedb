//! Memory windows: views of a region that work requests open and close.

use super::Memory;
use super::object::{AccessError, Binding, Kind, Object, Subject, View};
use super::table::same_number;
use crate::access::Access;
use crate::engine::Pd;
use crate::error::Error;
use crate::rng::Rng;
use crate::wire::Qpn;
use crate::work::BindMw;

/// How a memory window is bound, as `ibv_mw_type` (IBTA, Allocate Memory Window).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MwType {
    /// Opens to every queue pair of its protection domain. Binding it again replaces what it shows; binding it to no
    /// bytes closes it.
    Type1,
    /// Opens to the queue pair that bound it only (type 2B), and is invalidated before it is bound again, by that
    /// queue pair or by its peer.
    Type2,
}

impl Memory {
    /// A window that shows nothing yet; tells its key.
    pub(crate) fn alloc_mw(&mut self, rng: &mut Rng, pd: Pd, kind: MwType) -> Result<u32, Error> {
        self.insert(rng, pd, Kind::Window(kind), None)
    }

    /// Ends a window, bound or not.
    pub(crate) fn dealloc_mw(&mut self, rkey: u32) -> Result<(), Error> {
        let not_found = Error::NotFound("memory window");
        let key = self.owned(rkey).filter(|object| object.is_window()).ok_or(not_found)?.key;
        self.show(key, None);
        self.remove(key);
        Ok(())
    }

    /// Carries out a bind (IBTA, Bind Memory Window): the window shows the bytes under its new key.
    pub(crate) fn bind(&mut self, by: Subject, bind: &BindMw) -> Result<(), AccessError> {
        let kind = self.object(bind.mw)?.check_bind(by, bind)?;
        let view = if bind.length == 0 { None } else { Some(self.view_for(by, kind, bind)?) };
        self.show(bind.mw, view);
        if let Some(window) = self.owned(bind.mw) {
            window.key = bind.rkey;
        }
        Ok(())
    }

    /// Frees the type 2 windows of a queue pair that is destroyed.
    pub(crate) fn unbind_queue_pair(&mut self, qp: Qpn) {
        self.unbind(|binding| binding.qp == Some(qp));
    }

    /// What the window will show: a part of the region behind.
    fn view_for(&self, by: Subject, kind: MwType, bind: &BindMw) -> Result<View, AccessError> {
        let region = self.object(bind.mr)?.local(by.pd, Access::MW_BIND | needed(bind.access))?;
        if region.access.contains(Access::ZERO_BASED) {
            return Err(AccessError::Refused);
        }
        let offset = region.offset(bind.addr, bind.length)?;
        let memory = region.memory.part(offset as u64, bind.length).ok_or(AccessError::Refused)?;
        let base = if bind.access.contains(Access::ZERO_BASED) { 0 } else { bind.addr };
        let qp = (kind == MwType::Type2).then_some(by.qp);
        Ok(View { memory, base, access: bind.access, binding: Some(Binding { mr: bind.mr, qp }) })
    }
}

impl Object {
    /// Whether a bind may change this window.
    fn check_bind(&self, by: Subject, bind: &BindMw) -> Result<MwType, AccessError> {
        let Kind::Window(kind) = self.kind else { return Err(AccessError::Refused) };
        let is_allowed = match kind {
            MwType::Type1 => !bind.access.contains(Access::ZERO_BASED),
            // Under the former key, whoever held it before the invalidation would get in again.
            MwType::Type2 => self.view.is_none() && bind.length != 0 && bind.rkey != self.key,
        };
        let is_ours = self.pd == by.pd && same_number(self.key, bind.rkey);
        if is_ours && is_allowed && Access::WINDOW.contains(bind.access) {
            Ok(kind)
        } else {
            Err(AccessError::Refused)
        }
    }
}

/// What a region must grant before a window of it grants `access`: what peers may change, the local side must be
/// allowed to change too.
fn needed(access: Access) -> Access {
    if access.is_valid_for_region() { Access::empty() } else { Access::LOCAL_WRITE }
}
