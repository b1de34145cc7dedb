//! The flush extended header (protocol section 2.3).

/// What a FLUSH makes durable or visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feth {
    /// Placement type, 4 bits: bit 0 global visibility, bit 1 persistence.
    pub placement: u8,
    /// Selectivity, 2 bits: 0 a memory range, 1 the whole region.
    pub selectivity: u8,
}

impl Feth {
    /// Length on the wire in bytes.
    pub const LEN: usize = 4;

    /// In [`placement`](Self::placement): visible to everybody.
    pub const GLOBAL: u8 = 1;
    /// In [`placement`](Self::placement): kept when power is lost.
    pub const PERSISTENT: u8 = 2;
    /// In [`selectivity`](Self::selectivity): the range that the RETH names.
    pub const RANGE: u8 = 0;
    /// In [`selectivity`](Self::selectivity): the whole region.
    pub const REGION: u8 = 1;

    #[inline]
    pub(super) fn parse(bytes: &[u8; Self::LEN]) -> Self {
        Self { placement: bytes[3] & 0xf, selectivity: bytes[3] >> 4 & 3 }
    }

    #[inline]
    pub(super) fn emit(&self) -> [u8; Self::LEN] {
        [0, 0, 0, (self.selectivity & 3) << 4 | self.placement & 0xf]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips() {
        let feth = Feth { placement: 2, selectivity: 1 };
        assert_eq!(feth.emit(), [0, 0, 0, 0x12]);
        assert_eq!(Feth::parse(&feth.emit()), feth);
    }

    #[test]
    fn reserved_bits_are_ignored() {
        assert_eq!(Feth::parse(&[0xff, 0xff, 0xff, 0xc0]), Feth { placement: 0, selectivity: 0 });
    }
}
