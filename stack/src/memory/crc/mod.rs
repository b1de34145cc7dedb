//! The CRC-32 of Ethernet, which is also that of the ICRC (polynomial 0x04C11DB7, bits reflected).

#[cfg(target_arch = "x86_64")]
mod fold;
#[cfg(target_arch = "x86_64")]
mod fold128;
#[cfg(target_arch = "x86_64")]
mod fold256;
#[cfg(target_arch = "x86_64")]
mod fold512;
mod kernel;
mod pass;
mod portable;
#[cfg(target_arch = "x86_64")]
mod sparse;

#[cfg(test)]
mod tests;

pub(super) use kernel::Kernel;
#[cfg(target_arch = "x86_64")]
pub(super) use kernel::has_avx2;
pub(super) use pass::Pass;

/// A running CRC-32: the register as it stands between two bytes, not yet inverted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crc(u32);

impl Crc {
    /// The register after the eight 0xff bytes that precede the masked headers under the ICRC.
    pub const ICRC_PREFIX: Self = Self(0xDEBB_20E3);

    /// The register before the first byte.
    #[must_use]
    pub const fn new() -> Self {
        Self(!0)
    }

    /// The register behind bytes whose CRC is known.
    #[must_use]
    pub const fn resume(crc: u32) -> Self {
        Self(!crc)
    }

    /// The register after `bytes` too.
    #[must_use]
    #[inline]
    pub fn update(self, bytes: &[u8]) -> Self {
        self.over(&mut Pass::reading(bytes))
    }

    /// The CRC: the register inverted. On the wire its least significant byte goes first.
    #[must_use]
    pub const fn finish(self) -> u32 {
        !self.0
    }

    /// The register after all bytes of `pass` too.
    #[inline]
    pub(super) fn over<const COPY: bool>(self, pass: &mut Pass<'_, COPY>) -> Self {
        Self(Kernel::best().run(self.0, pass))
    }
}

impl Default for Crc {
    fn default() -> Self {
        Self::new()
    }
}
