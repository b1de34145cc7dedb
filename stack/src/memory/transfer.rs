//! Every access to registered memory: the key is looked up, the rights are checked, then bytes move.

use super::object::{AccessError, Subject, View};
use super::{Crc, Memory, copy_in, copy_out};
use crate::access::Access;
use crate::engine::Pd;
use crate::wire::Payload;
use crate::work::{FlushScope, RemoteAddr, Sge};

/// What an atomic operation does to its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomicOp {
    CompareSwap { compare: u64, swap: u64 },
    FetchAdd { add: u64 },
}

impl Memory {
    /// Whether a peer may use `rights` on `len` bytes at `remote`.
    pub(crate) fn check_remote(
        &self,
        by: Subject,
        remote: RemoteAddr,
        len: u64,
        rights: Access,
    ) -> Result<(), AccessError> {
        self.remote(by, remote, rights)?.offset(remote.va, len).map(drop)
    }

    /// Whether a peer may flush with `rights` what it names. A whole region, or window, is named by the key alone.
    pub(crate) fn check_flush(
        &self,
        by: Subject,
        remote: RemoteAddr,
        len: u64,
        scope: FlushScope,
        rights: Access,
    ) -> Result<(), AccessError> {
        match scope {
            FlushScope::Range => self.check_remote(by, remote, len, rights),
            FlushScope::Region => self.remote(by, remote, rights).map(drop),
        }
    }

    /// Whether every byte of `sges` may be read, or with [`Access::LOCAL_WRITE`] written. Entries of no length are
    /// not looked at.
    pub(crate) fn check_local(&self, pd: Pd, sges: &[Sge], rights: Access) -> Result<(), AccessError> {
        sges.iter().filter(|sge| sge.length != 0).try_for_each(|sge| self.local(pd, sge, rights).map(drop))
    }

    /// Copies the peer-visible bytes at `remote` into `out`.
    pub(crate) fn read_remote(
        &self,
        by: Subject,
        remote: RemoteAddr,
        out: &mut [u8],
        crc: Crc,
    ) -> Result<Crc, AccessError> {
        let view = self.remote(by, remote, Access::REMOTE_READ)?;
        let offset = view.offset(remote.va, out.len() as u64)?;
        read(view, offset, out, crc)
    }

    /// Copies a peer's bytes to `remote`.
    pub(crate) fn write_remote(
        &self,
        by: Subject,
        remote: RemoteAddr,
        payload: Payload<'_>,
    ) -> Result<(), AccessError> {
        let view = self.remote(by, remote, Access::REMOTE_WRITE)?;
        let offset = view.offset(remote.va, payload.len() as u64)?;
        write(view, offset, payload.head)?;
        write(view, offset + payload.head.len(), payload.rest)
    }

    /// Carries out a peer's atomic operation; tells the former value. The key is checked before the alignment.
    pub(crate) fn atomic(&self, by: Subject, remote: RemoteAddr, op: AtomicOp) -> Result<u64, AccessError> {
        let (view, offset) = self.word(by, remote, Access::REMOTE_ATOMIC)?;
        let former = match op {
            AtomicOp::CompareSwap { compare, swap } => view.memory.compare_swap(offset, compare, swap),
            AtomicOp::FetchAdd { add } => view.memory.fetch_add(offset, add),
        };
        former.ok_or(AccessError::Misaligned)
    }

    /// Stores a peer's ATOMIC WRITE, which takes the right to write: readers see all 8 bytes of it or none.
    pub(crate) fn atomic_write(
        &self,
        by: Subject,
        remote: RemoteAddr,
        value: [u8; 8],
    ) -> Result<(), AccessError> {
        let (view, offset) = self.word(by, remote, Access::REMOTE_WRITE)?;
        view.memory.store(offset, value).ok_or(AccessError::Misaligned)
    }

