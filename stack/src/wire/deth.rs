//! The datagram extended header (protocol section 2.3).

use super::Qpn;
use super::bytes::{be24, be32};

/// Who sent a datagram, and the key that lets it in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deth {
    /// Queue key.
    pub qkey: u32,
    /// The sender's queue pair.
    pub source_qp: Qpn,
}

impl Deth {
    /// Length on the wire in bytes.
    pub const LEN: usize = 8;

    #[inline]
    pub(super) fn parse(bytes: &[u8; Self::LEN]) -> Self {
        Self { qkey: be32(bytes, 0), source_qp: Qpn::new(be24(bytes, 5)) }
    }

    #[inline]
    pub(super) fn emit(&self) -> [u8; Self::LEN] {
        (u64::from(self.qkey) << 32 | u64::from(self.source_qp.get())).to_be_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips() {
        let deth = Deth { qkey: 0x8001_0000, source_qp: Qpn::GSI };
        assert_eq!(deth.emit(), [0x80, 1, 0, 0, 0, 0, 0, 1]);
        assert_eq!(Deth::parse(&deth.emit()), deth);
    }

    #[test]
    fn reserved_byte_is_ignored() {
        assert_eq!(Deth::parse(&[0, 0, 0, 1, 0xff, 0, 0, 2]).source_qp, Qpn::new(2));
    }
}
