//! Memory contents on the wire: hexadecimal text.

use std::fmt::Write;

/// Bytes as lower-case hexadecimal digits.
pub(super) fn encode(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // writing to a String cannot fail
        text
    })
}

/// The bytes of hexadecimal text; nothing if it is not that.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).map(|value| value as u8)).collect();
    let digits = digits?;
    (digits.len() % 2 == 0).then(|| digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn there_and_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&bytes)), Some(bytes));
        assert_eq!(encode(&[0, 0xab]), "00ab");
    }

    #[test]
    fn what_is_not_hexadecimal_is_nothing() {
        assert_eq!(decode("0"), None);
        assert_eq!(decode("0g"), None);
    }
}
