//! A shared receive queue: whoever gets a message takes the next receive.

use uroce_stack::{Access, Engine, Region, Sge, SharedRecvQueue, Srq, SrqInit};

use crate::endpoint::ROOM;
use crate::rng::Rng;

/// Receives that it holds at most, and places for them.
const SLOTS: usize = 16;

/// The queue, its memory, and which of its receives are posted.
pub(crate) struct Shared {
    pub(crate) srq: Srq,
    queue: SharedRecvQueue,
    region: Region,
    lkey: u32,
    is_posted: [bool; SLOTS],
}

impl Shared {
    /// One with memory of a protection domain of its own.
    pub(crate) fn new(engine: &mut Engine) -> Self {
        let pd = engine.alloc_pd().expect("a protection domain");
        let region = Region::alloc(SLOTS * ROOM);
        let keys =
            engine.register_mr(pd, region.clone(), region.addr(), Access::LOCAL_WRITE).expect("a region");
        let init = SrqInit { max_wr: SLOTS as u32, max_sge: 1, xrc: None };
        let (srq, queue) = engine.create_srq(pd, &init).expect("a shared receive queue");
        Self { srq, queue, region, lkey: keys.lkey, is_posted: [false; SLOTS] }
    }

    /// Posts every other receive that is free, so that now and then there is none.
    pub(crate) fn post(&mut self, rng: &mut Rng) {
        for (slot, is_posted) in self.is_posted.iter_mut().enumerate() {
            if *is_posted || rng.chance(0.5) {
                continue;
            }
            let addr = self.region.addr() + (slot * ROOM) as u64;
            let sge = Sge { addr, length: ROOM as u32, lkey: self.lkey };
            self.queue.push(slot as u64, &[sge]).expect("as many places as receives");
            *is_posted = true;
        }
        self.queue.ring_doorbell();
    }

    /// A receive was used up; tells its first bytes.
    pub(crate) fn take(&mut self, wr_id: u64, len: usize) -> Result<Vec<u8>, String> {
        let slot = wr_id as usize;
        if !self.is_posted.get_mut(slot).is_some_and(std::mem::take) {
            return Err(format!("receive {wr_id} of the shared queue was not posted"));
        }
        let mut bytes = vec![0; len];
        assert!(self.region.read_at(slot * ROOM, &mut bytes));
        Ok(bytes)
    }
}
