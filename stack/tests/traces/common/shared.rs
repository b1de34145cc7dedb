//! Shared receive queues.

use super::*;

/// A shared receive queue and the application's half of it.
pub struct SharedReceives {
    pub srq: Srq,
    pub queue: SharedRecvQueue,
    /// What XRC requests name it by.
    pub number: u32,
}

impl SharedReceives {
    /// One for `size` receives of up to four pieces.
    pub fn new(engine: &mut Engine, pd: Pd, size: u32, xrc: Option<(Xrcd, Cq)>) -> Self {
        let init = SrqInit { max_wr: size, max_sge: 4, xrc };
        let (srq, queue) = engine.create_srq(pd, &init).expect("room for a shared receive queue");
        let number = engine.srq_number(srq).expect("it exists");
        Self { srq, queue, number }
    }

    pub fn post(&mut self, wr_id: u64, sge: Sge) {
        self.queue.push(wr_id, &[sge]).expect("the receive is accepted");
        self.queue.ring_doorbell();
    }
}

impl Host {
    /// The shared receive queue of the setup.
    pub fn shared(&mut self) -> &mut SharedReceives {
        self.srq.as_mut().expect("the setup has one")
    }

    /// Posts a receive into `length` bytes from `offset` on to the shared receive queue.
    pub fn post_shared(&mut self, wr_id: u64, offset: u64, length: u32) {
        let sge = self.sge(offset, length);
        self.shared().post(wr_id, sge);
    }
}
