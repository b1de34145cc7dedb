//! Opening an interface, one way or another.

use std::net::IpAddr;

use uroce_nic::host::Interface;
use uroce_nic::{AfPacket, Loopback, Nic, OpenError};

use crate::config::Backend;
use crate::error::Error;

/// The receive queue that is used unless the configuration says otherwise.
const FIRST_QUEUE: u32 = 0;
/// Frames to ourselves that wait for the next round: what one round sends at most.
const OWN_FRAMES: usize = 64;

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
                let interface_name = &interface.name;
                tracing::warn!(interface_name, %reason, "AF_XDP cannot be used; falling back to AF_PACKET");
                packet(interface)
            }
            opened => opened,
        },
    }
}

/// Whether AF_PACKET may do where AF_XDP does not. That somebody else uses the interface is for the user to
/// solve.
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
    let nic = AfXdp::open(carrier(interface), queue, &XdpConfig::default())?;
    Ok(with_loopback(nic, interface.mac))
}

/// Built without it: as if the kernel had none.
#[cfg(not(feature = "af-xdp"))]
fn xdp(_interface: &Interface, _queue: u32) -> Result<Box<dyn Nic>, Error> {
    Err(OpenError::NoAfXdp.into())
}

fn packet(interface: &Interface) -> Result<Box<dyn Nic>, Error> {
    let addresses: Vec<IpAddr> = interface.addresses.iter().map(|own| own.address).collect();
    Ok(with_loopback(AfPacket::open(carrier(interface), &addresses)?, interface.mac))
}

/// Queue pairs of one device talk to each other, too: no switch would send their frames back.
pub(crate) fn with_loopback(nic: impl Nic + 'static, mac: [u8; 6]) -> Box<dyn Nic> {
    Box::new(Loopback::new(nic, mac, OWN_FRAMES))
}
