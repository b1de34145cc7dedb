//! The worked examples of protocol section 3.2, whole Ethernet frames.

use std::vec::Vec;

/// Notification from a ConnectX-4 Lx: source port 0, BECN set.
pub(super) const A: &str = "\
    e41d2dab2bc27cfe90643b32080045c2003c718c4000401191610a0011010a001201000012b7002800008100 \
    ffff40000118000000000000000000000000000000000000000082fd002a";

/// UC SEND ONLY, two pad bytes, UDP checksum not zero.
pub(super) const B: &str = "\
    248a07a8fa22248a07a8fa22080045010040047840004011b4d5c0a80007c0a80007c00012b7002caca22460 \
    ffff000000d300cf17104630818be28935d90e9a95505401be885e50000078f353f3";

/// The same over IPv6, with traffic class and flow label.
pub(super) const C: &str = "\
    248a07a8fa22248a07a8fa2286dd6e21face002c11ff20220000000000000000000000001023202300000000 \
    00000000000000001024c00012b7002ce7c52460ffff000000d300cf17104630818be28935d90e9a95505401 \
    be885e5000003e5b743b";

/// RoCEv1 WRITE ONLY, five bytes and three pad bytes.
pub(super) const D: &str = "\
    7cfe90753cd87cfe90753cd889156020000000281b4000000000000000000000ffff0f000002000000000000 \
    00000000ffff0f0000020a70ffff0000010a80a788bc000055d4c0726000000047b300000005000000000100 \
    0000e3d856bb";

/// RoCEv1 acknowledgement.
pub(super) const E: &str = "\
    7cfe90753cd87cfe90753cd889156020000000141b4000000000000000000000ffff0f000002000000000000 \
    00000000ffff0f0000021140ffff0000010900a788c00000000525f0c038";

/// Acknowledgement from rxe.
pub(super) const F: &str = "\
    525400000002525400000001080045000030f26e40004011344a0a0100010a010002c12112b7001c00001100 \
    ffff000000110016bcef1f000001d2f90dab";

/// Acknowledgement from rxe over IPv6.
pub(super) const G: &str = "\
    52540000000252540000000186dd60000000001c1140fe80000000000000505400fffe000001fe8000000000 \
    0000505400fffe000002c16912b7001c00001100ffff0000001300c338cc1f000001c607057a";

/// RC SEND ONLY of 16 bytes from rxe, asking for an acknowledgement.
pub(super) const H: &str = "\
    52540000000152540000000208004500003c640f40004011c29d0a0100020a010001c50412b7002800000400 \
    ffff0000002680b71e79362e30360000000000000000000000007c334cd1";

/// F with a VLAN tag.
pub(super) const I: &str = "\
    52540000000252540000000181006064080045000030f26e40004011344a0a0100010a010002c12112b7001c \
    00001100ffff000000110016bcef1f000001d2f90dab";

/// F marked for congestion on its way: CE, FECN, one hop less.
pub(super) const J: &str = "\
    525400000002525400000001080045030030f26e40003f11344a0a0100010a010002c12112b7001c00001100 \
    ffff800000110016bcef1f000001d2f90dab";

/// Bytes of hexadecimal digits; blanks are skipped.
pub(super) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks_exact(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// The frames that are RoCEv2.
pub(super) fn all() -> Vec<Vec<u8>> {
    [A, B, C, F, G, H, I, J].into_iter().map(hex).collect()
}
