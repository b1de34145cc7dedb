//! The CRC on any CPU.

use core::hint;

use super::Pass;

/// Small enough that a block still lies in the first-level cache when its CRC is taken.
const BLOCK: usize = 1024;

/// The register after all bytes of `pass`.
#[inline(never)]
pub(super) fn crc<const COPY: bool>(crc: u32, pass: &mut Pass<'_, COPY>) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(!crc);
    while pass.left() > 0 {
        // Opaque, lest the compiler take the CRC of a copied block from its source.
        hasher.update(hint::black_box(pass.next_slice(BLOCK)));
    }
    !hasher.finalize()
}
