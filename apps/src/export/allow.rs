//! Who may connect.

use std::net::IpAddr;
use std::str::FromStr;

/// Addresses that begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Network {
    address: IpAddr,
    prefix: u8,
}

impl Network {
    pub(super) fn contains(self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                (ours.to_bits() ^ theirs.to_bits()).leading_zeros() >= u32::from(self.prefix)
            }
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => {
                (ours.to_bits() ^ theirs.to_bits()).leading_zeros() >= u32::from(self.prefix)
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    /// An address, which stands for itself, or an address and the length of a prefix.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text} is no network: give such as 192.0.2.0/24, fd00::/8, or one address");
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix.parse::<u8>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.unwrap_or(most);
        if prefix > most { Err(wrong()) } else { Ok(Self { address, prefix }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(network: &str, address: &str) -> bool {
        network.parse::<Network>().unwrap().contains(address.parse().unwrap())
    }

    #[test]
    fn prefixes_of_every_length() {
        assert!(contains("10.1.2.3/8", "10.255.0.1") && !contains("10.1.2.3/8", "11.1.2.3"));
        assert!(contains("192.0.2.128/25", "192.0.2.129") && !contains("192.0.2.128/25", "192.0.2.127"));
        assert!(contains("192.0.2.1", "192.0.2.1") && !contains("192.0.2.1", "192.0.2.2"));
        assert!(contains("0.0.0.0/0", "203.0.113.9") && !contains("0.0.0.0/0", "::1"));
        assert!(contains("fd00::/8", "fd77::1") && !contains("fd00::/8", "fe80::1"));
        assert!(contains("192.0.2.1", "::ffff:192.0.2.1"));
    }

    #[test]
    fn what_is_no_network() {
        for text in ["", "eth0", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/-1", "/8"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
