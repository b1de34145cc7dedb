//! Service identifiers: what a connection is asked for (protocol section 6.4).

use core::fmt;

/// The 64-bit identifier of a service. Those of `rdma_cm` hold a port space and a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceId(pub u64);

/// A space of ports of `rdma_cm`; the values of `rdma_port_space`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum PortSpace {
    /// IP over InfiniBand.
    Ipoib = 0x0002,
    /// Connections.
    Tcp = 0x0106,
    /// Datagrams.
    Udp = 0x0111,
    /// Services that name themselves with all 64 bits.
    Ib = 0x013f,
}

impl PortSpace {
    const ALL: [Self; 4] = [Self::Ipoib, Self::Tcp, Self::Udp, Self::Ib];
}

impl ServiceId {
    /// The identifier of a port of `rdma_cm`.
    #[must_use]
    pub const fn new(space: PortSpace, port: u16) -> Self {
        Self((space as u64) << 16 | port as u64)
    }

    /// The port space, if it is one of `rdma_cm`.
    #[must_use]
    pub fn port_space(self) -> Option<PortSpace> {
        PortSpace::ALL.into_iter().find(|known| *known as u64 == self.0 >> 16)
    }

    /// The port; it means one when there is a [`port_space`](Self::port_space).
    #[must_use]
    pub const fn port(self) -> u16 {
        self.0 as u16
    }

    /// Whether private data for this service begins with an [`IpCmHeader`](super::IpCmHeader).
    #[must_use]
    pub fn has_ip_header(self) -> bool {
        self.port_space().is_some_and(|space| space != PortSpace::Ib)
    }
}

impl fmt::Display for ServiceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#018x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_where_linux_puts_them() {
        let service = ServiceId::new(PortSpace::Tcp, 18515);
        assert_eq!(service.0, 0x0000_0000_0106_4853);
        assert_eq!((service.port_space(), service.port()), (Some(PortSpace::Tcp), 18515));
        assert!(service.has_ip_header());
    }

    #[test]
    fn others_have_no_port_space() {
        for service in [0, 0x4853, 0x1_0106_4853, 0x0107_4853, u64::MAX] {
            assert_eq!(ServiceId(service).port_space(), None);
            assert!(!ServiceId(service).has_ip_header());
        }
        assert!(!ServiceId::new(PortSpace::Ib, 1).has_ip_header(), "its header is another one");
    }
}
