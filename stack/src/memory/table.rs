//! The table of memory regions, and every access to them.

use super::{Crc, Keys, Region, copy_in, copy_out};
use crate::access::Access;
use crate::engine::Pd;
use crate::error::Error;
use crate::rng::Rng;
use crate::slab::Slab;
use crate::wire::Payload;
use crate::work::{RemoteAddr, Sge};

/// The keys of a memory region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MrKeys {
    /// Names the region in local work requests.
    pub lkey: u32,
    /// Names the region in requests of peers. The same number as `lkey`, as on most hardware: the access rights, not
    /// the secrecy of the key, decide what a peer may do.
    pub rkey: u32,
}

/// Why an access was refused. Nothing was read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessError {
    /// Wrong or revoked key, another protection domain, a missing right, or out of bounds: NAK 0x62, or a local
    /// protection error. Which one is not told, here or to the peer.
    Refused,
    /// The address of an atomic operation is not a multiple of 8: NAK 0x61.
    Misaligned,
}

/// What an atomic operation does to its word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomicOp {
    CompareSwap { compare: u64, swap: u64 },
    FetchAdd { add: u64 },
}

#[derive(Debug)]
struct Mr {
    pd: Pd,
    region: Region,
    /// The address that keys' users give to the first byte.
    iova: u64,
    access: Access,
}

impl Mr {
    /// The offset of `addr`, when `pd` may use `rights` on the `len` bytes from there. Nothing here can wrap.
    fn offset(&self, pd: Pd, addr: u64, len: u64, rights: Access) -> Result<usize, AccessError> {
        if self.pd != pd || !self.access.contains(rights) {
            return Err(AccessError::Refused);
        }
        let offset = addr.checked_sub(self.iova).ok_or(AccessError::Refused)?;
        let end = offset.checked_add(len).ok_or(AccessError::Refused)?;
        if end > self.region.len() as u64 {
            return Err(AccessError::Refused);
        }
        Ok(offset as usize)
    }
}

/// Every memory region of an engine.
#[derive(Debug)]
pub(crate) struct Memory {
    keys: Keys,
    regions: Slab<Mr>,
    limit: u32,
}

impl Memory {
    pub(crate) fn new(limit: u32) -> Self {
        Self { keys: Keys::default(), regions: Slab::new(limit), limit }
    }

    pub(crate) fn register(
        &mut self,
        rng: &mut Rng,
        pd: Pd,
        region: Region,
        iova: u64,
        access: Access,
    ) -> Result<MrKeys, Error> {
        if !access.is_valid_for_region() {
            return Err(Error::Invalid("REMOTE_WRITE and REMOTE_ATOMIC on a region also need LOCAL_WRITE"));
        }
        if iova.checked_add(region.len() as u64).is_none() {
            return Err(Error::Invalid("the region's addresses pass the end of the 64-bit address space"));
        }
        let exhausted = Error::Exhausted { what: "memory region", limit: self.limit };
        let place = self.regions.vacant().ok_or_else(|| exhausted.clone())?;
        let key = self.keys.insert(rng, 1, u32::MAX, place).ok_or(exhausted)?;
        self.regions.insert(Mr { pd, region, iova, access });
        Ok(MrKeys { lkey: key, rkey: key })
    }

    /// Revokes the key; afterwards no byte of the region is touched.
    pub(crate) fn deregister(&mut self, key: u32) -> Result<Region, Error> {
        let place = self.keys.remove(key).ok_or(Error::NotFound("memory region"))?;
        let mr = self.regions.remove(place).ok_or(Error::NotFound("memory region"))?;
        Ok(mr.region)
    }

    pub(crate) fn uses(&self, pd: Pd) -> bool {
        self.regions.iter().any(|mr| mr.pd == pd)
    }

    /// Whether a peer may use `rights` on `len` bytes at `remote`.
    pub(crate) fn check_remote(
        &self,
        pd: Pd,
        remote: RemoteAddr,
        len: u64,
        rights: Access,
    ) -> Result<(), AccessError> {
        self.mr(remote.rkey)?.offset(pd, remote.va, len, rights).map(drop)
    }

    /// Whether every byte of `sges` may be read, or with [`Access::LOCAL_WRITE`] written. Entries of no length are
    /// not looked at.
    pub(crate) fn check_local(&self, pd: Pd, sges: &[Sge], rights: Access) -> Result<(), AccessError> {
        sges.iter().filter(|sge| sge.length != 0).try_for_each(|sge| {
            self.mr(sge.lkey)?.offset(pd, sge.addr, u64::from(sge.length), rights).map(drop)
        })
    }

