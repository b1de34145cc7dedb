//! The messages of one connection, sorted out of a capture.

use std::net::IpAddr;

use uroce_pcap_tests::Set;
use uroce_stack::wire::cm::{CmMad, CmMessage, Rep, Req};

use crate::mads::mads;

/// Which side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Active,
    Passive,
}

/// A message, and who said it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said {
    pub(crate) by: Side,
    pub(crate) mad: CmMad,
}

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) name: String,
    pub(crate) active: IpAddr,
    pub(crate) passive: IpAddr,
    pub(crate) said: Vec<Said>,
}

impl Session {
    /// Every connection in a capture.
    pub(crate) fn all(set: Set, name: &str) -> Vec<Self> {
        let mads = mads(set, name);
        let parsed: Vec<_> = mads
            .iter()
            .map(|mad| (mad.source, mad.destination, CmMad::parse(&mad.bytes).expect("a message")))
            .collect();
        let begins = parsed.iter().filter_map(|&(source, destination, mad)| match mad.message {
            CmMessage::Req(req) => Some((source, destination, req.local_comm_id)),
            CmMessage::SidrReq(req) => Some((source, destination, req.request_id)),
            _ => None,
        });
        let session = |(active, passive, id)| {
            let of_it = parsed.iter().filter(|(_, _, mad)| names(&mad.message, id));
            let by = |source| if source == active { Side::Active } else { Side::Passive };
            let said = of_it.map(|&(source, _, mad)| Said { by: by(source), mad }).collect();
            Self { name: format!("{name} {id:#x}"), active, passive, said }
        };
        begins.map(session).collect()
    }

    pub(crate) fn address(&self, side: Side) -> IpAddr {
        if side == Side::Active { self.active } else { self.passive }
    }

    pub(crate) fn req(&self) -> Option<Req> {
        self.said.iter().find_map(|said| match said.mad.message {
            CmMessage::Req(req) => Some(req),
            _ => None,
        })
    }

    pub(crate) fn rep(&self) -> Option<Rep> {
        self.said.iter().find_map(|said| match said.mad.message {
            CmMessage::Rep(rep) => Some(rep),
            _ => None,
        })
    }
}

impl Side {
    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Active => Self::Passive,
            Self::Passive => Self::Active,
        }
    }
}

/// Whether a message is about the connection that its active side calls `id`.
fn names(message: &CmMessage, id: u32) -> bool {
    let mut message = *message;
    ids(&mut message).into_iter().flatten().any(|named| *named == id)
}

/// The identifiers in a message: the sender's and the receiver's.
pub(crate) fn ids(message: &mut CmMessage) -> [Option<&mut u32>; 2] {
    match message {
        CmMessage::Req(m) => [Some(&mut m.local_comm_id), None],
        CmMessage::Mra(m) => [Some(&mut m.local_comm_id), Some(&mut m.remote_comm_id)],
        CmMessage::Rej(m) => [Some(&mut m.local_comm_id), Some(&mut m.remote_comm_id)],
        CmMessage::Rep(m) => [Some(&mut m.local_comm_id), Some(&mut m.remote_comm_id)],
        CmMessage::Rtu(m) => [Some(&mut m.local_comm_id), Some(&mut m.remote_comm_id)],
        CmMessage::Dreq(m) => [Some(&mut m.local_comm_id), Some(&mut m.remote_comm_id)],
        CmMessage::Drep(m) => [Some(&mut m.local_comm_id), Some(&mut m.remote_comm_id)],
        CmMessage::SidrReq(m) => [Some(&mut m.request_id), None],
        CmMessage::SidrRep(m) => [None, Some(&mut m.request_id)],
    }
}
