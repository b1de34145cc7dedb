//! The invariant CRC (protocol section 3).
//!
//! It covers the packet from the IP header to the pad bytes. What routers and switches may change counts as
//! ones: traffic class, hop limit, IPv4 checksum, IPv6 flow label, UDP checksum, and the byte of the base
//! transport header that holds FECN and BECN.

use super::Bth;
use crate::memory::Crc;

/// Words of IPv4, UDP and base transport header: a multiple of eight bytes that holds all that is masked.
pub(super) const V4_LEN: usize = 40;
/// The same for IPv6.
pub(super) const V6_LEN: usize = 56;

/// The ICRC of an IP packet that ends with its pad bytes, or `None` when it is shorter than its headers or
/// not IP. Goes onto the wire with its least significant byte first, on any machine (case C02).
pub fn icrc(packet: &[u8]) -> Option<u32> {
    let (crc, rest) = match packet.first()? >> 4 {
        4 => packet.split_first_chunk().map(|(headers, rest)| (v4_headers(headers), rest))?,
        6 => packet.split_first_chunk().map(|(headers, rest)| (v6_headers(headers), rest))?,
        _ => return None,
    };
    Some(crc.update(rest).finish())
}

/// Base transport header, FETH and RETH of a FLUSH, in bytes.
pub(super) const FLUSH_LEN: usize = Bth::LEN + 4 + 16;

/// Gives a frame that ends with the headers of a FLUSH and their ICRC the ICRC that `rdma_rxe` computes: over its
/// transport headers once more, unmasked (protocol section 3.3).
///
/// # Panics
/// When the frame is shorter than that.
pub fn double_icrc(frame: &mut [u8]) {
    let (before, icrc) = frame.split_last_chunk_mut::<4>().expect("a frame has an ICRC");
    let headers = &before[before.len() - FLUSH_LEN..];
    *icrc = Crc::resume(u32::from_le_bytes(*icrc)).update(headers).finish().to_le_bytes();
}

/// The register behind the first [`V4_LEN`] bytes of an IPv4 packet.
#[inline(always)]
pub(super) fn v4_headers(headers: &[u8; V4_LEN]) -> Crc {
    Crc::ICRC_PREFIX.update(&masked(headers, &V4_MASK))
}

/// The register behind the first [`V6_LEN`] bytes of an IPv6 packet.
#[inline(always)]
pub(super) fn v6_headers(headers: &[u8; V6_LEN]) -> Crc {
    Crc::ICRC_PREFIX.update(&masked(headers, &V6_MASK))
}

/// Ones over what may change on the way. In wide words, as the CRC would wait for narrow stores.
#[inline(always)]
pub(super) fn masked<const N: usize>(headers: &[u8; N], mask: &[u8; N]) -> [u8; N] {
    let mut out = *headers;
    for (out, mask) in out.as_chunks_mut().0.iter_mut().zip(mask.as_chunks().0) {
        *out = (u64::from_ne_bytes(*out) | u64::from_ne_bytes(*mask)).to_ne_bytes();
    }
    out
}

/// Ones where IPv4, UDP and base transport header may change.
pub(super) const V4_MASK: [u8; V4_LEN] = ones([1, 8, 10, 11, 26, 27, 28 + Bth::CONGESTION_BYTE]);

/// Ones where IPv6, UDP and base transport header may change; of the first byte, half.
pub(super) const V6_MASK: [u8; V6_LEN] = {
    let mut mask = ones([1, 2, 3, 7, 46, 47, 48 + Bth::CONGESTION_BYTE]);
    mask[0] = 0x0f;
    mask
};

const fn ones<const N: usize>(places: [usize; 7]) -> [u8; N] {
    let mut mask = [0; N];
    let mut i = 0;
    while i < places.len() {
        mask[places[i]] = 0xff;
        i += 1;
    }
    mask
}

/// What a 16-bit field adds to the register when it was zero as the register was computed.
///
/// The CRC is linear: the difference a field makes at the end depends on its value and on how many bytes
/// follow it, not on the bytes around it. Four lookups replace another pass over the header.
pub(super) struct FieldDelta([[u32; 16]; 4]);

impl FieldDelta {
    /// For a big-endian field behind which `following` bytes are covered.
    pub(super) const fn new(following: usize) -> Self {
        let mut tables = [[0; 16]; 4];
        let mut nibble = 0;
        while nibble < 4 {
            let mut value = 0;
            while value < 16 {
                tables[nibble][value] = delta((value as u16) << (4 * nibble), following);
                value += 1;
            }
            nibble += 1;
        }
        Self(tables)
    }

    /// For a field that stands twice, with `a` and with `b` bytes following.
    pub(super) const fn twice(a: usize, b: usize) -> Self {
        let (mut first, second) = (Self::new(a).0, Self::new(b).0);
        let mut nibble = 0;
        while nibble < 4 {
            let mut value = 0;
            while value < 16 {
                first[nibble][value] ^= second[nibble][value];
                value += 1;
            }
            nibble += 1;
        }
        Self(first)
    }

    /// The bits to flip in the register.
    #[inline(always)]
    pub(super) fn of(&self, value: u16) -> u32 {
        let value = usize::from(value);
        let [a, b, c, d] = &self.0;
        a[value & 15] ^ b[value >> 4 & 15] ^ c[value >> 8 & 15] ^ d[value >> 12]
    }
}

/// The register after `value`, big-endian, and `following` zero bytes, from a register of zero.
const fn delta(value: u16, following: usize) -> u32 {
    let mut crc = byte(0, (value >> 8) as u8);
    crc = byte(crc, value as u8);
    let mut zeros = 0;
    while zeros < following {
        crc = byte(crc, 0);
        zeros += 1;
    }
    crc
}

const fn byte(crc: u32, byte: u8) -> u32 {
    let mut crc = crc ^ byte as u32;
    let mut bit = 0;
    while bit < 8 {
        crc = crc >> 1 ^ if crc & 1 != 0 { 0xedb8_8320 } else { 0 };
        bit += 1;
    }
    crc
}
