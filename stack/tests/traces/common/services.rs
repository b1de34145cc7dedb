//! Packets of other services than RC, and what datagrams are addressed with.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::*;

pub const HOST_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xFD00, 0, 0, 0, 0, 0, 0, 1));
pub const PEER_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xFD00, 0, 0, 0, 0, 0, 0, 2));
/// A multicast group.
pub const GROUP: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 1, 2, 3));
/// The Q_Key of datagram queue pairs.
pub const QKEY: u32 = 0x1111_1111;

impl Pkt {
    /// Of an unreliable connection.
    pub fn uc(self) -> Self {
        self.class(Class::Uc)
    }

    /// A datagram of the peer's queue pair, or to it.
    pub fn ud(self, qkey: u32, source_qp: Qpn) -> Self {
        self.class(Class::Ud(Deth { qkey, source_qp }))
    }

    /// A request of XRC for this shared receive queue.
    pub fn xrc(self, srqn: u32) -> Self {
        self.class(Class::Xrc { srqn: Some(srqn) })
    }

    /// A response of XRC, which names no queue.
    pub fn xrc_response(self) -> Self {
        self.class(Class::Xrc { srqn: None })
    }

    /// It goes to another queue pair number.
    pub fn number(self, qpn: Qpn) -> Self {
        Self { dest_qp: Some(qpn), ..self }
    }
}

/// A datagram of the peer.
pub fn datagram(psn: u32, payload: &[u8]) -> Pkt {
    send(Position::Only, psn, payload).ud(QKEY, PEER_QPN)
}

/// The packets of a message in an MTU of 1024 bytes; `packet` makes each from its position, PSN and bytes.
pub fn packets(psn: u32, bytes: &[u8], packet: impl Fn(Position, u32, &[u8]) -> Pkt) -> Vec<Pkt> {
    let count = bytes.len().div_ceil(1024).max(1);
    let one = |number: usize| {
        let position = match (number == 0, number + 1 == count) {
            (true, true) => Position::Only,
            (true, false) => Position::First,
            (false, false) => Position::Middle,
            (false, true) => Position::Last,
        };
        let end = bytes.len().min((number + 1) * 1024);
        packet(position, psn + number as u32, &bytes[number * 1024..end])
    };
    (0..count).map(one).collect()
}

/// A SEND in packets; the immediate is in the last.
pub fn send_message(psn: u32, bytes: &[u8], immediate: Option<u32>) -> Vec<Pkt> {
    with_immediate(packets(psn, bytes, send), immediate)
}

/// A WRITE in packets.
pub fn write_message(psn: u32, remote: RemoteAddr, bytes: &[u8], immediate: Option<u32>) -> Vec<Pkt> {
    let packet = |position: Position, psn, part: &[u8]| {
        if position.is_start() {
            write(position, psn, remote, bytes.len() as u32, part)
        } else {
            write_more(position, psn, part)
        }
    };
    with_immediate(packets(psn, bytes, packet), immediate)
}

fn with_immediate(mut packets: Vec<Pkt>, immediate: Option<u32>) -> Vec<Pkt> {
    if let Some(value) = immediate {
        let last = packets.pop().expect("a message has a packet");
        packets.push(last.imm(value));
    }
    packets
}

/// All of one service.
pub fn each(packets: Vec<Pkt>, service: impl Fn(Pkt) -> Pkt) -> Vec<Pkt> {
    packets.into_iter().map(service).collect()
}

/// Lengths around the MTU, with every number of pad bytes.
pub const LENGTHS: [usize; 15] = [0, 1, 2, 3, 4, 5, 1023, 1024, 1025, 1026, 1027, 2047, 2048, 2049, 3073];

impl Host {
    /// The way to an address, from ours of the same family.
    pub fn handle(&self, destination: IpAddr) -> AddressHandle {
        let source = if destination.is_ipv4() { HOST } else { HOST_V6 };
        AddressHandle::new(self.pd, &path(source, destination)).expect("of one family")
    }

    /// Posts a datagram of the first `length` bytes to the peer.
    pub fn post_datagram(&mut self, wr_id: u64, length: u32) {
        self.post_datagram_to(wr_id, length, PEER, PEER_QPN, QKEY);
    }

    pub fn post_datagram_to(&mut self, wr_id: u64, length: u32, to: IpAddr, qpn: Qpn, qkey: u32) {
        let (ah, sges) = (self.handle(to), [self.sge(0, length)]);
        let to = Recipient::Datagram { ah: &ah, qpn, qkey };
        self.try_post_to(wr_id, &sges, to).expect("the request is accepted");
    }

    /// Tries to post a SEND to anybody.
    pub fn try_post_to(&mut self, wr_id: u64, sges: &[Sge], to: Recipient<'_>) -> Result<(), PostError> {
        let op = SendOp::Send { immediate: None };
        self.try_post(&SendWr { wr_id, op, flags: SendFlags::empty(), data: Gather::Sges(sges), to })
    }

    /// Attributes as the engine tells them.
    pub fn attr(&self) -> QpAttr {
        self.engine.query_qp(self.qpn).expect("the queue pair exists").0
    }
}
