//! What peers tell each other about their memory.

/// What one needs to reach a peer's memory: where it is, how long, and its remote key.
///
/// Send it to the peer in whatever way the applications talk before RDMA does; [`to_bytes`](Self::to_bytes)
/// and [`from_bytes`](Self::from_bytes) are one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteMr {
    /// Address of the first byte, in the peer's terms.
    pub addr: u64,
    /// How many bytes. For the reader only: the peer checks for itself.
    pub len: u64,
    /// The peer's remote key.
    pub rkey: u32,
}

impl RemoteMr {
    /// How many bytes [`to_bytes`](Self::to_bytes) makes.
    pub const BYTES: usize = 20;

    /// The part from `offset` on; an empty one when `offset` lies beyond the end.
    #[must_use]
    pub const fn at(self, offset: u64) -> Self {
        Self { addr: self.addr.wrapping_add(offset), len: self.len.saturating_sub(offset), rkey: self.rkey }
    }

    /// Address, length and key, each big-endian.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.addr.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.len.to_be_bytes());
        bytes[16..].copy_from_slice(&self.rkey.to_be_bytes());
        bytes
    }

    /// What [`to_bytes`](Self::to_bytes) made.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let word = |at| bytes[at..at + 8].iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
        let rkey = bytes[16..].iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
        Self { addr: word(0), len: word(8), rkey }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_region_travels_as_bytes() {
        let remote = RemoteMr { addr: 0x0123_4567_89ab_cdef, len: 1 << 40, rkey: 0xdead_beef };
        assert_eq!(RemoteMr::from_bytes(remote.to_bytes()), remote);
        assert_eq!(remote.at(16), RemoteMr { addr: remote.addr + 16, len: remote.len - 16, ..remote });
        assert_eq!(remote.at(1 << 41).len, 0);
    }
}
