//! What may be reached through which key, subject by subject.

mod fast;
mod invalidate;
mod keys;
mod model;
mod regions;
mod transfer;
mod windows;

use super::object::Subject;
use super::{AccessError, Memory, MwType, Region};
use crate::access::Access;
use crate::engine::Pd;
use crate::rng::Rng;
use crate::wire::{Payload, Qpn};
use crate::work::{BindMw, RegisterMr, RemoteAddr};

const PD: Pd = Pd::for_test(1);
const OTHER_PD: Pd = Pd::for_test(2);

/// A queue pair, another one of its protection domain, and one of another.
const BY: Subject = Subject { pd: PD, qp: Qpn::new(0x11) };
const NEIGHBOUR: Subject = Subject { pd: PD, qp: Qpn::new(0x12) };
const STRANGER: Subject = Subject { pd: OTHER_PD, qp: Qpn::new(0x13) };

const REFUSED: Result<(), AccessError> = Err(AccessError::Refused);

/// Where the regions of the tests start, and how long they are.
const IOVA: u64 = 0x1000;
const LEN: u64 = 256;

/// All that peers may do, and what a region needs for that.
const OPEN: Access = Access::REMOTE.union(Access::LOCAL_WRITE);
const BINDABLE: Access = Access::LOCAL_WRITE.union(Access::MW_BIND);

/// A memory with its source of keys.
struct Host {
    memory: Memory,
    rng: Rng,
}

impl Host {
    fn new() -> Self {
        Self { memory: Memory::new(8, 8), rng: Rng::new([7; 32]) }
    }

    fn region_of(&mut self, pd: Pd, access: Access) -> u32 {
        let region = Region::alloc(LEN as usize);
        self.memory.register(&mut self.rng, pd, region, IOVA, access).expect("a region").rkey
    }

    fn region(&mut self, access: Access) -> u32 {
        self.region_of(PD, access)
    }

    fn fast_region(&mut self) -> u32 {
        self.memory.allocate(&mut self.rng, PD, Region::alloc(LEN as usize)).expect("a region").lkey
    }

    fn window_of(&mut self, pd: Pd, kind: MwType) -> u32 {
        self.memory.alloc_mw(&mut self.rng, pd, kind).expect("a window")
    }

    fn window(&mut self, kind: MwType) -> u32 {
        self.window_of(PD, kind)
    }

    /// A region and a window of the whole of it: their keys.
    fn bound(&mut self, kind: MwType) -> (u32, u32) {
        let (mr, mw) = (self.region(BINDABLE), self.window(kind));
        let bind = bind(mw, mr);
        assert_eq!(self.memory.bind(BY, &bind), Ok(()));
        (mr, bind.rkey)
    }

    /// Whether the first byte of the tests' regions can be read through a key.
    fn reads(&self, by: Subject, rkey: u32) -> bool {
        self.memory.check_remote(by, RemoteAddr { va: IOVA, rkey }, 1, Access::REMOTE_READ).is_ok()
    }
}

/// A bind of all of a region, for everything, under the next tag.
fn bind(mw: u32, mr: u32) -> BindMw {
    BindMw { mw, rkey: next_tag(mw), mr, addr: IOVA, length: LEN, access: Access::REMOTE }
}

/// A registration of all that was allocated, for everything, under the next tag.
fn register(mr: u32) -> RegisterMr {
    RegisterMr { mr, key: next_tag(mr), offset: 0, length: LEN, iova: IOVA, access: OPEN | Access::MW_BIND }
}

fn next_tag(key: u32) -> u32 {
    key & !0xff | key.wrapping_add(1) & 0xff
}

fn payload(bytes: &[u8]) -> Payload<'_> {
    let (head, rest) = bytes.split_at(bytes.len() / 2);
    Payload { head, rest }
}
