//! Numbers of 64 bits on the command line.

/// Reads an offset or a length in bytes: decimal, hexadecimal after `0x`, or decimal with K, M, G or T for powers of 1024.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text} is no number of bytes: give such as 4096, 0x1000, 64K, 8M, 1G");
    let Some((last, digits)) = text.chars().next_back().zip(text.get(..text.len().saturating_sub(1))) else {
        return Err(wrong());
    };
    let shift = match last {
        'k' | 'K' => 10,
        'm' | 'M' => 20,
        'g' | 'G' => 30,
        't' | 'T' => 40,
        _ => return word(text).map_err(|_| wrong()),
    };
    let number = plain(digits).ok_or_else(wrong)?;
    number.checked_mul(1 << shift).ok_or_else(wrong)
}

/// The same of at least 1.
pub(super) fn size(text: &str) -> Result<u64, String> {
    bytes(text)
        .and_then(|size| if size > 0 { Ok(size) } else { Err("0 bytes are nothing to show".to_owned()) })
}

/// Reads a word of 64 bits: decimal, or hexadecimal after `0x`.
pub(super) fn word(text: &str) -> Result<u64, String> {
    let hexadecimal = text.strip_prefix("0x").filter(|digits| !digits.starts_with('+'));
    let read = hexadecimal.map_or_else(|| plain(text), |digits| u64::from_str_radix(digits, 16).ok());
    read.ok_or_else(|| {
        format!("{text} is no word of 64 bits: give a decimal number, or a hexadecimal one after 0x")
    })
}

/// Digits and nothing else.
fn plain(digits: &str) -> Option<u64> {
    Some(digits).filter(|digits| !digits.starts_with('+')).and_then(|digits| digits.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_every_kind() {
        let good =
            [("0", 0), ("4096", 4096), ("0x1000", 4096), ("64K", 65536), ("3m", 3 << 20), ("1T", 1 << 40)];
        for (text, number) in good {
            assert_eq!(bytes(text), Ok(number), "{text}");
        }
        for text in ["", "K", "-1", "+1", "0x", "0x+1", "1.5M", "é", "20000000T", "99999999999999999999"] {
            assert!(bytes(text).is_err(), "{text}");
        }
        assert!(size("0").is_err() && size("1") == Ok(1));
    }

    #[test]
    fn words() {
        assert_eq!(word("0xffffffffffffffff"), Ok(u64::MAX));
        assert_eq!(word("18446744073709551615"), Ok(u64::MAX));
        assert!(word("1K").is_err() && word("18446744073709551616").is_err());
    }
}
