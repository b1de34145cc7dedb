//! Bulk copy to and from memory that others may read and write meanwhile.

mod landing;
mod store;
#[cfg(test)]
mod tests;

use super::Crc;
use super::crc::Pass;
#[cfg(target_arch = "x86_64")]
use super::crc::has_avx2;
use landing::Landing;

/// From this length on wider stores repay the longer way to an address that is aligned to them.
#[cfg(target_arch = "x86_64")]
const WIDE: usize = 128;

/// Copies `src` into `dst`, reading each byte once, and runs `crc` over what was written.
///
/// Others may write `src` meanwhile; then any mix of old and new bytes is copied, and the CRC is that of the mix.
///
/// # Safety
/// `src..src + dst.len()` must be readable and must not overlap `dst`.
#[inline]
pub unsafe fn copy_out(dst: &mut [u8], src: *const u8, crc: Crc) -> Crc {
    // SAFETY: the caller vouches for `src`; `dst` outlives the pass.
    let mut pass = unsafe { Pass::copying(dst, src) };
    crc.over(&mut pass)
}

/// Copies `src` into memory that others may read or write; bytes land in address order: who sees one of them sees
/// all before it.
///
/// # Safety
/// `dst..dst + src.len()` must be writable and must not overlap `src`.
#[inline]
pub unsafe fn copy_in(dst: *mut u8, src: &[u8]) {
    // SAFETY: the caller vouches for `dst`.
    let landing = unsafe { Landing::new(dst, src) };
    #[cfg(target_arch = "x86_64")]
    if src.len() >= WIDE && has_avx2() {
        // SAFETY: the CPU has AVX2.
        return unsafe { landing.wide() };
    }
    landing.narrow();
}
