//! The ways from a device to its peers.

use std::net::IpAddr;

use uroce_stack::wire::{MacAddr, Path, Qpn, source_port};

use super::Context;
use crate::config::Source;
use crate::error::{Error, ModifyError, RouteError};
use crate::os::Membership;
use crate::qp::AddressVector;
use crate::way::{Hop, choose};

impl Context {
    /// The path to a peer, down to the MAC. May wait for the kernel to find a neighbour.
    pub(crate) fn resolve(
        &self,
        av: &AddressVector,
        local: Qpn,
        remote: Option<Qpn>,
    ) -> Result<Path, ModifyError> {
        let source = self.source_of(av)?;
        let hop = self.0.way.find(source, av.dgid.ip())?;
        Ok(self.path(av, source, hop, source_port(av.flow_label, local, remote.unwrap_or_default())))
    }

    /// The path back to who sent a datagram to `destination` and is at `av`: from there, unless that is a multicast
    /// group.
    pub(crate) fn path_back(
        &self,
        av: &AddressVector,
        destination: IpAddr,
        mac: Option<MacAddr>,
    ) -> Result<Path, Error> {
        let mac = mac.ok_or(Error::Config("the completion is not that of a received datagram"))?;
        let peer = av.dgid.ip();
        let source = if destination.is_multicast() { self.source_towards(peer) } else { destination };
        let hop = Hop { mac, vlan: self.0.way.vlan() };
        let port = source_port(av.flow_label, Qpn::default(), Qpn::default());
        Ok(self.path(av, source, hop, port))
    }

    fn path(&self, av: &AddressVector, source: IpAddr, hop: Hop, source_port: u16) -> Path {
        Path {
            source_mac: self.0.way.mac(),
            destination_mac: hop.mac,
            vlan: hop.vlan,
            source,
            destination: av.dgid.ip(),
            source_port,
            traffic_class: av.traffic_class,
            hop_limit: av.hop_limit,
            flow_label: av.flow_label,
        }
    }

    fn source_of(&self, av: &AddressVector) -> Result<IpAddr, ModifyError> {
        let Some(index) = av.sgid_index else { return Ok(self.0.source) };
        let gids = self.0.way.now().gids;
        let entry = gids.iter().find(|entry| entry.index == index);
        entry.map(|entry| entry.gid.ip()).ok_or(ModifyError::NoSuchGid { index, count: gids.len() })
    }

    /// The next hop to a peer. May wait for the kernel to find a neighbour.
    pub(crate) fn next_hop(&self, source: IpAddr, destination: IpAddr) -> Result<Hop, RouteError> {
        self.0.way.find(source, destination)
    }

    /// Whether an address is the device's.
    pub(crate) fn check_address(&self, address: IpAddr) -> Result<(), Error> {
        let gids = self.0.way.now().gids;
        choose(Source::Address(address), &self.0.way, &gids).map(drop)
    }

    /// The address of ours that packets to a peer come from: that of the device, or another one of the peer's family.
    pub(crate) fn source_towards(&self, peer: IpAddr) -> IpAddr {
        if self.0.source.is_ipv4() == peer.is_ipv4() {
            return self.0.source;
        }
        let gids = self.0.way.now().gids;
        let fits = |address: &IpAddr| address.is_ipv4() == peer.is_ipv4();
        gids.iter().rev().map(|entry| entry.gid.ip()).find(fits).unwrap_or(self.0.source)
    }

    /// Has the interface listen to a multicast group as long as what is returned lives; a link that the kernel does not
    /// know needs nothing.
    pub(crate) fn listen_to(&self, group: IpAddr) -> Result<Option<Membership>, Error> {
        self.0
            .way
            .join(group)
            .map_err(Error::system("cannot have the interface listen to the multicast group"))
    }
}