    /// Copies the peer-visible bytes at `remote` into `out`.
    pub(crate) fn read_remote(
        &self,
        pd: Pd,
        remote: RemoteAddr,
        out: &mut [u8],
        crc: Crc,
    ) -> Result<Crc, AccessError> {
        let mr = self.mr(remote.rkey)?;
        let offset = mr.offset(pd, remote.va, out.len() as u64, Access::REMOTE_READ)?;
        read(mr, offset, out, crc)
    }

    /// Copies a peer's bytes to `remote`.
    pub(crate) fn write_remote(
        &self,
        pd: Pd,
        remote: RemoteAddr,
        payload: Payload<'_>,
    ) -> Result<(), AccessError> {
        let mr = self.mr(remote.rkey)?;
        let offset = mr.offset(pd, remote.va, payload.len() as u64, Access::REMOTE_WRITE)?;
        write(mr, offset, payload.head)?;
        write(mr, offset + payload.head.len(), payload.rest)
    }

    /// Carries out a peer's atomic operation; tells the former value. The key is checked before the alignment.
    pub(crate) fn atomic(&self, pd: Pd, remote: RemoteAddr, op: AtomicOp) -> Result<u64, AccessError> {
        let mr = self.mr(remote.rkey)?;
        let offset = mr.offset(pd, remote.va, 8, Access::REMOTE_ATOMIC)?;
        if !remote.va.is_multiple_of(8) {
            return Err(AccessError::Misaligned);
        }
        let former = match op {
            AtomicOp::CompareSwap { compare, swap } => mr.region.compare_swap(offset, compare, swap),
            AtomicOp::FetchAdd { add } => mr.region.fetch_add(offset, add),
        };
        former.ok_or(AccessError::Misaligned)
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
            let mr = self.mr(piece.lkey)?;
            let at = mr.offset(pd, piece.addr, u64::from(piece.length), Access::empty())?;
            crc = read(mr, at, now, crc)?;
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
            let mr = self.mr(piece.lkey)?;
            let at = mr.offset(pd, piece.addr, u64::from(piece.length), Access::LOCAL_WRITE)?;
            write(mr, at, now)?;
            bytes = later;
        }
        debug_assert!(bytes.is_empty(), "the scatter/gather list is shorter than the message");
        Ok(())
    }

    #[inline]
    fn mr(&self, key: u32) -> Result<&Mr, AccessError> {
        let place = self.keys.get(key).ok_or(AccessError::Refused)?;
        self.regions.get(place).ok_or(AccessError::Refused)
    }
}

fn read(mr: &Mr, offset: usize, out: &mut [u8], crc: Crc) -> Result<Crc, AccessError> {
    let from = mr.region.at(offset, out.len()).ok_or(AccessError::Refused)?;
    // SAFETY: `at` returned a pointer with `out.len()` bytes of the region behind it. The region is registered, so
    // its memory is mapped and no reference to it exists; `out` is a frame, which no region overlaps.
    Ok(unsafe { copy_out(out, from, crc) })
}

