//! What requester and responder of a queue pair share: who they are, and how their packets are written.

use super::attr::{QpAttr, QpInit};
use crate::access::Access;
use crate::engine::Pd;
use crate::memory::Crc;
use crate::wire::{Aeth, Bth, Class, Mtu, Operation, Path, Position, Psn, Qpn, Service, Template, emit};

/// The only P_Key of the table: full member of the default partition.
const PKEY: u16 = 0xFFFF;

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) number: Qpn,
    pub(crate) pd: Pd,
    pub(crate) init: QpInit,
    pub(crate) access: Access,
    pub(crate) peer: Qpn,
    pub(crate) mtu: Mtu,
    /// IP identification of the next packet; varies so that nothing on the way takes two packets for one.
    ident: u16,
    path: Option<(Path, Template)>,
}

/// Header fields that differ from packet to packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) psn: Psn,
    pub(crate) operation: Operation,
    pub(crate) ack_request: bool,
    pub(crate) solicited: bool,
}

impl Header {
    /// A response: asks for nothing.
    pub(crate) const fn response(psn: Psn, operation: Operation) -> Self {
        Self { psn, operation, ack_request: false, solicited: false }
    }

    pub(crate) const fn acknowledge(psn: Psn, aeth: Aeth) -> Self {
        Self::response(psn, Operation::Acknowledge(aeth))
    }
}

impl Connection {
    pub(crate) fn new(number: Qpn, pd: Pd, init: QpInit, ident: u16) -> Self {
        let (peer, mtu) = (Qpn::default(), Mtu::B256);
        Self { number, pd, init, access: Access::empty(), peer, mtu, ident, path: None }
    }

    pub(crate) fn apply(&mut self, attr: &QpAttr) {
        self.access = attr.access.unwrap_or(self.access);
        self.peer = attr.dest_qpn.unwrap_or(self.peer);
        self.mtu = attr.path_mtu.unwrap_or(self.mtu);
        if let Some(path) = &attr.path {
            self.path = Template::new(path).ok().map(|template| (*path, template));
        }
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_ref().map(|(path, _)| path)
    }

    /// How many packets a message of `length` bytes takes; at least one.
    pub(crate) fn packets(&self, length: u32) -> u32 {
        length.div_ceil(self.mtu.bytes() as u32).max(1)
    }

    /// The bytes of a message that its packet number `packet` carries.
    pub(crate) fn payload_len(&self, length: u32, packet: u32) -> usize {
        let before = u64::from(packet) * self.mtu.bytes() as u64;
        (u64::from(length).saturating_sub(before) as usize).min(self.mtu.bytes())
    }

    /// Writes a packet into `frame`; `fill` writes its payload and runs the CRC on.
    ///
    /// `None` when there is no path yet, or when `fill` fails: then the frame must not leave.
    pub(crate) fn emit<E>(
        &mut self,
        frame: &mut [u8],
        header: &Header,
        payload_len: usize,
        fill: impl FnOnce(&mut [u8], Crc) -> Result<Crc, E>,
    ) -> Option<usize> {
        let (_, template) = self.path.as_ref()?;
        let opcode = header.operation.opcode(Service::Rc)?;
        let bth = Bth {
            solicited: header.solicited,
            migrated: true,
            pkey: PKEY,
            dest_qp: self.peer,
            ack_request: header.ack_request,
            psn: header.psn,
            ..Bth::default()
        };
        self.ident = self.ident.checked_add(1).unwrap_or(1);
        let operation = &header.operation;
        emit(frame, template, self.ident, &bth, opcode, &Class::Rc, operation, payload_len, fill).ok()
    }

    /// Writes a packet without payload.
    pub(crate) fn emit_bare(&mut self, frame: &mut [u8], header: &Header) -> Option<usize> {
        self.emit(frame, header, 0, |_, crc| Ok::<_, core::convert::Infallible>(crc))
    }
}

/// Where packet number `packet` of `packets` stands in its message.
pub(crate) const fn position(packet: u32, packets: u32) -> Position {
    match (packet == 0, packet + 1 == packets) {
        (true, true) => Position::Only,
        (true, false) => Position::First,
        (false, false) => Position::Middle,
        (false, true) => Position::Last,
    }
}

/// Whether the low 15 bits agree with our P_Key, which is a full member (IBTA, P_Key matching).
pub(crate) const fn pkey_matches(pkey: u16) -> bool {
    pkey & 0x7FFF == PKEY & 0x7FFF
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_follow_the_packet_number() {
        assert_eq!(position(0, 1), Position::Only);
        assert_eq!(position(0, 3), Position::First);
        assert_eq!(position(1, 3), Position::Middle);
        assert_eq!(position(2, 3), Position::Last);
    }

    #[test]
    fn limited_members_of_the_default_partition_match() {
        assert!(pkey_matches(0xFFFF) && pkey_matches(0x7FFF));
        assert!(!pkey_matches(0x8001) && !pkey_matches(0));
    }
}
