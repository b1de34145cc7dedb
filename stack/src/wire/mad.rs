//! The management datagram (protocol section 6.1; IBTA volume 1, 13.4).

use super::bytes::{be16, be32, be64};

/// The header that every management datagram begins with, as far as it carries a choice of the sender.
///
/// Status, the class specific word and the reserved word are 0 in every datagram of connection management: they are
/// sent as 0 and ignored on receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadHeader {
    /// Chosen by whoever begins an exchange; answers repeat it.
    pub transaction_id: u64,
    /// What kind of message follows.
    pub attribute_id: u16,
    /// 0, or in REQ and REP what vendors agree about their connection (ECE).
    pub attribute_modifier: u32,
}

/// Why a datagram is no message of connection management. Nothing is ever sent in answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum MadRefused {
    /// Not 256 bytes long.
    #[error("a management datagram has 256 bytes, this one has not")]
    Length,
    /// The base version is not 1.
    #[error("the base version of the management datagram is not 1")]
    BaseVersion,
    /// Another management class than communication management.
    #[error("the management class is not communication management")]
    Class,
    /// The class version is not 2.
    #[error("the class version of communication management is not 2")]
    ClassVersion,
    /// The method is not Send.
    #[error("the method is not Send, the only one of communication management")]
    Method,
    /// LAP or APR: alternate paths do not exist over RoCE.
    #[error("an alternate path is loaded, which does not exist over RoCE")]
    AlternatePath,
    /// No message of connection management has this attribute.
    #[error("the attribute is none of communication management")]
    Attribute,
}

/// Bytes of a management datagram.
pub const MAD_LEN: usize = 256;

const BASE_VERSION: u8 = 1;
const CLASS: u8 = 7;
const CLASS_VERSION: u8 = 2;
const METHOD_SEND: u8 = 3;

impl MadHeader {
    /// Length on the wire in bytes.
    pub const LEN: usize = 24;

    pub(super) fn parse(bytes: &[u8; Self::LEN]) -> Result<Self, MadRefused> {
        let checks = [
            (bytes[0] == BASE_VERSION, MadRefused::BaseVersion),
            (bytes[1] == CLASS, MadRefused::Class),
            (bytes[2] == CLASS_VERSION, MadRefused::ClassVersion),
            (bytes[3] == METHOD_SEND, MadRefused::Method),
        ];
        if let Some((_, reason)) = checks.into_iter().find(|(passed, _)| !passed) {
            return Err(reason);
        }
        Ok(Self {
            transaction_id: be64(bytes, 8),
            attribute_id: be16(bytes, 16),
            attribute_modifier: be32(bytes, 20),
        })
    }

    pub(super) fn emit(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..4].copy_from_slice(&[BASE_VERSION, CLASS, CLASS_VERSION, METHOD_SEND]);
        bytes[8..16].copy_from_slice(&self.transaction_id.to_be_bytes());
        bytes[16..18].copy_from_slice(&self.attribute_id.to_be_bytes());
        bytes[20..].copy_from_slice(&self.attribute_modifier.to_be_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: MadHeader =
        MadHeader { transaction_id: 0x2_b937_48c5, attribute_id: 0x10, attribute_modifier: 7 };

    #[test]
    fn round_trips() {
        let bytes = HEADER.emit();
        assert_eq!(bytes[..16], [1, 7, 2, 3, 0, 0, 0, 0, 0, 0, 0, 2, 0xb9, 0x37, 0x48, 0xc5]);
        assert_eq!(MadHeader::parse(&bytes), Ok(HEADER));
    }

    #[test]
    fn each_wrong_byte_has_its_name() {
        let refused = [
            (0, MadRefused::BaseVersion),
            (1, MadRefused::Class),
            (2, MadRefused::ClassVersion),
            (3, MadRefused::Method),
        ];
        for (at, reason) in refused {
            let mut bytes = HEADER.emit();
            bytes[at] ^= 0x80;
            assert_eq!(MadHeader::parse(&bytes), Err(reason));
        }
    }
}
