//! What the two ends send each other: where memory is. Big-endian, as rping has it.

use uroce::RemoteMr;

/// Bytes of it.
pub(super) const BYTES: usize = 16;

/// Address, key and length of memory that the peer is to read or to write.
pub(super) fn encode(memory: RemoteMr) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes[..8].copy_from_slice(&memory.addr.to_be_bytes());
    bytes[8..12].copy_from_slice(&memory.rkey.to_be_bytes());
    bytes[12..].copy_from_slice(&(memory.len as u32).to_be_bytes());
    bytes
}

/// What [`encode`] made.
pub(super) fn decode(bytes: &[u8; BYTES]) -> RemoteMr {
    let number = |part: &[u8]| part.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    let (rkey, len) = (number(&bytes[8..12]) as u32, number(&bytes[12..]));
    RemoteMr { addr: number(&bytes[..8]), len, rkey }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_advertisement_reads_as_that_of_rping() {
        let theirs = [0, 0, 0x55, 0x9e, 0xe9, 0x27, 0xa5, 0xc0, 0, 0, 0x19, 0x81, 0, 0, 0, 0x40];
        let memory = decode(&theirs);
        assert_eq!(memory, RemoteMr { addr: 0x559e_e927_a5c0, len: 64, rkey: 0x1981 });
        assert_eq!(encode(memory), theirs);
    }
}
