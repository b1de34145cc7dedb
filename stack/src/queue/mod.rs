//! The rings between application and engine: send queues, receive queues, completion queues.
//!
//! Each is a single-producer, single-consumer ring. The engine holds one half and the application the other, so
//! posting and polling take no lock of the engine. Whoever lets many threads post serialises them itself.

mod completion;
mod doorbell;
mod recv;
mod ring;
mod send;

pub use completion::CompletionReader;
pub(crate) use completion::{CqShared, completion_ring};
pub(crate) use doorbell::{Doorbell, Doorbells, MAX_DOORBELLS};
pub(crate) use recv::{OwnReceives, RecvSlot, recv_queue, shared_recv_queue};
pub use recv::{RecvQueue, SharedRecvQueue};
pub(crate) use ring::{Consumer, Producer};
pub use send::SendQueue;
pub(crate) use send::{Datagram, QueueCaps, SendData, SendSlot, send_ring};

use core::sync::atomic::{AtomicU8, Ordering, fence};

use alloc::sync::Arc;

use crate::qp::QpState;

/// What both halves of a queue pair's rings see.
#[derive(Debug)]
pub(crate) struct QpShared {
    state: AtomicU8,
    doorbell: Doorbell,
}

impl QpShared {
    pub(crate) fn new(doorbell: Doorbell) -> Arc<Self> {
        Arc::new(Self { state: AtomicU8::new(QpState::Reset as u8), doorbell })
    }

    pub(crate) fn state(&self) -> QpState {
        QpState::from_value(self.state.load(Ordering::Acquire)).unwrap_or(QpState::Reset)
    }

    /// Tells the posting side. What it posted before it saw the new state is found in the ring by the caller,
    /// what it posts afterwards is announced by the doorbell: the fences on both sides leave no third case.
    pub(crate) fn set_state(&self, state: QpState) {
        self.state.store(state as u8, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    /// Announces new sends.
    fn announce_sends(&self) {
        self.doorbell.ring();
    }

    /// Announces new receives: the engine looks for them by itself, unless it has to flush them.
    fn announce_receives(&self) {
        fence(Ordering::SeqCst);
        if self.state() == QpState::Err {
            self.doorbell.ring();
        }
    }
}
