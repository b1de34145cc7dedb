//! The network the guest and our endpoint meet on: a bridge in a namespace of its own, the guest's tap on one port, a
//! cable to the endpoint's namespace on the other.

use crate::error::Result;
use crate::netns::{self, Namespace};

/// Tap interface the guest's network card is joined to.
pub(super) const TAP: &str = "tap0";
/// Interface of the endpoint's namespace.
pub(crate) const INTERFACE: &str = "ep0";
/// Addresses of the guest.
pub(super) const GUEST: Addresses = Addresses { v4: "10.1.0.1", v6: "fd00::1" };
/// Addresses of the endpoint.
const ENDPOINT: Addresses = Addresses { v4: "10.1.0.2", v6: "fd00::2" };
/// Path MTU 4096 and its headers, with room.
pub(super) const MTU: u32 = 4200;
/// MTU inside the bridge, which only must not be the smallest.
const BRIDGE_MTU: u32 = 9000;

/// The two addresses of one station.
#[derive(Debug)]
pub(super) struct Addresses {
    /// In 10.1.0.0/24.
    pub(super) v4: &'static str,
    /// In fd00::/64.
    pub(super) v6: &'static str,
}

/// The network, taken down when dropped.
#[derive(Debug)]
pub(crate) struct Network {
    bridge: Namespace,
    endpoint: Namespace,
}

impl Network {
    /// Sets it up. The guest may be started later: the bridge carries its tap already.
    pub(crate) fn new() -> Result<Self> {
        netns::sweep();
        let network = Self { bridge: Namespace::new("bridge")?, endpoint: Namespace::new("endpoint")? };
        network.make_bridge()?;
        network.make_endpoint()?;
        Ok(network)
    }

    /// Where the guest's emulator must run.
    pub(super) fn bridge(&self) -> &Namespace {
        &self.bridge
    }

    /// Where our endpoint runs; the guest is in reach from here.
    pub(crate) fn endpoint(&self) -> &Namespace {
        &self.endpoint
    }

    fn make_bridge(&self) -> Result<()> {
        let bridge = &self.bridge;
        bridge.ip(&format!("link add br0 mtu {BRIDGE_MTU} type bridge mcast_snooping 0"))?;
        bridge.ip(&format!("tuntap add {TAP} mode tap"))?;
        netns::join((bridge, "port1"), (&self.endpoint, INTERFACE))?;
        for port in [TAP, "port1"] {
            bridge.ip(&format!("link set {port} mtu {BRIDGE_MTU} master br0 up"))?;
        }
        bridge.ip("link set br0 up")
    }

    fn make_endpoint(&self) -> Result<()> {
        let endpoint = &self.endpoint;
        endpoint.skip_duplicate_detection(INTERFACE)?;
        endpoint.ip(&format!("link set {INTERFACE} mtu {MTU} up"))?;
        endpoint.ip(&format!("addr add {}/24 dev {INTERFACE}", ENDPOINT.v4))?;
        endpoint.ip(&format!("addr add {}/64 dev {INTERFACE} nodad", ENDPOINT.v6))
    }
}
