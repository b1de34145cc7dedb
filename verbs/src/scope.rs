//! Borrowed memory, registered for the duration of a closure.

use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex};

use uroce_stack::{Access, Region};

use crate::bytes::{Lent, RegisteredBytes};
use crate::driver::lock;
use crate::error::Error;
use crate::mr::{MemoryRegion, Registration};
use crate::pd::ProtectionDomain;

/// Registers memory that lives outside of it, and revokes every registration when the closure ends, also by a
/// panic: from [`ProtectionDomain::scope`], which has the shape of [`std::thread::scope`].
///
/// Nothing is waited for. A work request that is still outstanding then completes with
/// [`LocProtErr`](crate::WcStatus::LocProtErr).
///
/// ```
/// # use uroce::*;
/// # let (ctx, _other) = uroce::testing::loopback_pair(Default::default())?;
/// # let pd = ctx.alloc_pd()?;
/// let mut buffer = vec![0; 4096];
/// pd.scope(|scope| {
///     let mr = scope.reg_mr(&mut buffer, Access::LOCAL_WRITE)?;
///     // Post work requests that use `mr.sge(..)`, and wait for their completions.
///     mr.write_at(0, b"seen by the owner afterwards")
/// })?;
/// assert!(buffer.starts_with(b"seen"));
/// # Ok::<(), Error>(())
/// ```
pub struct MrScope<'s, 'env: 's> {
    pd: &'s ProtectionDomain,
    registered: Mutex<Vec<Arc<Registration>>>,
    /// Invariant in both lifetimes, as in `std::thread::Scope`: neither may be shortened or lengthened.
    invariant: PhantomData<(&'s mut &'s (), &'env mut &'env ())>,
}

/// A region of a [`MrScope`].
#[derive(Debug)]
pub struct ScopedMr<'s> {
    mr: MemoryRegion,
    scope: PhantomData<&'s ()>,
}

impl Deref for ScopedMr<'_> {
    type Target = MemoryRegion;

    fn deref(&self) -> &MemoryRegion {
        &self.mr
    }
}

impl<'s, 'env> MrScope<'s, 'env> {
    /// Registers borrowed memory, which the caller gets back when the scope ends.
    ///
    /// # Errors
    /// As [`ProtectionDomain::alloc_mr`].
    pub fn reg_mr(&'s self, memory: &'env mut [u8], access: Access) -> Result<ScopedMr<'s>, Error> {
        let len = memory.len();
        let start = NonNull::from(memory).cast();
        // SAFETY: `memory` is borrowed mutably for 'env, so it stays mapped and no reference to it is used
        // that long. Every registration is revoked before the scope ends, which is before 'env does, and
        // `ScopedMr`, through which the memory can be reached by copy, does not outlive 's.
        let region = unsafe { Region::from_raw(start, len) };
        self.register(region, access, Lent::Writable)
    }

    /// Registers memory that is shared, to be sent from: nobody can write it.
    ///
    /// # Errors
    /// As [`ProtectionDomain::alloc_mr`].
    pub fn reg_mr_readonly(&'s self, memory: &'env [u8]) -> Result<ScopedMr<'s>, Error> {
        let len = memory.len();
        let start = NonNull::from(memory).cast();
        // SAFETY: `memory` is borrowed for 'env, so it stays mapped and is not written by its owners that
        // long; other references only read it, as does the engine, which is given no right to write, and
        // `Lent::ReadOnly` keeps `ScopedMr` from writing. It is revoked before 'env ends, as in `reg_mr`.
        let region = unsafe { Region::from_raw(start, len) };
        self.register(region, Access::empty(), Lent::ReadOnly)
    }

    pub(crate) fn run<R>(pd: &ProtectionDomain, body: impl for<'a> FnOnce(&'a MrScope<'a, 'env>) -> R) -> R {
        let scope = MrScope { pd, registered: Mutex::default(), invariant: PhantomData };
        let _revoke = RevokeAll(&scope.registered);
        // The lifetimes of `body` are those of this call: what it was lent cannot leave it.
        body(&scope)
    }

    fn register(&'s self, region: Region, access: Access, lent: Lent) -> Result<ScopedMr<'s>, Error> {
        let mr = MemoryRegion::register(self.pd, RegisteredBytes::new(region, lent), None, access)?;
        lock(&self.registered).push(Arc::clone(mr.registration()));
        Ok(ScopedMr { mr, scope: PhantomData })
    }
}

impl std::fmt::Debug for MrScope<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MrScope").field("registered", &lock(&self.registered).len()).finish_non_exhaustive()
    }
}

/// Revokes when it goes, also during a panic.
struct RevokeAll<'a>(&'a Mutex<Vec<Arc<Registration>>>);

impl Drop for RevokeAll<'_> {
    fn drop(&mut self) {
        lock(self.0).iter().for_each(|mr| mr.revoke());
    }
}
