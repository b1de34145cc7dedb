//! The data of a ping.

/// The letters that follow each other.
const LETTERS: std::ops::RangeInclusive<u8> = b'A'..=b'z';

/// The data of one ping, as rping makes it: its number, then letters from one that is the next with each ping, then a
/// zero.
pub(super) fn make(number: u64, size: usize) -> Vec<u8> {
    let count = usize::from(LETTERS.end() - LETTERS.start() + 1);
    let first = (number % count as u64) as usize;
    let mut data = format!("rdma-ping-{number}: ").into_bytes();
    let letters = LETTERS.cycle().skip(first);
    data.extend(letters.take(size.saturating_sub(data.len())));
    data.truncate(size.saturating_sub(1));
    data.push(0);
    data
}

/// The part of a buffer that is text: what is printed, and with its zero what is sent back.
pub(super) fn of(buffer: &[u8]) -> &[u8] {
    let end = buffer.iter().position(|byte| *byte == 0).unwrap_or(buffer.len());
    &buffer[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_move_on_with_each_ping() {
        let text = |number| String::from_utf8(make(number, 26)).unwrap();
        assert_eq!(text(0), "rdma-ping-0: ABCDEFGHIJKL\0");
        assert_eq!(text(2), "rdma-ping-2: CDEFGHIJKLMN\0");
        assert_eq!(text(57), "rdma-ping-57: zABCDEFGHIJ\0");
        assert_eq!(text(58), "rdma-ping-58: ABCDEFGHIJK\0");
        assert_eq!(make(u64::MAX, 26).len(), 26);
    }

    #[test]
    fn text_ends_at_its_zero() {
        assert_eq!(of(&make(3, 64)).len(), 63);
        assert_eq!((of(b"ab"), of(b"")), (&b"ab"[..], &b""[..]));
    }
}
