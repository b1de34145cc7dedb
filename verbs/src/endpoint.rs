//! What two applications tell each other before they connect.

use std::fmt;
use std::str::FromStr;

use uroce_stack::wire::{Psn, Qpn};

use crate::error::ParseError;
use crate::gid::Gid;

/// One end of a connection: where it is, which queue pair, and the packet sequence number it starts to send
/// with.
///
/// Its text is what the `ibv_*_pingpong` programs exchange: `LID:QPN:PSN:GID` in hexadecimal, of 4, 6, 6 and
/// 32 digits. The LID is 0 on Ethernet.
///
/// ```
/// let text = "0000:000011:abcdef:00000000000000000000ffff0a000001";
/// let endpoint: uroce::Endpoint = text.parse()?;
/// assert_eq!(endpoint.gid.to_string(), "::ffff:10.0.0.1");
/// assert_eq!(endpoint.to_string(), text);
/// # Ok::<(), uroce::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The address of the port.
    pub gid: Gid,
    /// The queue pair.
    pub qpn: Qpn,
    /// The first packet sequence number that it sends; the peer expects it (`rq_psn`).
    pub psn: Psn,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0000:{:06x}:{:06x}:", self.qpn.get(), self.psn.get())?;
        self.gid.bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Endpoint {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        parse(text).ok_or_else(|| ParseError::endpoint(text))
    }
}

fn parse(text: &str) -> Option<Endpoint> {
    let mut fields = text.trim_end_matches(['\0', '\n', '\r']).split(':');
    let _lid = hex(fields.next()?, 4)?;
    let qpn = Qpn::new(hex(fields.next()?, 6)? as u32);
    let psn = Psn::new(hex(fields.next()?, 6)? as u32);
    let gid = Gid::from_bytes(hex(fields.next()?, 32)?.to_be_bytes());
    fields.next().is_none().then_some(Endpoint { gid, qpn, psn })
}

/// The value of exactly `digits` hexadecimal digits.
fn hex(field: &str, digits: usize) -> Option<u128> {
    let valid = field.len() == digits && field.bytes().all(|byte| byte.is_ascii_hexdigit());
    valid.then(|| u128::from_str_radix(field, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_the_pingpong_programs_is_read() {
        // As they send it: 52 characters and a NUL.
        let text = "0000:0000a1:00beef:fe80000000000000021122fffe334455\0";
        let endpoint: Endpoint = text.parse().expect("an endpoint");
        assert_eq!((endpoint.qpn.get(), endpoint.psn.get()), (0xa1, 0xbeef));
        assert_eq!(endpoint.to_string(), text.trim_end_matches('\0'));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in
            ["", "0000:11:22:33", "0000:+00011:abcdef:00000000000000000000ffff0a000001", "0000:000011:abcdef"]
        {
            assert!(text.parse::<Endpoint>().is_err(), "{text:?}");
        }
    }
}
