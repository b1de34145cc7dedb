//! Address handles: where datagrams go.

use crate::engine::Pd;
use crate::wire::{Path, PathError, Template};

/// The way to a peer or to a multicast group, ready for use: what `ibv_ah` names.
///
/// It is a value: nothing in the engine stands for it, so there may be any number, and it never goes stale in the
/// engine's eyes.
#[derive(Clone, Debug)]
pub struct AddressHandle {
    pd: Pd,
    path: Path,
    template: Template,
}

impl AddressHandle {
    /// An address handle for queue pairs of `pd`.
    ///
    /// # Errors
    /// When source and destination are of different address families.
    pub fn new(pd: Pd, path: &Path) -> Result<Self, PathError> {
        Ok(Self { pd, path: *path, template: Template::new(path)? })
    }

    /// The protection domain it belongs to.
    #[must_use]
    pub const fn pd(&self) -> Pd {
        self.pd
    }

    /// The way it leads.
    #[must_use]
    pub const fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) const fn template(&self) -> &Template {
        &self.template
    }
}
