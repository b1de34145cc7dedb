//! What the kernel wants to know of a frame that it may have to take apart, and tells of one that it did not.

/// Bytes of the header, which stands before each frame on its way to and from the kernel.
pub(super) const LEN: usize = 10;
/// Frames in one at most: kernels before 6.9 refuse more.
pub(super) const MAX_SEGMENTS: usize = 64;

/// The checksum at the given place is to be completed.
const NEEDS_CHECKSUM: u8 = 1;
/// One datagram.
const NO_SEGMENTS: u8 = 0;
/// Datagrams of UDP, one behind the other under the headers of the first. Since Linux 6.2.
const UDP_SEGMENTS: u8 = 5;
/// Where a UDP header keeps its checksum.
const UDP_CHECKSUM: u16 = 6;

/// The header of a frame that is complete as it stands.
pub(super) const COMPLETE: [u8; LEN] = [0; LEN];

/// The header (`struct virtio_net_hdr` of the kernel's ABI) of a datagram whose UDP checksum is begun and to be
/// completed, behind headers of `headers` bytes that end with that of UDP.
pub(super) fn unfinished(headers: usize) -> [u8; LEN] {
    filled(NEEDS_CHECKSUM, NO_SEGMENTS, headers, 0)
}

/// The header of several datagrams in one frame, each of `segment` bytes but for the last.
pub(super) fn segmented(headers: usize, segment: usize) -> [u8; LEN] {
    filled(NEEDS_CHECKSUM, UDP_SEGMENTS, headers, segment)
}

fn filled(flags: u8, kind: u8, headers: usize, segment: usize) -> [u8; LEN] {
    let udp = headers as u16 - 8;
    let mut bytes = COMPLETE;
    (bytes[0], bytes[1]) = (flags, kind);
    for (at, value) in [(2, headers as u16), (4, segment as u16), (6, udp), (8, UDP_CHECKSUM)] {
        bytes[at..at + 2].copy_from_slice(&value.to_ne_bytes());
    }
    bytes
}

/// How many bytes each datagram of a frame has; `None` when it holds but one.
pub(super) fn segment(header: &[u8]) -> Option<usize> {
    let size = usize::from(u16::from_ne_bytes([header[4], header[5]]));
    (header[1] == UDP_SEGMENTS && size > 0).then_some(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_segments_is_read_back() {
        assert_eq!(segment(&segmented(42, 4112)), Some(4112));
        assert_eq!(segment(&COMPLETE), None);
        assert_eq!(segment(&segmented(42, 0)), None, "no frame has segments of nothing");
    }
}
