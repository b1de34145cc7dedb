//! The 89 opcodes of protocol section 2.4, one line each.

use super::opcode::{Opcode, PayloadRule};

/// What the table says of one opcode.
pub(super) struct Row {
    pub(super) opcode: Opcode,
    pub(super) name: &'static str,
    /// Base transport header and extended headers together, in bytes.
    pub(super) header_len: u8,
    pub(super) payload: PayloadRule,
}

macro_rules! opcodes {
    ($($code:literal $name:ident $header_len:literal $payload:ident;)*) => {
        impl Opcode {
            $(
                #[doc = concat!("Opcode ", stringify!($code), ".")]
                pub const $name: Self = Self::from_table($code);
            )*
        }

        pub(super) const ROWS: &[Row] = &[$(Row {
            opcode: Opcode::$name,
            name: stringify!($name),
            header_len: $header_len,
            payload: PayloadRule::$payload,
        }),*];
    };
}

opcodes! {
    0x00 RC_SEND_FIRST 12 Full;
    0x01 RC_SEND_MIDDLE 12 Full;
    0x02 RC_SEND_LAST 12 Some;
    0x03 RC_SEND_LAST_IMM 16 Some;
    0x04 RC_SEND_ONLY 12 Any;
    0x05 RC_SEND_ONLY_IMM 16 Any;
    0x06 RC_RDMA_WRITE_FIRST 28 Full;
    0x07 RC_RDMA_WRITE_MIDDLE 12 Full;
    0x08 RC_RDMA_WRITE_LAST 12 Some;
    0x09 RC_RDMA_WRITE_LAST_IMM 16 Some;
    0x0A RC_RDMA_WRITE_ONLY 28 Any;
    0x0B RC_RDMA_WRITE_ONLY_IMM 32 Any;
    0x0C RC_RDMA_READ_REQUEST 28 None;
    0x0D RC_RDMA_READ_RESPONSE_FIRST 16 Full;
    0x0E RC_RDMA_READ_RESPONSE_MIDDLE 12 Full;
    0x0F RC_RDMA_READ_RESPONSE_LAST 16 Some;
    0x10 RC_RDMA_READ_RESPONSE_ONLY 16 Any;
    0x11 RC_ACKNOWLEDGE 16 None;
    0x12 RC_ATOMIC_ACKNOWLEDGE 24 None;
    0x13 RC_COMPARE_SWAP 40 None;
    0x14 RC_FETCH_ADD 40 None;
    0x16 RC_SEND_LAST_INVALIDATE 16 Some;
    0x17 RC_SEND_ONLY_INVALIDATE 16 Any;
    0x1C RC_FLUSH 32 None;
    0x1D RC_ATOMIC_WRITE 28 Eight;
    0x20 UC_SEND_FIRST 12 Full;
    0x21 UC_SEND_MIDDLE 12 Full;
    0x22 UC_SEND_LAST 12 Some;
    0x23 UC_SEND_LAST_IMM 16 Some;
    0x24 UC_SEND_ONLY 12 Any;
    0x25 UC_SEND_ONLY_IMM 16 Any;
    0x26 UC_RDMA_WRITE_FIRST 28 Full;
    0x27 UC_RDMA_WRITE_MIDDLE 12 Full;
    0x28 UC_RDMA_WRITE_LAST 12 Some;
    0x29 UC_RDMA_WRITE_LAST_IMM 16 Some;
    0x2A UC_RDMA_WRITE_ONLY 28 Any;
    0x2B UC_RDMA_WRITE_ONLY_IMM 32 Any;
    0x40 RD_SEND_FIRST 24 Full;
    0x41 RD_SEND_MIDDLE 24 Full;
    0x42 RD_SEND_LAST 24 Some;
    0x43 RD_SEND_LAST_IMM 28 Some;
    0x44 RD_SEND_ONLY 24 Any;
    0x45 RD_SEND_ONLY_IMM 28 Any;
    0x46 RD_RDMA_WRITE_FIRST 40 Full;
    0x47 RD_RDMA_WRITE_MIDDLE 24 Full;
    0x48 RD_RDMA_WRITE_LAST 24 Some;
    0x49 RD_RDMA_WRITE_LAST_IMM 28 Some;
    0x4A RD_RDMA_WRITE_ONLY 40 Any;
    0x4B RD_RDMA_WRITE_ONLY_IMM 44 Any;
    0x4C RD_RDMA_READ_REQUEST 40 None;
    0x4D RD_RDMA_READ_RESPONSE_FIRST 20 Full;
    0x4E RD_RDMA_READ_RESPONSE_MIDDLE 16 Full;
    0x4F RD_RDMA_READ_RESPONSE_LAST 20 Some;
    0x50 RD_RDMA_READ_RESPONSE_ONLY 20 Any;
    0x51 RD_ACKNOWLEDGE 20 None;
    0x52 RD_ATOMIC_ACKNOWLEDGE 28 None;
    0x53 RD_COMPARE_SWAP 52 None;
    0x54 RD_FETCH_ADD 52 None;
    0x55 RD_RESYNC 24 None;
    0x5C RD_FLUSH 36 None;
    0x5D RD_ATOMIC_WRITE 40 Eight;
    0x64 UD_SEND_ONLY 20 Any;
    0x65 UD_SEND_ONLY_IMM 24 Any;
    0x81 CNP 28 None;
    0xA0 XRC_SEND_FIRST 16 Full;
    0xA1 XRC_SEND_MIDDLE 16 Full;
    0xA2 XRC_SEND_LAST 16 Some;
    0xA3 XRC_SEND_LAST_IMM 20 Some;
    0xA4 XRC_SEND_ONLY 16 Any;
    0xA5 XRC_SEND_ONLY_IMM 20 Any;
    0xA6 XRC_RDMA_WRITE_FIRST 32 Full;
    0xA7 XRC_RDMA_WRITE_MIDDLE 16 Full;
    0xA8 XRC_RDMA_WRITE_LAST 16 Some;
    0xA9 XRC_RDMA_WRITE_LAST_IMM 20 Some;
    0xAA XRC_RDMA_WRITE_ONLY 32 Any;
    0xAB XRC_RDMA_WRITE_ONLY_IMM 36 Any;
    0xAC XRC_RDMA_READ_REQUEST 32 None;
    0xAD XRC_RDMA_READ_RESPONSE_FIRST 16 Full;
    0xAE XRC_RDMA_READ_RESPONSE_MIDDLE 12 Full;
    0xAF XRC_RDMA_READ_RESPONSE_LAST 16 Some;
    0xB0 XRC_RDMA_READ_RESPONSE_ONLY 16 Any;
    0xB1 XRC_ACKNOWLEDGE 16 None;
    0xB2 XRC_ATOMIC_ACKNOWLEDGE 24 None;
    0xB3 XRC_COMPARE_SWAP 44 None;
    0xB4 XRC_FETCH_ADD 44 None;
    0xB6 XRC_SEND_LAST_INVALIDATE 20 Some;
    0xB7 XRC_SEND_ONLY_INVALIDATE 20 Any;
    0xBC XRC_FLUSH 36 None;
    0xBD XRC_ATOMIC_WRITE 32 Eight;
}
