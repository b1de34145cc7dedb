//! The Ethernet header and one 802.1Q tag (protocol section 1.1).

use super::{MacAddr, Malformed};
use etherparse::{EtherType, Ethernet2HeaderSlice, SingleVlanHeaderSlice};

/// An 802.1Q tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct VlanTag {
    /// Priority, 3 bits.
    pub pcp: u8,
    /// Drop eligible.
    pub dei: bool,
    /// VLAN, 12 bits.
    pub id: u16,
}

/// What stands before the IP header.
pub(super) struct Link<'a> {
    pub(super) destination: MacAddr,
    pub(super) source: MacAddr,
    pub(super) vlan: Option<VlanTag>,
    /// IPv4, not IPv6.
    pub(super) is_v4: bool,
    /// What follows.
    pub(super) payload: &'a [u8],
}

impl<'a> Link<'a> {
    #[inline(always)]
    pub(super) fn parse(frame: &'a [u8]) -> Result<Self, Malformed> {
        let header = Ethernet2HeaderSlice::from_slice(frame).map_err(|_| Malformed::TooShort)?;
        let behind = &frame[header.slice().len()..];
        let (vlan, ether_type, payload) = match header.ether_type() {
            EtherType::VLAN_TAGGED_FRAME => parse_tag(behind)?,
            other => (None, other, behind),
        };
        let is_v4 = match ether_type {
            EtherType::IPV4 => true,
            EtherType::IPV6 => false,
            _ => return Err(Malformed::NotRoce),
        };
        let (destination, source) = (MacAddr(header.destination()), MacAddr(header.source()));
        Ok(Self { destination, source, vlan, is_v4, payload })
    }
}

fn parse_tag(bytes: &[u8]) -> Result<(Option<VlanTag>, EtherType, &[u8]), Malformed> {
    let tag = SingleVlanHeaderSlice::from_slice(bytes).map_err(|_| Malformed::TooShort)?;
    let vlan = VlanTag {
        pcp: tag.priority_code_point().value(),
        dei: tag.drop_eligible_indicator(),
        id: tag.vlan_identifier().value(),
    };
    Ok((Some(vlan), tag.ether_type(), &bytes[tag.slice().len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: [u8; 18] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x81, 0, 0x60, 0x64, 0x08, 0];

    #[test]
    fn reads_addresses_and_tag() {
        let link = Link::parse(&FRAME).unwrap();
        assert_eq!(link.destination, MacAddr([1, 2, 3, 4, 5, 6]));
        assert_eq!(link.source, MacAddr([7, 8, 9, 10, 11, 12]));
        assert_eq!(link.vlan, Some(VlanTag { pcp: 3, dei: false, id: 100 }));
        assert!(link.is_v4 && link.payload.is_empty());
    }

    #[test]
    fn cut_short_is_refused() {
        for len in 0..FRAME.len() {
            assert_eq!(Link::parse(&FRAME[..len]).err(), Some(Malformed::TooShort), "{len} bytes");
        }
    }

    #[test]
    fn x07_other_protocols_and_tags_are_not_ours() {
        for ether_type in [[0x89, 0x15], [0x08, 0x06], [0x88, 0xa8], [0, 46]] {
            let mut frame = FRAME;
            frame[12..14].copy_from_slice(&ether_type);
            assert_eq!(Link::parse(&frame).err(), Some(Malformed::NotRoce));
        }
        let mut frame = FRAME;
        frame[16..].copy_from_slice(&[0x81, 0]);
        assert_eq!(Link::parse(&frame).err(), Some(Malformed::NotRoce), "a second tag");
    }
}
