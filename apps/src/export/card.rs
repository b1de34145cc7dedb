//! What a server tells a client with the grant of a connection.
//!
//! | bytes | what |
//! |---|---|
//! | 0 to 3 | `uRoC` |
//! | 4 | version of this format: 1 |
//! | 5 | bit 0: the memory may be written and compared; the others are 0 |
//! | 6, 7 | 0 |
//! | 8 to 15 | address of the first byte |
//! | 16 to 23 | length in bytes |
//! | 24 to 27 | remote key |
//!
//! Numbers are big-endian. A later version keeps the first five bytes.

use uroce::RemoteMr;

use crate::error::{Failure, Result};

const MAGIC: &[u8; 4] = b"uRoC";
const VERSION: u8 = 1;
const WRITABLE: u8 = 1;
const HEAD: usize = 8;
/// Bytes of it.
pub(super) const BYTES: usize = HEAD + RemoteMr::BYTES;

/// Memory that a server shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Card {
    pub(super) memory: RemoteMr,
    pub(super) writable: bool,
}

impl Card {
    pub(super) fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(MAGIC);
        bytes[4] = VERSION;
        bytes[5] = if self.writable { WRITABLE } else { 0 };
        bytes[HEAD..].copy_from_slice(&self.memory.to_bytes());
        bytes
    }

    /// Reads what a peer said; more bytes may follow.
    pub(super) fn decode(said: &[u8]) -> Result<Self> {
        let head = said.strip_prefix(MAGIC).and_then(|rest| rest.first());
        match head {
            Some(&VERSION) => {}
            Some(version) => {
                return Err(Failure::new(format!(
                    "the server speaks version {version} of the exchange and we speak {VERSION}: install the same uroce \
                     at both ends"
                )));
            }
            None => return Err(stranger()),
        }
        let memory = said.get(HEAD..BYTES).and_then(|bytes| bytes.try_into().ok()).ok_or_else(stranger)?;
        Ok(Self { memory: RemoteMr::from_bytes(memory), writable: said[5] & WRITABLE != 0 })
    }
}

fn stranger() -> Failure {
    Failure::new("whoever listens there is no `uroce serve`: check host and port")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_read_as_it_was_written() {
        for writable in [false, true] {
            let card = Card { memory: RemoteMr { addr: 0, len: 1 << 33, rkey: 0x1234_5600 }, writable };
            let mut said = card.encode().to_vec();
            said.resize(196, 0);
            assert_eq!(Card::decode(&said).unwrap(), card);
        }
    }

    #[test]
    fn strangers_and_other_versions_are_told_apart() {
        let decode = |said: &[u8]| Card::decode(said).unwrap_err().to_string();
        assert!(decode(b"").contains("no `uroce serve`") && decode(b"uRoC").contains("no `uroce serve`"));
        assert!(decode(b"uRoC\x01\x00").contains("no `uroce serve`"));
        assert!(decode(&[0; 196]).contains("no `uroce serve`"));
        assert!(decode(b"uRoC\x02").contains("version 2"));
    }
}
