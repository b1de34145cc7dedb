//! Packets as the traces write them: made by the peer, or sent by the engine, in one form.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use uroce_stack::RemoteAddr;
use uroce_stack::wire::{
    Aeth, AtomicEth, Bth, Class, MAX_HEADER, MacAddr, NakCode, Operation, Packet, Path, Position, Psn, Qpn,
    Reth, Syndrome, Template, emit,
};

pub const HOST: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
pub const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
/// Neither of the two.
pub const STRANGER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3));
/// The peer's queue pair.
pub const PEER_QPN: Qpn = Qpn::new(0x4321);

/// One packet, without what is the same in every packet of the connection.
#[derive(Clone, PartialEq, Eq)]
pub struct Pkt {
    pub psn: u32,
    pub operation: Operation,
    pub payload: Vec<u8>,
    pub ack_request: bool,
    pub solicited: bool,
    pub source: IpAddr,
    pub destination: IpAddr,
    pub pkey: u16,
    pub class: Class,
    /// Somebody else's number, where it is not the receiver's.
    pub dest_qp: Option<Qpn>,
}

impl Pkt {
    pub fn new(psn: u32, operation: Operation, payload: &[u8]) -> Self {
        Self {
            psn: Psn::new(psn).get(),
            operation,
            payload: payload.to_vec(),
            ack_request: false,
            solicited: false,
            source: PEER,
            destination: HOST,
            pkey: 0xFFFF,
            class: Class::Rc,
            dest_qp: None,
        }
    }

    /// What a parsed frame of the engine says.
    pub fn parsed(packet: &Packet<'_>) -> Self {
        let way = (packet.ip.source, packet.ip.destination);
        assert!(way == (HOST, PEER) || matches!(packet.class, Class::Ud(_)), "only datagrams leave the path");
        assert_eq!(packet.bth.pkey, 0xFFFF);
        assert!(
            packet.bth.migrated && (way.0.is_ipv6() || packet.ip.dont_fragment && packet.ip.ident != 0),
            "section 9.3, 1 and 2"
        );
        assert!(
            packet.pad.as_slice().iter().all(|byte| *byte == 0),
            "section 4.1: pad bytes are zero on send"
        );
        assert_eq!((packet.payload.len() + packet.pad.len()) % 4, 0, "C01");
        let payload: Vec<u8> = packet.payload.bytes().collect();
        let mut pkt = Self::new(packet.bth.psn.get(), packet.operation, &payload);
        (pkt.ack_request, pkt.solicited) = (packet.bth.ack_request, packet.bth.solicited);
        pkt.dest_qp = Some(packet.bth.dest_qp).filter(|qpn| *qpn != PEER_QPN);
        pkt.class = packet.class;
        if way != (HOST, PEER) {
            (pkt.source, pkt.destination) = way;
        }
        pkt
    }

    /// The frame of the peer that carries it to the queue pair `to`.
    pub fn frame(&self, to: Qpn) -> Vec<u8> {
        self.frame_along(&self.path(), to)
    }

    /// The same along another path.
    pub fn frame_along(&self, path: &Path, to: Qpn) -> Vec<u8> {
        let template = Template::new(path).expect("addresses of one family");
        let bth = Bth {
            pkey: self.pkey,
            solicited: self.solicited,
            ack_request: self.ack_request,
            ..Bth::new(self.dest_qp.unwrap_or(to), Psn::new(self.psn))
        };
        let opcode =
            self.operation.opcode(self.class.service()).expect("the trace names a packet that exists");
        let mut frame = vec![0; MAX_HEADER + self.payload.len()];
        let fill = |out: &mut [u8], crc: uroce_stack::memory::Crc| {
            out.copy_from_slice(&self.payload);
            Ok::<_, std::convert::Infallible>(crc.update(out))
        };
        let len = self.payload.len();
        let Ok(len) = emit(&mut frame, &template, 1, &bth, opcode, &self.class, &self.operation, len, fill);
        frame.truncate(len);
        frame
    }

    pub fn path(&self) -> Path {
        Path {
            source_mac: MacAddr([2, 0, 0, 0, 0, 2]),
            destination_mac: MacAddr([2, 0, 0, 0, 0, 1]),
            vlan: None,
            source: self.source,
            destination: self.destination,
            source_port: 0xC123,
            traffic_class: 0,
            hop_limit: 64,
            flow_label: 0,
        }
    }

