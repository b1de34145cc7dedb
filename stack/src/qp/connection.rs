//! What requester and responder of a queue pair share: who they are, and how their packets are written.

use super::attr::{GSI_QKEY, QpAttr, QpInit, QpType};
use crate::access::Access;
use crate::engine::Pd;
use crate::memory::{Crc, Subject};
use crate::queue::Datagram;
use crate::wire::{
    Aeth, Bth, Class, Deth, Mtu, Operation, Path, Position, Psn, Qpn, Template, double_icrc, emit,
};

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
    /// The path MTU; of datagrams the MTU of the port.
    pub(crate) mtu: Mtu,
    /// Lets datagrams in.
    pub(crate) qkey: u32,
    /// FLUSH goes to a peer that checks its ICRC as rdma_rxe does.
    rxe_flush_icrc: bool,
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
    /// The shared receive queue that a request of XRC is for.
    pub(crate) srqn: Option<u32>,
}

impl Header {
    /// A response: asks for nothing.
    pub(crate) const fn response(psn: Psn, operation: Operation) -> Self {
        Self { psn, operation, ack_request: false, solicited: false, srqn: None }
    }

    pub(crate) const fn acknowledge(psn: Psn, aeth: Aeth) -> Self {
        Self::response(psn, Operation::Acknowledge(aeth))
    }
}

impl Connection {
    pub(crate) fn new(number: Qpn, pd: Pd, init: QpInit, ident: u16, port: &Port) -> Self {
        Self {
            number,
            pd,
            init,
            access: Access::empty(),
            peer: Qpn::default(),
            mtu: if init.qp_type.is_datagram() { port.mtu } else { Mtu::B256 },
            qkey: if init.qp_type == QpType::Gsi { GSI_QKEY } else { 0 },
            rxe_flush_icrc: port.rxe_flush_icrc,
            ident,
            path: None,
        }
    }

    /// Who asks, when a packet of the connection names memory.
    pub(crate) const fn subject(&self) -> Subject {
        Subject { pd: self.pd, qp: self.number }
    }

    pub(crate) fn apply(&mut self, attr: &QpAttr) {
        self.access = attr.access.unwrap_or(self.access);
        self.peer = attr.dest_qpn.unwrap_or(self.peer);
        self.set_qkey(attr.qkey);
        self.mtu = attr.path_mtu.unwrap_or(self.mtu);
        if let Some(path) = &attr.path {
            self.path = Template::new(path).ok().map(|template| (*path, template));
        }
    }

    /// Queue pair 1 has the Q_Key that everybody knows.
    fn set_qkey(&mut self, qkey: Option<u32>) {
        if self.init.qp_type != QpType::Gsi {
            self.qkey = qkey.unwrap_or(self.qkey);
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

    /// Writes a packet to the peer into `frame`; `fill` writes its payload and runs the CRC on.
    ///
    /// `None` when there is no path yet, or when `fill` fails: then the frame must not leave.
    #[inline]
    pub(crate) fn emit<E>(
        &mut self,
        frame: &mut [u8],
        header: &Header,
        payload_len: usize,
        fill: impl FnOnce(&mut [u8], Crc) -> Result<Crc, E>,
    ) -> Option<usize> {
        self.ident = self.ident.checked_add(1).unwrap_or(1);
        let (_, template) = self.path.as_ref()?;
        let class = match self.init.qp_type {
            QpType::Rc => Class::Rc,
            QpType::Uc => Class::Uc,
            QpType::XrcIni | QpType::XrcTgt => Class::Xrc { srqn: header.srqn },
            QpType::Ud | QpType::Gsi => return None,
        };
        write(frame, template, self.ident, self.peer, &class, header, payload_len, fill)
    }

    /// Writes a datagram into `frame`, as [`emit`](Self::emit) does.
    pub(crate) fn emit_datagram<E>(
        &mut self,
        frame: &mut [u8],
        header: &Header,
        to: &Datagram,
        payload_len: usize,
        fill: impl FnOnce(&mut [u8], Crc) -> Result<Crc, E>,
    ) -> Option<usize> {
        self.ident = self.ident.checked_add(1).unwrap_or(1);
        let class = Class::Ud(Deth { qkey: self.qkey_for(to.qkey), source_qp: self.number });
        write(frame, &to.template, self.ident, to.qpn, &class, header, payload_len, fill)
    }

    /// A Q_Key with the highest bit set stands for the sender's own (IBTA, Q_Key).
    const fn qkey_for(&self, asked: u32) -> u32 {
        if asked >> 31 == 1 { self.qkey } else { asked }
    }

    /// Writes a packet without payload.
    pub(crate) fn emit_bare(&mut self, frame: &mut [u8], header: &Header) -> Option<usize> {
        let len = self.emit(frame, header, 0, |_, crc| Ok::<_, core::convert::Infallible>(crc))?;
        if self.rxe_flush_icrc && matches!(header.operation, Operation::Flush { .. }) {
            double_icrc(&mut frame[..len]);
        }
        Some(len)
    }
}

/// What every queue pair of a port shares.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub(crate) mtu: Mtu,
    pub(crate) rxe_flush_icrc: bool,
    pub(crate) controlled_qkeys: bool,
}

#[expect(clippy::too_many_arguments, reason = "the parts of a frame; bundling them would copy them")]
#[inline(always)]
fn write<E>(
    frame: &mut [u8],
    template: &Template,
    ident: u16,
    dest_qp: Qpn,
    class: &Class,
    header: &Header,
    payload_len: usize,
    fill: impl FnOnce(&mut [u8], Crc) -> Result<Crc, E>,
) -> Option<usize> {
    let opcode = header.operation.opcode(class.service())?;
    let bth = Bth {
        solicited: header.solicited,
        migrated: true,
        pkey: PKEY,
        dest_qp,
        ack_request: header.ack_request,
        psn: header.psn,
        ..Bth::default()
    };
    emit(frame, template, ident, &bth, opcode, class, &header.operation, payload_len, fill).ok()
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
