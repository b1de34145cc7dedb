//! IPv4 frames changed by hand, with sums that are right again.

/// The ICRC of an IPv4 packet, computed with another CRC implementation (section 3.1): over IP, UDP and transport
/// headers with ones where they may change on the way, and over what `follows`, if anything does.
pub fn reference_icrc(packet: &[u8], follows: &[u8]) -> [u8; 4] {
    let mut covered = [&[0xFF; 8], packet, follows].concat();
    for masked in [1, 8, 10, 11, 26, 27, 32] {
        covered[8 + masked] = 0xFF;
    }
    crc::Crc::<u32>::new(&crc::CRC_32_ISO_HDLC).checksum(&covered).to_le_bytes()
}

/// Makes the IPv4 checksum and the ICRC at the end of the frame right.
pub fn seal(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let mut sum: u32 = frame[14..34].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    sum = (sum & 0xFFFF) + (sum >> 16);
    let checksum = !((sum & 0xFFFF) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
    let (packet, icrc) = frame[14..].split_last_chunk_mut::<4>().expect("a frame has an ICRC");
    *icrc = reference_icrc(packet, &[]);
}

/// Cuts or fills a frame so that `len` bytes of transport are left, headers and ICRC included, and seals it.
pub fn set_transport_len(frame: &mut Vec<u8>, len: usize) {
    frame.resize(42 + len, 0);
    frame[16..18].copy_from_slice(&(28 + len as u16).to_be_bytes());
    frame[38..40].copy_from_slice(&(8 + len as u16).to_be_bytes());
    seal(frame);
}
