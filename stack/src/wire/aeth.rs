//! The acknowledge extended header (protocol section 2.5).

use super::bytes::be24;
use core::time::Duration;

/// What the responder says of the requests up to a sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aeth {
    /// Accepted, refused, or not now.
    pub syndrome: Syndrome,
    /// Messages completed by the responder, 24 bits, wrapping.
    pub msn: u32,
}

impl Aeth {
    /// Length on the wire in bytes.
    pub const LEN: usize = 4;

    #[inline]
    pub(super) fn parse(bytes: &[u8; Self::LEN]) -> Self {
        Self { syndrome: Syndrome::from_code(bytes[0]), msn: be24(bytes, 1) }
    }

    #[inline]
    pub(super) fn emit(&self) -> [u8; Self::LEN] {
        (u32::from(self.syndrome.code()) << 24 | self.msn & 0xff_ffff).to_be_bytes()
    }
}

/// The verdict in an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syndrome {
    /// Accepted.
    Ack {
        /// Credit code, 0..=31; see [`Syndrome::credits`].
        credits: u8,
    },
    /// No receive buffer: send again after a while.
    Rnr {
        /// Timer code, 0..=31; see [`Syndrome::rnr_delay`].
        timer: u8,
    },
    /// Refused.
    Nak(NakCode),
    /// A pattern without a meaning; holds the raw byte.
    Reserved(u8),
}

impl Syndrome {
    /// Accepted, and no limit on what may be sent.
    pub const UNLIMITED: Self = Self::Ack { credits: 31 };

    /// The syndrome of a raw byte.
    pub const fn from_code(code: u8) -> Self {
        match code >> 5 {
            0 => Self::Ack { credits: code & 0x1f },
            1 => Self::Rnr { timer: code & 0x1f },
            3 => Self::Nak(NakCode::from_code(code & 0x1f)),
            _ => Self::Reserved(code),
        }
    }

    /// The raw byte.
    pub const fn code(self) -> u8 {
        match self {
            Self::Ack { credits } => credits & 0x1f,
            Self::Rnr { timer } => 0x20 | timer & 0x1f,
            Self::Nak(code) => 0x60 | code.code(),
            Self::Reserved(raw) => raw,
        }
    }

    /// How many receive buffers a credit code stands for; `None` for code 31, which sets no limit.
    pub const fn credits(code: u8) -> Option<u32> {
        match code & 0x1f {
            31 => None,
            code @ 0..=1 => Some(code as u32),
            // Two codes an octave: 2, 3, 4, 6, 8, 12, ...
            code if code % 2 == 0 => Some(1 << (code / 2)),
            code => Some(3 << (code / 2 - 1)),
        }
    }

    /// How long a timer code asks to wait; code 0 is the longest.
    pub const fn rnr_delay(code: u8) -> Duration {
        let tens_of_micros = match code & 0x1f {
            0 => 65536,
            1 => 1,
            // Two codes an octave: 0.02, 0.03, 0.04, 0.06, ... ms.
            code if code % 2 == 0 => 1 << (code / 2),
            code => 3 << (code / 2 - 1),
        };
        Duration::from_micros(tens_of_micros * 10)
    }
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NakCode {
    /// A packet is missing: resend from the sequence number of this answer.
    SequenceError,
    /// The request is malformed or not allowed.
    InvalidRequest,
    /// Key, range or right of the remote memory is wrong.
    RemoteAccessError,
    /// The responder failed on its own side.
    RemoteOperationalError,
    /// Reliable datagrams only.
    InvalidRdRequest,
    /// A code without a meaning, 5..=31.
    Reserved(u8),
}

impl NakCode {
    /// The code of the low five bits.
    pub const fn from_code(code: u8) -> Self {
        match code & 0x1f {
            0 => Self::SequenceError,
            1 => Self::InvalidRequest,
            2 => Self::RemoteAccessError,
            3 => Self::RemoteOperationalError,
            4 => Self::InvalidRdRequest,
            code => Self::Reserved(code),
        }
    }

    /// The low five bits.
    pub const fn code(self) -> u8 {
        match self {
            Self::SequenceError => 0,
            Self::InvalidRequest => 1,
            Self::RemoteAccessError => 2,
            Self::RemoteOperationalError => 3,
            Self::InvalidRdRequest => 4,
            Self::Reserved(code) => code & 0x1f,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_syndrome_byte_round_trips() {
        for code in 0..=255 {
            assert_eq!(Syndrome::from_code(code).code(), code);
            let aeth = Aeth { syndrome: Syndrome::from_code(code), msn: 0xff_fffe };
            assert_eq!(Aeth::parse(&aeth.emit()), aeth);
        }
    }

    #[test]
    fn known_syndromes() {
        assert_eq!(Syndrome::from_code(0x1f), Syndrome::UNLIMITED);
        assert_eq!(Syndrome::from_code(0x2c), Syndrome::Rnr { timer: 12 });
        assert_eq!(Syndrome::from_code(0x60), Syndrome::Nak(NakCode::SequenceError));
        assert_eq!(Syndrome::from_code(0x7f), Syndrome::Nak(NakCode::Reserved(31)));
        assert_eq!(Syndrome::from_code(0x40), Syndrome::Reserved(0x40));
        assert_eq!(Syndrome::from_code(0x80), Syndrome::Reserved(0x80));
    }

    #[test]
    fn credit_table() {
        let want = [
            0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048,
            3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
        ];
        for (code, credits) in (0..).zip(want) {
            assert_eq!(Syndrome::credits(code), Some(credits), "code {code}");
        }
        assert_eq!(Syndrome::credits(31), None);
    }

    #[test]
    fn rnr_timer_table() {
        let want = [
            65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
            2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
        ];
        for (code, hundredths) in (0..).zip(want) {
            assert_eq!(Syndrome::rnr_delay(code), Duration::from_micros(hundredths * 10), "code {code}");
        }
    }
}
