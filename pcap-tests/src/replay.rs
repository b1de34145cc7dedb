//! Reading a captured frame as a packet, and writing it again.

use uroce_stack::wire::{Malformed, Packet};

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is a packet, and written again it is the same, byte for byte.
    Same,
    /// It is a packet, but written again it differs; the first byte that does.
    Differs(usize),
    /// It is no packet.
    Refused(Malformed),
}

/// Reads `frame` as a packet and writes it again.
pub fn replay(frame: &[u8]) -> Outcome {
    let packet = match Packet::parse(frame, &[]) {
        Ok(packet) => packet,
        Err(reason) => return Outcome::Refused(reason),
    };
    // What is written may be longer than what was read only if it is wrong; then this says where.
    let mut written = vec![0; frame.len() + 256];
    let len = packet.emit(&mut written);
    match first_difference(&written[..len], frame) {
        None => Outcome::Same,
        Some(at) => Outcome::Differs(at),
    }
}

fn first_difference(a: &[u8], b: &[u8]) -> Option<usize> {
    let common = a.iter().zip(b).position(|(x, y)| x != y);
    common.or_else(|| (a.len() != b.len()).then(|| a.len().min(b.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_is_found_in_bytes_and_length() {
        assert_eq!(first_difference(&[1, 2], &[1, 2]), None);
        assert_eq!(first_difference(&[1, 2], &[1, 3]), Some(1));
        assert_eq!(first_difference(&[1, 2], &[1]), Some(1));
        assert_eq!(first_difference(&[], &[1]), Some(0));
    }

    #[test]
    fn bytes_behind_the_packet_are_a_difference() {
        let set = crate::Set::Rxe.file("edge_read_zero");
        let mut frame = crate::frames(&set).unwrap().remove(0).bytes;
        assert_eq!(replay(&frame), Outcome::Same);
        frame.push(0);
        assert_eq!(replay(&frame), Outcome::Differs(frame.len() - 1));
    }
}
