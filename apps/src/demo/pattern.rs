//! Bytes that tell which message they belong to, and where in it: any byte lost, doubled or moved is noticed.

use super::case::Case;

/// The bytes of message `number`.
pub(crate) fn message(case: &Case, number: u32) -> Vec<u8> {
    let words = (0u64..).map(|word| mix(case.seed << 52 ^ u64::from(number) << 32 ^ word));
    words.flat_map(u64::to_le_bytes).take(case.size as usize).collect()
}

/// The bytes of all messages, one after the other.
pub(crate) fn all(case: &Case) -> Vec<u8> {
    (0..case.messages).flat_map(|number| message(case, number)).collect()
}

/// The messages of which every byte is right.
pub(crate) fn right(case: &Case, bytes: &[u8]) -> u32 {
    let is_right = |number: &u32| {
        let start = case.slot(*number);
        bytes.get(start..start + case.size as usize) == Some(&message(case, *number)[..])
    };
    (0..case.messages).filter(is_right).count() as u32
}

/// A bijection that scatters its bits (the finalizer of SplitMix64).
const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::super::case::Operation;
    use super::*;

    #[test]
    fn one_wrong_byte_is_noticed() {
        let case = Case { operation: Operation::Write, size: 1001, messages: 3, seed: 7 };
        let mut bytes = all(&case);
        assert_eq!(right(&case, &bytes), 3);
        bytes[1001 + 1000] ^= 1;
        assert_eq!(right(&case, &bytes), 2);
        bytes.swap(0, 8);
        assert_eq!(right(&case, &bytes), 1);
        assert_eq!(right(&case, &bytes[..2]), 0);
    }
}
