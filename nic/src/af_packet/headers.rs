//! The headers before the payload of a UDP datagram, and how those of one become those of the next.

/// The most that they take: Ethernet, a VLAN tag, IPv4 with options, UDP.
pub(super) const MAX_LEN: usize = 14 + 4 + 60 + UDP;

const UDP: usize = 8;
const PROTOCOL_UDP: u8 = 17;

/// An IP address; of IPv4 in the last four bytes.
pub(super) type Address = [u8; 16];

/// The headers of one datagram, from the Ethernet header to that of UDP.
#[derive(Clone, Copy, Debug)]
pub(super) struct Headers {
    bytes: [u8; MAX_LEN],
    ip: usize,
    udp: usize,
    v4: bool,
}

impl Headers {
    /// The headers of a frame; `None` when it is no UDP datagram, or a fragment of one.
    pub(super) fn of(frame: &[u8]) -> Option<Self> {
        let (kind, ip) = match half(frame, 12)? {
            0x8100 => (half(frame, 16)?, 18),
            kind => (kind, 14),
        };
        let (v4, udp) = match kind {
            0x0800 => (true, ip + header_v4(frame.get(ip..)?)?),
            0x86dd => (false, ip + header_v6(frame.get(ip..)?)?),
            _ => return None,
        };
        let mut bytes = [0; MAX_LEN];
        bytes[..udp + UDP].copy_from_slice(frame.get(..udp + UDP)?);
        Some(Self { bytes, ip, udp, v4 })
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len()]
    }

    /// How far into the frame the payload begins.
    pub(super) fn len(&self) -> usize {
        self.udp + UDP
    }

    /// The headers of datagram `number` behind this one, with `payload` bytes, at most 65,535 with its headers. What
    /// the kernel changes from one segment to the next changes, and the UDP checksum, which RoCEv2 leaves at zero.
    pub(super) fn following(&self, number: usize, payload: usize) -> Self {
        let mut next = *self;
        let datagram = (payload + UDP) as u16;
        next.put(self.udp + 4, datagram);
        next.put(self.udp + 6, 0);
        if self.v4 {
            let ident = u16::from_be_bytes([self.bytes[self.ip + 4], self.bytes[self.ip + 5]]);
            next.put(self.ip + 2, datagram.wrapping_add((self.udp - self.ip) as u16));
            next.put(self.ip + 4, ident.wrapping_add(number as u16));
            next.put(self.ip + 10, 0);
            let sum = fold(sum(&next.bytes[self.ip..self.udp]));
            next.put(self.ip + 10, !sum);
        } else {
            next.put(self.ip + 4, datagram);
        }
        next
    }

    /// The headers of this and the following datagrams in one, with `payload` bytes in all. The UDP checksum is the
    /// part of it that whoever completes it does not see: the sum of addresses, protocol and length.
    pub(super) fn covering(&self, payload: usize) -> Self {
        let mut all = self.following(0, payload);
        let addresses = if self.v4 { self.ip + 12..self.ip + 20 } else { self.ip + 8..self.ip + 40 };
        let sum = sum(&self.bytes[addresses]) + u32::from(PROTOCOL_UDP) + (payload + UDP) as u32;
        all.put(self.udp + 6, fold(sum));
        all
    }

    pub(super) fn source(&self) -> Address {
        self.address(false)
    }

    pub(super) fn destination(&self) -> Address {
        self.address(true)
    }

    /// Whether the datagram carries a UDP checksum, be it complete or only begun.
    pub(super) fn has_checksum(&self) -> bool {
        self.bytes[self.udp + 6..self.udp + 8] != [0, 0]
    }

    /// The second of two addresses, or the first.
    fn address(&self, second: bool) -> Address {
        let mut address = [0; 16];
        if self.v4 {
            let at = self.ip + if second { 16 } else { 12 };
            address[12..].copy_from_slice(&self.bytes[at..at + 4]);
        } else {
            let at = self.ip + if second { 24 } else { 8 };
            address.copy_from_slice(&self.bytes[at..at + 16]);
        }
        address
    }

    fn put(&mut self, at: usize, value: u16) {
        self.bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }
}

/// Length of the IPv4 header of a whole UDP datagram.
fn header_v4(ip: &[u8]) -> Option<usize> {
    let len = 4 * usize::from(ip.first()? & 15);
    // More fragments, or an offset.
    let fragment = half(ip, 6)? & 0x3fff != 0;
    (len >= 20 && *ip.get(9)? == PROTOCOL_UDP && !fragment).then_some(len)
}

/// Length of the IPv6 header of a UDP datagram without extension headers.
fn header_v6(ip: &[u8]) -> Option<usize> {
    (*ip.get(6)? == PROTOCOL_UDP).then_some(40)
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
}

/// Sum of 16-bit words, as checksums of the Internet take it.
fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum()
}

fn fold(sum: u32) -> u16 {
    let once = (sum >> 16) + (sum & 0xffff);
    ((once >> 16) + (once & 0xffff)) as u16
}
