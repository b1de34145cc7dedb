//! The RDMA extended header (protocol section 2.3).

use super::bytes::{be32, be64};

/// Where remote memory lies: the header of WRITE, READ, FLUSH and ATOMIC WRITE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reth {
    /// First byte, in the address space of the region.
    pub va: u64,
    /// Remote key.
    pub rkey: u32,
    /// Length of the whole message in bytes.
    pub length: u32,
}

impl Reth {
    /// Length on the wire in bytes.
    pub const LEN: usize = 16;

    #[inline]
    pub(super) fn parse(bytes: &[u8; Self::LEN]) -> Self {
        Self { va: be64(bytes, 0), rkey: be32(bytes, 8), length: be32(bytes, 12) }
    }

    #[inline]
    pub(super) fn emit(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..8].copy_from_slice(&self.va.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.rkey.to_be_bytes());
        bytes[12..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips() {
        let reth = Reth { va: 0x7fee_260f_b000_0000, rkey: 0x2b8, length: u32::MAX };
        let bytes = reth.emit();
        assert_eq!(bytes, [0x7f, 0xee, 0x26, 0x0f, 0xb0, 0, 0, 0, 0, 0, 2, 0xb8, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(Reth::parse(&bytes), reth);
    }
}
