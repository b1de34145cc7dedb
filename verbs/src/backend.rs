//! Opening an interface, one way or another.

use uroce_nic::host::Interface;
use uroce_nic::{Nic, OpenError};

use crate::config::Backend;
use crate::error::Error;

/// The receive queue that is used unless the configuration says otherwise.
const FIRST_QUEUE: u32 = 0;

pub(crate) fn open(
    interface: &Interface,
    wanted: Backend,
    queue: Option<u32>,
) -> Result<Box<dyn Nic>, Error> {
    let queue = queue.unwrap_or(FIRST_QUEUE);
    match wanted {
        Backend::Xdp => xdp(interface, queue),
        Backend::Packet => packet(interface),
        Backend::Auto => match xdp(interface, queue) {
            Err(Error::Open(reason)) if another_way_helps(&reason) => {
                tracing::warn!(interface = interface.name, %reason, "AF_XDP cannot be used; falling back to AF_PACKET");
                packet(interface)
            }
            opened => opened,
        },
    }
}

/// Whether AF_PACKET may do where AF_XDP does not. That somebody else uses the interface is for the user to solve.
const fn another_way_helps(reason: &OpenError) -> bool {
    matches!(
        reason,
        OpenError::NoAfXdp
            | OpenError::NoXdp { .. }
            | OpenError::NotPermitted { .. }
            | OpenError::LockedMemory { .. }
    )
}

/// The interface whose queues carry the frames: of a VLAN, the one below.
fn carrier(interface: &Interface) -> &str {
    interface.vlan.as_ref().map_or(&interface.name, |vlan| &vlan.parent_name)
}

#[cfg(feature = "af-xdp")]
fn xdp(interface: &Interface, queue: u32) -> Result<Box<dyn Nic>, Error> {
    use uroce_nic::{AfXdp, XdpConfig};
    Ok(Box::new(AfXdp::open(carrier(interface), queue, &XdpConfig::default())?))
}

/// Built without it: as if the kernel had none.
#[cfg(not(feature = "af-xdp"))]
fn xdp(_interface: &Interface, _queue: u32) -> Result<Box<dyn Nic>, Error> {
    Err(OpenError::NoAfXdp.into())
}

fn packet(interface: &Interface) -> Result<Box<dyn Nic>, Error> {
    Err(OpenError::NoAfXdp.into())
}
