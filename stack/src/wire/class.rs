//! Which transport service a packet belongs to, with the header that service adds.

use super::bytes::{Reader, Writer, be24};
use super::{Deth, Opcode, Service};

/// The service of a packet, with the header the service adds behind the base transport header.
///
/// Reliable datagrams are missing: nobody implements them, and hardware uses their opcodes for a transport of
/// its own with other headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Unreliable datagram.
    Ud(Deth),
    /// Extended reliable connection.
    Xrc {
        /// Shared receive queue, 24 bits; on requests.
        srqn: Option<u32>,
    },
    /// Congestion notification.
    Cnp,
}

impl Class {
    /// The service alone.
    pub const fn service(&self) -> Service {
        match self {
            Self::Rc => Service::Rc,
            Self::Uc => Service::Uc,
            Self::Ud(_) => Service::Ud,
            Self::Xrc { .. } => Service::Xrc,
            Self::Cnp => Service::Cnp,
        }
    }

    /// Reads the header of the service; `None` for a service that is no class, or when bytes are missing.
    #[inline(always)]
    pub(super) fn parse(opcode: Opcode, reader: &mut Reader<'_>) -> Option<Self> {
        Some(match opcode.service() {
            Service::Rc => Self::Rc,
            Service::Uc => Self::Uc,
            Service::Ud => Self::Ud(Deth::parse(reader.take()?)),
            Service::Cnp => Self::Cnp,
            Service::Xrc if opcode.is_response() => Self::Xrc { srqn: None },
            Service::Xrc => Self::Xrc { srqn: Some(be24(reader.take::<4>()?, 1)) },
            Service::Rd => return None,
        })
    }

    #[inline(always)]
    pub(super) fn emit(&self, writer: &mut Writer<'_>) {
        match self {
            Self::Rc | Self::Uc | Self::Cnp | Self::Xrc { srqn: None } => {}
            Self::Ud(deth) => writer.put(&deth.emit()),
            Self::Xrc { srqn: Some(srqn) } => writer.put(&(srqn & 0xff_ffff).to_be_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Qpn;

    #[test]
    fn requests_of_xrc_name_a_receive_queue_and_responses_do_not() {
        let mut reader = Reader(&[0xff, 1, 2, 3]);
        let class = Class::parse(Opcode::XRC_SEND_ONLY, &mut reader).unwrap();
        assert_eq!(class, Class::Xrc { srqn: Some(0x01_0203) });
        assert_eq!(Class::parse(Opcode::XRC_ACKNOWLEDGE, &mut reader), Some(Class::Xrc { srqn: None }));
        let mut out = [0xff; 4];
        class.emit(&mut Writer::new(&mut out));
        assert_eq!(out, [0, 1, 2, 3]);
    }

    #[test]
    fn datagrams_name_their_sender() {
        let mut reader = Reader(&[0x80, 1, 0, 0, 0, 0, 0, 1]);
        let deth = Deth { qkey: 0x8001_0000, source_qp: Qpn::GSI };
        assert_eq!(Class::parse(Opcode::UD_SEND_ONLY, &mut reader), Some(Class::Ud(deth)));
        assert_eq!(Class::parse(Opcode::UD_SEND_ONLY, &mut reader), None);
    }
}
