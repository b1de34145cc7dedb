//! Ethernet addresses.

use core::fmt;
use core::str::FromStr;

/// An Ethernet address, first byte first on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// Whether the address names a group; the broadcast address does.
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// The text is not an Ethernet address; write six pairs of hexadecimal digits with colons between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an Ethernet address: expected six pairs of hexadecimal digits like 02:00:00:00:00:01")]
pub struct ParseMacError;

impl FromStr for MacAddr {
    type Err = ParseMacError;

    fn from_str(text: &str) -> Result<Self, ParseMacError> {
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            *byte = parse_pair(parts.next().ok_or(ParseMacError)?)?;
        }
        if parts.next().is_some() {
            return Err(ParseMacError);
        }
        Ok(Self(bytes))
    }
}

fn parse_pair(text: &str) -> Result<u8, ParseMacError> {
    // `from_str_radix` alone would take "+1".
    let hex = text.len() == 2 && text.bytes().all(|b| b.is_ascii_hexdigit());
    if hex { u8::from_str_radix(text, 16).map_err(|_| ParseMacError) } else { Err(ParseMacError) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn text_round_trips() {
        let mac: MacAddr = "e4:1D:2d:ab:2b:c2".parse().unwrap();
        assert_eq!(mac, MacAddr([0xe4, 0x1d, 0x2d, 0xab, 0x2b, 0xc2]));
        assert_eq!(mac.to_string(), "e4:1d:2d:ab:2b:c2");
    }

    #[test]
    fn bad_text_is_refused() {
        for text in
            ["", "e4:1d:2d:ab:2b", "e4:1d:2d:ab:2b:c2:00", "e4:1d:2d:ab:2b:+2", "e41d2dab2bc2", "1:2:3:4:5:6"]
        {
            assert_eq!(text.parse::<MacAddr>(), Err(ParseMacError), "{text}");
        }
    }

    #[test]
    fn multicast_is_the_lowest_bit_of_the_first_byte() {
        assert!(MacAddr([0x33, 0x33, 0, 0, 0, 1]).is_multicast());
        assert!(!MacAddr([0x52, 0x54, 0, 0, 0, 1]).is_multicast());
    }
}
