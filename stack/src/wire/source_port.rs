//! The UDP source port, which spreads flows over paths (protocol section 1.2).

use super::Qpn;

/// The UDP source port of a connection, 0xc000..=0xffff, by the rule that Linux and hardware share.
///
/// A flow label of 0 is replaced by one made of both queue pair numbers, the same on either side.
pub fn source_port(flow_label: u32, local: Qpn, remote: Qpn) -> u16 {
    let label = match flow_label & 0xf_ffff {
        0 => label_of(local, remote),
        label => label,
    };
    (label & 0x3fff ^ label >> 14 | 0xc000) as u16
}

/// A 20-bit label, the same when the numbers trade places.
fn label_of(local: Qpn, remote: Qpn) -> u32 {
    let mut value = u64::from(local.get()) * u64::from(remote.get());
    value ^= value >> 20;
    value ^= value >> 40;
    (value & 0xf_ffff) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_seen_on_the_wire() {
        assert_eq!(source_port(0x6c51f, Qpn::new(1), Qpn::new(2)), 0xc504);
        assert_eq!(source_port(0, Qpn::new(0x11), Qpn::new(0x11)), 0xc121);
    }

    #[test]
    fn both_sides_agree_and_stay_in_range() {
        for (a, b) in [(2, 0xff_fffe), (0x123456, 0xabcdef), (0xff_ffff, 0xff_ffff)] {
            let (a, b) = (Qpn::new(a), Qpn::new(b));
            assert_eq!(source_port(0, a, b), source_port(0, b, a));
            assert!(source_port(0, a, b) >= 0xc000);
        }
        assert_eq!(source_port(0xf_ffff, Qpn::new(1), Qpn::new(1)), 0x3fff ^ 0x3f | 0xc000);
    }
}
