//! Who takes frames that hold several.
//!
//! Not everyone does to whom the kernel hands them whole: an XDP program at the other end of a veth pair sees one long
//! frame, and nothing that tells how to take it apart. So whoever takes them says so with every frame sent: by a UDP
//! checksum, which the interface fills in for nothing, nobody checks, and other senders of RoCEv2 leave at zero. To
//! whom nothing was heard of, or no checksum, frames go one by one.

use super::headers::Address;

/// Peers remembered at most.
const SLOTS: usize = 256;

/// The peers that take them, each in the slot that its address leads to: of two that meet there the last one heard of
/// counts, and the other gets its frames one by one.
#[derive(Debug)]
pub(super) struct Peers(Box<[Option<Address>; SLOTS]>);

impl Peers {
    pub(super) fn new() -> Self {
        Self(Box::new([None; SLOTS]))
    }

    /// Remembers what the last frame of a peer told.
    pub(super) fn note(&mut self, peer: Address, takes: bool) {
        let slot = &mut self.0[slot(peer)];
        match takes {
            true => *slot = Some(peer),
            false if *slot == Some(peer) => *slot = None,
            false => {}
        }
    }

    /// Whether a peer takes frames that hold several, as far as is known.
    pub(super) fn take(&self, peer: Address) -> bool {
        self.0[slot(peer)] == Some(peer)
    }
}

/// Any byte of the address decides, and neighbours do not meet.
fn slot(peer: Address) -> usize {
    let address = u128::from_be_bytes(peer);
    let mixed = (address as u64 ^ (address >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_frame_counts() {
        let (mut peers, one, other) = (Peers::new(), [1; 16], [2; 16]);
        assert!(!peers.take(one));
        peers.note(one, true);
        peers.note(other, false);
        assert!(peers.take(one) && !peers.take(other));
        peers.note(one, false);
        assert!(!peers.take(one));
    }

    #[test]
    fn peers_that_meet_in_a_slot_do_not_speak_for_each_other() {
        let mut peers = Peers::new();
        let addresses = (0..=u16::MAX).map(|number| {
            let mut address = [0; 16];
            address[14..].copy_from_slice(&number.to_be_bytes());
            address
        });
        let addresses: Vec<_> = addresses.collect();
        addresses.iter().for_each(|&address| peers.note(address, true));
        let taking = addresses.iter().filter(|&&address| peers.take(address)).count();
        assert_eq!(taking, SLOTS, "one for each slot");
    }
}