    /// Copies the bytes of `sges` from `offset` on into `out`.
    pub(crate) fn gather(
        &self,
        pd: Pd,
        sges: &[Sge],
        offset: u64,
        out: &mut [u8],
        mut crc: Crc,
    ) -> Result<Crc, AccessError> {
        let mut out = out;
        for piece in pieces(sges, offset, out.len()) {
            let (now, later) = out.split_at_mut(piece.length as usize);
            let (view, at) = self.local(pd, &piece, Access::empty())?;
            crc = read(view, at, now, crc)?;
            out = later;
        }
        debug_assert!(out.is_empty(), "the scatter/gather list is shorter than the message");
        Ok(crc)
    }

    /// Copies `payload` into the bytes of `sges` from `offset` on; the list has room for it.
    pub(crate) fn scatter(
        &self,
        pd: Pd,
        sges: &[Sge],
        offset: u64,
        payload: Payload<'_>,
    ) -> Result<(), AccessError> {
        self.scatter_run(pd, sges, offset, payload.head)?;
        self.scatter_run(pd, sges, offset + payload.head.len() as u64, payload.rest)
    }

    fn scatter_run(&self, pd: Pd, sges: &[Sge], offset: u64, bytes: &[u8]) -> Result<(), AccessError> {
        let mut bytes = bytes;
        for piece in pieces(sges, offset, bytes.len()) {
            let (now, later) = bytes.split_at(piece.length as usize);
            let (view, at) = self.local(pd, &piece, Access::LOCAL_WRITE)?;
            write(view, at, now)?;
            bytes = later;
        }
        debug_assert!(bytes.is_empty(), "the scatter/gather list is shorter than the message");
        Ok(())
    }

    /// What a peer may use `rights` on.
    #[inline]
    fn remote(&self, by: Subject, remote: RemoteAddr, rights: Access) -> Result<&View, AccessError> {
        self.object(remote.rkey)?.remote(by, rights)
    }

    /// What the local side may use `rights` on, and where in it all of `sge` is.
    #[inline]
    fn local(&self, pd: Pd, sge: &Sge, rights: Access) -> Result<(&View, usize), AccessError> {
        let view = self.object(sge.lkey)?.local(pd, rights)?;
        Ok((view, view.offset(sge.addr, u64::from(sge.length))?))
    }

    /// The word that a peer's atomic operation names.
    fn word(&self, by: Subject, remote: RemoteAddr, rights: Access) -> Result<(&View, usize), AccessError> {
        let view = self.remote(by, remote, rights)?;
        let offset = view.offset(remote.va, 8)?;
        if remote.va.is_multiple_of(8) { Ok((view, offset)) } else { Err(AccessError::Misaligned) }
    }
}

fn read(view: &View, offset: usize, out: &mut [u8], crc: Crc) -> Result<Crc, AccessError> {
    let from = view.memory.at(offset, out.len()).ok_or(AccessError::Refused)?;
    // SAFETY: `at` returned a pointer with `out.len()` bytes of the region behind it. The region is registered, so
    // its memory is mapped and no reference to it exists; `out` is a frame, which no region overlaps.
    Ok(unsafe { copy_out(out, from, crc) })
}

fn write(view: &View, offset: usize, bytes: &[u8]) -> Result<(), AccessError> {
    let to = view.memory.at(offset, bytes.len()).ok_or(AccessError::Refused)?;
    // SAFETY: as in `read`. The rights that were checked include writing, which a region grants peers only together
    // with the local side, and a window only when its region grants it the local side, so the memory is writable.
    unsafe { copy_in(to, bytes) };
    Ok(())
}

/// The parts of `sges` that hold the bytes from `offset` on, `len` of them.
fn pieces(sges: &[Sge], offset: u64, len: usize) -> impl Iterator<Item = Sge> {
    let (mut skip, mut left) = (offset, len as u64);
    sges.iter().filter_map(move |sge| {
        let length = u64::from(sge.length);
        let skipped = skip.min(length);
        skip -= skipped;
        let taken = (length - skipped).min(left);
        left -= taken;
        (taken != 0).then(|| Sge {
            addr: sge.addr.wrapping_add(skipped),
            length: taken as u32,
            lkey: sge.lkey,
        })
    })
}
