//! The connection manager of a device.

use std::sync::Arc;

use rand_chacha::rand_core::Rng as _;
use uroce_stack::cm::{CmConfig, CmCounters};
use uroce_stack::{Engine, Instant};

use super::Context;
use crate::cm::{CmService, EventChannel, IdShared};
use crate::device::eui_64;
use crate::driver::lock;
use crate::error::Error;

impl Context {
    /// Where events of the connection manager arrive (`rdma_create_event_channel`). The first one starts the connection
    /// manager, which takes queue pair 1.
    ///
    /// # Errors
    /// [`Error::Refused`] when the device has no queue pair left for it, [`Error::System`] when no descriptor is left.
    pub fn create_event_channel(&self) -> Result<EventChannel, Error> {
        EventChannel::new(self)
    }

    /// What the connection manager has counted; `None` before there is one.
    #[must_use]
    pub fn cm_counters(&self) -> Option<CmCounters> {
        self.core().control(|port, _| port.manager().map(|(manager, _)| manager.counters().clone()))
    }

    pub(crate) fn start_connection_manager(&self) -> Result<(), Error> {
        let mac = self.0.way.mac();
        let mut seed = [0; 32];
        lock(&self.0.rng).fill_bytes(&mut seed);
        let config = CmConfig::new(seed, eui_64(mac), self.0.mtu);
        self.core().control(|port, now| port.start_manager(now, mac, config))
    }

    /// A call of the connection manager, which runs since the first event channel was made.
    pub(crate) fn with_connection_manager<R>(
        &self,
        call: impl FnOnce(&mut CmService, &mut Engine, Instant) -> R,
    ) -> R {
        self.core().control(|port, now| match port.manager() {
            Some((manager, engine)) => call(manager, engine, now),
            None => unreachable!("an event channel has started the connection manager"),
        })
    }

    /// An id of the connection manager is gone.
    pub(crate) fn retire(&self, id: &Arc<IdShared>) {
        self.with_connection_manager(|manager, engine, now| manager.retire(engine, now, id));
    }
}
