//! The atomic extended header and the answer's (protocol section 2.3).

use super::bytes::{be32, be64};

/// The header of COMPARE SWAP and FETCH ADD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomicEth {
    /// The 8-byte word, in the address space of the region.
    pub va: u64,
    /// Remote key.
    pub rkey: u32,
    /// What to store, or what to add.
    pub swap_or_add: u64,
    /// What the word must hold for the swap to happen; a FETCH ADD sends 0 and ignores it.
    pub compare: u64,
}

impl AtomicEth {
    /// Length on the wire in bytes.
    pub const LEN: usize = 28;

    #[inline]
    pub(super) fn parse(bytes: &[u8; Self::LEN]) -> Self {
        Self {
            va: be64(bytes, 0),
            rkey: be32(bytes, 8),
            swap_or_add: be64(bytes, 12),
            compare: be64(bytes, 20),
        }
    }

    #[inline]
    pub(super) fn emit(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..8].copy_from_slice(&self.va.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.rkey.to_be_bytes());
        bytes[12..20].copy_from_slice(&self.swap_or_add.to_be_bytes());
        bytes[20..].copy_from_slice(&self.compare.to_be_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips() {
        let header = AtomicEth { va: 1 << 63 | 8, rkey: 0x0102_0304, swap_or_add: 5, compare: u64::MAX };
        let bytes = header.emit();
        assert_eq!(bytes[..12], [0x80, 0, 0, 0, 0, 0, 0, 8, 1, 2, 3, 4]);
        assert_eq!(bytes[12..20], [0, 0, 0, 0, 0, 0, 0, 5]);
        assert_eq!(AtomicEth::parse(&bytes), header);
    }
}
