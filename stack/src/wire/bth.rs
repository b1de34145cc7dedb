//! The base transport header (protocol section 2.1).

use super::bytes::{be16, be24};
use super::{Opcode, Psn, Qpn};

/// The base transport header, without the opcode and the pad count, which [`super::Packet`] holds as what
/// they mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bth {
    /// Ask for a solicited event at the receiver.
    pub solicited: bool,
    /// MigReq, true on a path that never migrates. Hardware may take a slow path when it is false.
    pub migrated: bool,
    /// Partition key; bit 15 marks a full member.
    pub pkey: u16,
    /// Forward congestion notification; switches may set it, the ICRC does not cover it.
    pub fecn: bool,
    /// Backward congestion notification; not covered by the ICRC.
    pub becn: bool,
    /// The receiver's queue pair.
    pub dest_qp: Qpn,
    /// Ask for an acknowledgement.
    pub ack_request: bool,
    /// Packet sequence number.
    pub psn: Psn,
    /// The six reserved bits beside FECN and BECN, 0..=0x3f; sent as 0, ignored on receipt.
    pub resv6: u8,
    /// The seven reserved bits beside the acknowledge request, 0..=0x7f; sent as 0, ignored on receipt.
    pub resv7: u8,
}

impl Default for Bth {
    /// What a sender without partitions, migration or congestion marks puts into every packet.
    fn default() -> Self {
        Self {
            solicited: false,
            migrated: true,
            pkey: 0xffff,
            fecn: false,
            becn: false,
            dest_qp: Qpn::default(),
            ack_request: false,
            psn: Psn::default(),
            resv6: 0,
            resv7: 0,
        }
    }
}

impl Bth {
    /// Length on the wire in bytes.
    pub const LEN: usize = 12;

    /// Where the byte of FECN, BECN and the six reserved bits lies, which the ICRC takes as all ones.
    pub(super) const CONGESTION_BYTE: usize = 4;

    /// The default header for a packet to `dest_qp` numbered `psn`.
    pub fn new(dest_qp: Qpn, psn: Psn) -> Self {
        Self { dest_qp, psn, ..Self::default() }
    }

    /// Reads the fields this type holds. Opcode, pad count and version are read by the functions below.
    #[inline(always)]
    pub(super) fn parse(bytes: &[u8; Self::LEN]) -> Self {
        Self {
            solicited: bytes[1] & 0x80 != 0,
            migrated: bytes[1] & 0x40 != 0,
            pkey: be16(bytes, 2),
            fecn: bytes[4] & 0x80 != 0,
            becn: bytes[4] & 0x40 != 0,
            dest_qp: Qpn::new(be24(bytes, 5)),
            ack_request: bytes[8] & 0x80 != 0,
            psn: Psn::new(be24(bytes, 9)),
            resv6: bytes[4] & 0x3f,
            resv7: bytes[8] & 0x7f,
        }
    }

    /// Pad bytes behind the payload, 0..=3.
    #[inline(always)]
    pub(super) fn pad_count(bytes: &[u8; Self::LEN]) -> usize {
        usize::from(bytes[1] >> 4 & 3)
    }

    /// Transport version; 0 is the only one there is.
    #[inline(always)]
    pub(super) fn version(bytes: &[u8; Self::LEN]) -> u8 {
        bytes[1] & 0x0f
    }

    /// The header as integers. `pad` is the pad count, 0..=3.
    #[inline(always)]
    pub(super) fn words(&self, opcode: Opcode, pad: usize) -> BthWords {
        let flags = u8::from(self.solicited) << 7 | u8::from(self.migrated) << 6 | (pad as u8 & 3) << 4;
        let congestion = u8::from(self.fecn) << 7 | u8::from(self.becn) << 6 | self.resv6 & 0x3f;
        let first = u64::from(opcode.code()) << 56
            | u64::from(flags) << 48
            | u64::from(self.pkey) << 32
            | u64::from(congestion) << 24
            | u64::from(self.dest_qp.get());
        let ack = u32::from(self.ack_request) << 31 | u32::from(self.resv7 & 0x7f) << 24;
        BthWords { first, second: ack | self.psn.get() }
    }
}

/// A base transport header in two registers: changing bytes there, not in memory, keeps the CRC from waiting
/// for narrow stores before its wide loads.
#[derive(Clone, Copy)]
pub(super) struct BthWords {
    /// Bytes 0 to 7, the first in the highest place.
    first: u64,
    /// Bytes 8 to 11.
    second: u32,
}

impl BthWords {
    /// As the ICRC takes it, with `flip`, the first byte in the lowest place, over the first four bytes.
    #[inline(always)]
    pub(super) fn masked(self, flip: u32) -> Self {
        let congestion = 0xff << (8 * (7 - Bth::CONGESTION_BYTE));
        let first = (self.first | congestion) ^ u64::from(flip.swap_bytes()) << 32;
        Self { first, ..self }
    }

    #[inline(always)]
    pub(super) fn bytes(self) -> [u8; Bth::LEN] {
        let mut bytes = [0; Bth::LEN];
        bytes[..8].copy_from_slice(&self.first.to_be_bytes());
        bytes[8..].copy_from_slice(&self.second.to_be_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked example A: the notification a ConnectX-4 Lx sent.
    const CNP: [u8; 12] = [0x81, 0, 0xff, 0xff, 0x40, 0, 1, 0x18, 0, 0, 0, 0];

    #[test]
    fn parses_a_hardware_header() {
        let want = Bth { becn: true, migrated: false, ..Bth::new(Qpn::new(0x118), Psn::new(0)) };
        assert_eq!(Bth::parse(&CNP), want);
        assert_eq!(want.words(Opcode::CNP, 0).bytes(), CNP);
    }

    #[test]
    fn every_bit_round_trips() {
        for bit in 0..96 {
            let mut bytes = CNP;
            bytes[bit / 8] ^= 0x80 >> (bit % 8);
            let Some(opcode) = Opcode::parse(bytes[0]) else { continue };
            if Bth::version(&bytes) == 0 {
                assert_eq!(
                    Bth::parse(&bytes).words(opcode, Bth::pad_count(&bytes)).bytes(),
                    bytes,
                    "bit {bit}"
                );
            }
        }
    }

    #[test]
    fn masking_changes_the_congestion_byte_and_flips_the_first_four() {
        let words = Bth::parse(&CNP).words(Opcode::CNP, 0).masked(0x0403_0201);
        assert_eq!(words.bytes(), [0x80, 2, 0xfc, 0xfb, 0xff, 0, 1, 0x18, 0, 0, 0, 0]);
    }

    #[test]
    fn defaults_are_what_a_plain_sender_sends() {
        let bytes = Bth::new(Qpn::new(0x11), Psn::new(0xff_ffff)).words(Opcode::RC_SEND_ONLY, 3).bytes();
        assert_eq!(bytes, [0x04, 0x70, 0xff, 0xff, 0, 0, 0, 0x11, 0, 0xff, 0xff, 0xff]);
    }
}
