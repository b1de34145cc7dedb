//! Memory that work requests open and close: windows, regions for fast registration, and the packets about them.

use uroce_stack::wire::{Feth, Operation};
use uroce_stack::{BindMw, MwType, RegisterMr, Reregister};

use super::*;

impl Host {
    /// A connection whose region windows may be bound to and peers may flush, and that lets peers flush.
    pub fn open() -> Self {
        let access = Access::REMOTE | Access::FLUSH_GLOBAL;
        let mut host = Self::with(Setup { access, ..Setup::default() });
        host.grant(Access::MW_BIND | Access::FLUSH_GLOBAL);
        host
    }

    /// Gives the region these rights beside its usual ones.
    pub fn grant(&mut self, more: Access) {
        let access = Some(Access::LOCAL_WRITE | Access::REMOTE | more);
        let change = Reregister { access, ..Reregister::default() };
        self.engine.reregister_mr(self.keys.lkey, change).expect("no window is bound to the region");
    }

    /// Posts what has no data of its own.
    pub fn post_bare(&mut self, wr_id: u64, op: SendOp) {
        self.post(wr_id, op, SendFlags::empty(), &[]);
    }

    /// Posts a local operation and expects it to succeed at once.
    pub fn carry_out(&mut self, op: SendOp) {
        self.post_bare(0, op);
        assert_eq!((self.sent(), self.done()), (vec![], ok([0])), "{op:?}");
    }

    pub fn window(&mut self, kind: MwType) -> u32 {
        self.engine.alloc_mw(self.pd, kind).expect("room for a window")
    }

    /// What shows peers `length` bytes of the region from `offset` on, with every right, under another tag.
    pub const fn bind(&self, mw: u32, offset: u64, length: u64) -> BindMw {
        let (rkey, access) = (retagged(mw), Access::REMOTE.union(Access::FLUSH_GLOBAL));
        BindMw { mw, rkey, mr: self.keys.lkey, addr: VA + offset, length, access }
    }

    /// A new window that is bound so, and where it starts.
    pub fn bound(&mut self, kind: MwType, offset: u64, length: u64) -> RemoteAddr {
        let mw = self.window(kind);
        let bind = self.bind(mw, offset, length);
        self.carry_out(SendOp::BindMw(bind));
        RemoteAddr { va: bind.addr, rkey: bind.rkey }
    }

    /// A region of `length` bytes for fast registration, and its key.
    pub fn allocated(&mut self, length: usize) -> (Region, u32) {
        let region = Region::alloc(length);
        let keys = self.engine.alloc_mr(self.pd, region.clone()).expect("room for a region");
        (region, keys.lkey)
    }

    /// Such a region, registered at [`VA`] with every right of peers under another tag.
    pub fn registered(&mut self, length: usize) -> (Region, RemoteAddr) {
        let (region, mr) = self.allocated(length);
        let register = register(mr, length as u64);
        self.carry_out(SendOp::RegisterMr(register));
        (region, RemoteAddr { va: VA, rkey: register.key })
    }
}

/// Opens all of a region for fast registration at [`VA`], under another tag.
pub const fn register(mr: u32, length: u64) -> RegisterMr {
    let access = Access::LOCAL_WRITE.union(Access::REMOTE).union(Access::FLUSH_GLOBAL);
    RegisterMr { mr, key: retagged(mr), offset: 0, length, iova: VA, access }
}

/// The key of the same object with another tag.
pub const fn retagged(key: u32) -> u32 {
    key ^ 0x5A
}

/// The last or only packet of a SEND, which invalidates `rkey`.
pub fn send_invalidate(position: Position, psn: u32, rkey: u32, payload: &[u8]) -> Pkt {
    Pkt::new(psn, Operation::Send { position, immediate: None, invalidate: Some(rkey) }, payload)
}

pub fn atomic_write(psn: u32, remote: RemoteAddr, value: &[u8; 8]) -> Pkt {
    Pkt::new(psn, Operation::AtomicWrite(reth(remote, 8)), value)
}

/// A FLUSH that makes a range visible to everybody.
pub fn flush(psn: u32, remote: RemoteAddr, length: u32) -> Pkt {
    flush_as(psn, Feth { placement: Feth::GLOBAL, selectivity: Feth::RANGE }, remote, length)
}

pub fn flush_as(psn: u32, feth: Feth, remote: RemoteAddr, length: u32) -> Pkt {
    Pkt::new(psn, Operation::Flush { feth, reth: reth(remote, length) }, &[])
}

/// The answer to an ATOMIC WRITE or a FLUSH: a READ response without data.
pub fn written(psn: u32, msn: u32) -> Pkt {
    read_response(Position::Only, psn, msn, b"")
}
