//! The messages of connection management, each in its datagram.

use super::fields::Body;
use super::{Drep, Dreq, Mra, Rej, Rep, Req, Rtu, SidrRep, SidrReq};
use crate::wire::mad::{MAD_LEN, MadHeader, MadRefused};

/// Declares the messages with their attributes.
macro_rules! messages {
    ($($(#[$doc:meta])* $variant:ident($type:ident) = $attribute:literal,)+) => {
        /// The kinds of messages.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum CmKind {
            $($(#[$doc])* $variant,)+
        }

        impl CmKind {
            /// Every kind, in the order of the attributes.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The attribute identifier on the wire.
            #[must_use]
            pub const fn attribute_id(self) -> u16 {
                match self {
                    $(Self::$variant => $attribute,)+
                }
            }
        }

        /// A message of connection management.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum CmMessage {
            $($(#[$doc])* $variant($type),)+
        }

        impl CmMessage {
            /// What kind of message it is.
            #[must_use]
            pub const fn kind(&self) -> CmKind {
                match self {
                    $(Self::$variant(_) => CmKind::$variant,)+
                }
            }

            fn parse(kind: CmKind, body: &Body) -> Self {
                match kind {
                    $(CmKind::$variant => Self::$variant($type::parse(body)),)+
                }
            }

            fn emit(&self, body: &mut Body) {
                match self {
                    $(Self::$variant(message) => message.emit(body),)+
                }
            }
        }
    };
}

messages! {
    /// A connection is asked for.
    Req(Req) = 0x10,
    /// The answer takes its time.
    Mra(Mra) = 0x11,
    /// The connection is refused, or given up.
    Rej(Rej) = 0x12,
    /// The connection is granted.
    Rep(Rep) = 0x13,
    /// The connection is in use.
    Rtu(Rtu) = 0x14,
    /// The connection is to end.
    Dreq(Dreq) = 0x15,
    /// The connection has ended.
    Drep(Drep) = 0x16,
    /// A queue pair for datagrams is asked for.
    SidrReq(SidrReq) = 0x17,
    /// The queue pair for datagrams.
    SidrRep(SidrRep) = 0x18,
}

/// Attributes of messages about alternate paths: LAP and APR.
const ALTERNATE_PATH: core::ops::RangeInclusive<u16> = 0x19..=0x1a;

/// A message, and what its header says beside its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CmMad {
    /// Chosen by whoever begins an exchange; answers repeat it.
    pub transaction_id: u64,
    /// 0, or in REQ and REP what vendors agree about their connection (ECE).
    pub attribute_modifier: u32,
    /// The message.
    pub message: CmMessage,
}

impl CmMad {
    /// The message in a management datagram.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub fn parse(mad: &[u8]) -> Result<Self, MadRefused> {
        let mad: &[u8; MAD_LEN] = mad.try_into().map_err(|_| MadRefused::Length)?;
        let (header, body) = mad.split_first_chunk().ok_or(MadRefused::Length)?;
        let body = body.try_into().map_err(|_| MadRefused::Length)?;
        let MadHeader { transaction_id, attribute_id, attribute_modifier } = MadHeader::parse(header)?;
        let kind = kind(attribute_id)?;
        Ok(Self { transaction_id, attribute_modifier, message: CmMessage::parse(kind, body) })
    }

    /// The datagram of the message.
    #[must_use]
    pub fn emit(&self) -> [u8; MAD_LEN] {
        let (transaction_id, attribute_modifier) = (self.transaction_id, self.attribute_modifier);
        let attribute_id = self.message.kind().attribute_id();
        let header = MadHeader { transaction_id, attribute_id, attribute_modifier };
        let mut mad = [0; MAD_LEN];
        mad[..MadHeader::LEN].copy_from_slice(&header.emit());
        let mut body: Body = [0; _];
        self.message.emit(&mut body);
        mad[MadHeader::LEN..].copy_from_slice(&body);
        mad
    }
}

fn kind(attribute_id: u16) -> Result<CmKind, MadRefused> {
    if ALTERNATE_PATH.contains(&attribute_id) {
        return Err(MadRefused::AlternatePath);
    }
    let known = CmKind::ALL.iter().find(|kind| kind.attribute_id() == attribute_id);
    known.copied().ok_or(MadRefused::Attribute)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// Whatever a peer puts behind the header of each kind of message.
    fn datagram() -> impl Strategy<Value = Vec<u8>> {
        (0x10u8..0x19, proptest::collection::vec(any::<u8>(), MAD_LEN)).prop_map(|(attribute, mut mad)| {
            mad[..8].copy_from_slice(&[1, 7, 2, 3, 0, 0, 0, 0]);
            mad[16..20].copy_from_slice(&[0, attribute, 0, 0]);
            mad
        })
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_and_read_again(mad in datagram()) {
            let read = CmMad::parse(&mad).unwrap();
            prop_assert_eq!(CmMad::parse(&read.emit()), Ok(read));
        }

        #[test]
        fn no_bytes_panic(mad in proptest::collection::vec(any::<u8>(), 0..300)) {
            let read = CmMad::parse(&mad);
            prop_assert_eq!(read == Err(MadRefused::Length), mad.len() != MAD_LEN);
        }
    }

    #[test]
    fn attributes_and_lengths_are_refused_by_name() {
        let mut mad = [0; MAD_LEN];
        mad[..4].copy_from_slice(&[1, 7, 2, 3]);
        for attribute in 0..=0xff {
            mad[17] = attribute;
            let expected = match attribute {
                0x10..=0x18 => None,
                0x19 | 0x1a => Some(MadRefused::AlternatePath),
                _ => Some(MadRefused::Attribute),
            };
            assert_eq!(CmMad::parse(&mad).err(), expected, "{attribute:#x}");
        }
        mad[17] = 0x10;
        assert_eq!(CmMad::parse(&mad[1..]), Err(MadRefused::Length));
        assert_eq!(CmMad::parse(&[&mad[..], &[0]].concat()), Err(MadRefused::Length));
    }
}