fn write(mr: &Mr, offset: usize, bytes: &[u8]) -> Result<(), AccessError> {
    let to = mr.region.at(offset, bytes.len()).ok_or(AccessError::Refused)?;
    // SAFETY: as in `read`; the access rights that `Mr::offset` checked include writing, so the memory is writable.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const PD: Pd = Pd::for_test(1);

    fn memory() -> (Memory, Rng) {
        (Memory::new(8), Rng::new([7; 32]))
    }

    fn all() -> Access {
        Access::all()
    }

    fn payload(bytes: &[u8]) -> Payload<'_> {
        let (head, rest) = bytes.split_at(bytes.len() / 2);
        Payload { head, rest }
    }

    #[test]
    fn c49_no_address_wraps() {
        let (mut memory, mut rng) = memory();
        let keys = memory.register(&mut rng, PD, Region::alloc(4096), 0x1000, all()).unwrap();
        for (va, len) in [
            (u64::MAX - 7, 16),
            (0x1000, u64::from(u32::MAX)),
            (0xfff, 1),
            (0x1000, 4097),
            (0x2000, 1),
            (0x1fff, 2),
            (0, u64::MAX),
        ] {
            let remote = RemoteAddr { va, rkey: keys.rkey };
            assert_eq!(
                memory.check_remote(PD, remote, len, Access::REMOTE_WRITE),
                Err(AccessError::Refused),
                "{va:#x} {len}"
            );
        }
        let whole = RemoteAddr { va: 0x1000, rkey: keys.rkey };
        assert_eq!(memory.check_remote(PD, whole, 4096, Access::REMOTE_WRITE), Ok(()));
    }

    #[test]
    fn a_region_that_passes_the_end_of_the_address_space_is_refused() {
        let (mut memory, mut rng) = memory();
        assert!(memory.register(&mut rng, PD, Region::alloc(16), u64::MAX - 14, all()).is_err());
        assert!(memory.register(&mut rng, PD, Region::alloc(16), u64::MAX - 15, all()).is_err());
        assert!(memory.register(&mut rng, PD, Region::alloc(16), u64::MAX - 16, all()).is_ok());
    }

    #[test]
    fn remote_change_needs_local_write() {
        let (mut memory, mut rng) = memory();
        for access in
            [Access::REMOTE_WRITE, Access::REMOTE_ATOMIC, Access::REMOTE_WRITE | Access::REMOTE_READ]
        {
            assert!(memory.register(&mut rng, PD, Region::alloc(16), 0, access).is_err());
        }
        assert!(memory.register(&mut rng, PD, Region::alloc(16), 0, Access::REMOTE_READ).is_ok());
    }

    #[test]
    fn s05_a_key_of_another_protection_domain_opens_nothing() {
        let (mut memory, mut rng) = memory();
        let keys = memory.register(&mut rng, PD, Region::alloc(16), 0, all()).unwrap();
        let other = Pd::for_test(2);
        let remote = RemoteAddr { va: 0, rkey: keys.rkey };
        assert_eq!(memory.check_remote(other, remote, 1, Access::empty()), Err(AccessError::Refused));
        let sge = Sge { addr: 0, length: 1, lkey: keys.lkey };
        assert_eq!(memory.check_local(other, &[sge], Access::empty()), Err(AccessError::Refused));
    }

    #[test]
    fn each_right_is_needed_for_its_access() {
        let (mut memory, mut rng) = memory();
        let keys = memory.register(&mut rng, PD, Region::alloc(16), 0, Access::LOCAL_WRITE).unwrap();
        let remote = RemoteAddr { va: 0, rkey: keys.rkey };
        assert!(memory.write_remote(PD, remote, payload(b"x")).is_err());
        assert!(memory.read_remote(PD, remote, &mut [0], Crc::new()).is_err());
        assert!(memory.atomic(PD, remote, AtomicOp::FetchAdd { add: 1 }).is_err());
    }

    #[test]
    fn deregistering_revokes() {
        let (mut memory, mut rng) = memory();
        let keys = memory.register(&mut rng, PD, Region::alloc(16), 0, all()).unwrap();
        assert!(memory.deregister(keys.lkey).is_ok());
        assert!(memory.deregister(keys.lkey).is_err());
        let remote = RemoteAddr { va: 0, rkey: keys.rkey };
        assert_eq!(memory.check_remote(PD, remote, 1, Access::REMOTE_READ), Err(AccessError::Refused));
    }

    #[test]
    fn c59_atomics_need_their_alignment_after_their_key() {
        let (mut memory, mut rng) = memory();
        let keys = memory.register(&mut rng, PD, Region::alloc(32), 0, all()).unwrap();
        let add = AtomicOp::FetchAdd { add: 5 };
        let at = |va, rkey| RemoteAddr { va, rkey };
        assert_eq!(memory.atomic(PD, at(4, keys.rkey), add), Err(AccessError::Misaligned));
        assert_eq!(memory.atomic(PD, at(4, keys.rkey ^ 1), add), Err(AccessError::Refused));
        assert_eq!(memory.atomic(PD, at(8, keys.rkey), add), Ok(0));
        let swap = AtomicOp::CompareSwap { compare: 5, swap: 1 };
        assert_eq!(memory.atomic(PD, at(8, keys.rkey), swap), Ok(5));
        assert_eq!(memory.atomic(PD, at(8, keys.rkey), add), Ok(1));
    }

    #[test]
    fn gather_and_scatter_cross_every_boundary() {
        let (mut memory, mut rng) = memory();
        let keys = memory.register(&mut rng, PD, Region::alloc(64), 0, all()).unwrap();
        let sge = |addr, length| Sge { addr, length, lkey: keys.lkey };
        let sges = [sge(40, 3), sge(0, 0), sge(8, 1), sge(20, 6)];
        let bytes: Vec<u8> = (1..=10).collect();
        for offset in 0..=10usize {
            for len in 0..=10 - offset {
                let part = &bytes[offset..offset + len];
                memory.scatter(PD, &sges, offset as u64, payload(part)).unwrap();
                let mut out = std::vec![0; len];
                let crc = memory.gather(PD, &sges, offset as u64, &mut out, Crc::new()).unwrap();
                assert_eq!(out, part, "{offset} {len}");
                assert_eq!(crc.finish(), Crc::new().update(part).finish());
            }
        }
    }
}