    /// Asks for an acknowledgement.
    pub fn ack_req(mut self) -> Self {
        self.ack_request = true;
        self
    }

    pub fn solicited(mut self) -> Self {
        self.solicited = true;
        self
    }

    pub fn from(mut self, source: IpAddr) -> Self {
        self.source = source;
        self
    }

    pub fn to(mut self, destination: IpAddr) -> Self {
        self.destination = destination;
        self
    }

    pub fn pkey(mut self, pkey: u16) -> Self {
        self.pkey = pkey;
        self
    }

    pub fn class(mut self, class: Class) -> Self {
        self.class = class;
        self
    }

    pub fn imm(mut self, value: u32) -> Self {
        match &mut self.operation {
            Operation::Send { immediate, .. } | Operation::Write { immediate, .. } => {
                *immediate = Some(value);
            }
            other => panic!("{other:?} carries no immediate"),
        }
        self
    }
}

impl fmt::Debug for Pkt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n  psn {} {:?}", self.psn, self.operation)?;
        if self.ack_request {
            write!(f, " AckReq")?;
        }
        if self.solicited {
            write!(f, " SE")?;
        }
        let shown = &self.payload[..self.payload.len().min(8)];
        write!(f, " {} bytes {shown:02x?}", self.payload.len())
    }
}

/// A packet of a SEND.
pub fn send(position: Position, psn: u32, payload: &[u8]) -> Pkt {
    Pkt::new(psn, Operation::Send { position, immediate: None, invalidate: None }, payload)
}

/// The packet that opens a WRITE of `length` bytes.
pub fn write(position: Position, psn: u32, remote: RemoteAddr, length: u32, payload: &[u8]) -> Pkt {
    let reth = Some(reth(remote, length));
    Pkt::new(psn, Operation::Write { position, reth, immediate: None }, payload)
}

/// A packet that continues a WRITE.
pub fn write_more(position: Position, psn: u32, payload: &[u8]) -> Pkt {
    Pkt::new(psn, Operation::Write { position, reth: None, immediate: None }, payload)
}

pub fn read(psn: u32, remote: RemoteAddr, length: u32) -> Pkt {
    Pkt::new(psn, Operation::ReadRequest(reth(remote, length)), &[])
}

pub fn compare_swap(psn: u32, remote: RemoteAddr, compare: u64, swap: u64) -> Pkt {
    let eth = AtomicEth { va: remote.va, rkey: remote.rkey, swap_or_add: swap, compare };
    Pkt::new(psn, Operation::CompareSwap(eth), &[])
}

pub fn fetch_add(psn: u32, remote: RemoteAddr, add: u64) -> Pkt {
    let eth = AtomicEth { va: remote.va, rkey: remote.rkey, swap_or_add: add, compare: 0 };
    Pkt::new(psn, Operation::FetchAdd(eth), &[])
}

pub fn ack(psn: u32, msn: u32) -> Pkt {
    acknowledge(psn, Syndrome::UNLIMITED, msn)
}

pub fn nak(psn: u32, code: NakCode, msn: u32) -> Pkt {
    acknowledge(psn, Syndrome::Nak(code), msn)
}

pub fn rnr(psn: u32, timer: u8, msn: u32) -> Pkt {
    acknowledge(psn, Syndrome::Rnr { timer }, msn)
}

pub fn acknowledge(psn: u32, syndrome: Syndrome, msn: u32) -> Pkt {
    Pkt::new(psn, Operation::Acknowledge(Aeth { syndrome, msn }), &[])
}

/// A response to a READ; all but MIDDLE carry an AETH.
pub fn read_response(position: Position, psn: u32, msn: u32, payload: &[u8]) -> Pkt {
    let aeth = (position != Position::Middle).then_some(Aeth { syndrome: Syndrome::UNLIMITED, msn });
    Pkt::new(psn, Operation::ReadResponse { position, aeth }, payload)
}

pub fn atomic_ack(psn: u32, msn: u32, original: u64) -> Pkt {
    let aeth = Aeth { syndrome: Syndrome::UNLIMITED, msn };
    Pkt::new(psn, Operation::AtomicAcknowledge { aeth, original }, &[])
}

pub const fn reth(remote: RemoteAddr, length: u32) -> Reth {
    Reth { va: remote.va, rkey: remote.rkey, length }
}
