//! What applications say to each other in messages of connection management.

use core::fmt;

/// The private data of a message that has room for `N` bytes. Its length is not on the wire: what is not given is 0.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PrivateData<const N: usize>([u8; N]);

impl<const N: usize> PrivateData<N> {
    /// `data`, filled up with zeros; `None` when it is longer than `N`.
    #[must_use]
    pub fn new(data: &[u8]) -> Option<Self> {
        let mut bytes = [0; N];
        bytes.get_mut(..data.len())?.copy_from_slice(data);
        Some(Self(bytes))
    }

    /// All `N` bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; N] {
        &self.0
    }
}

impl<const N: usize> From<[u8; N]> for PrivateData<N> {
    fn from(bytes: [u8; N]) -> Self {
        Self(bytes)
    }
}

impl<const N: usize> Default for PrivateData<N> {
    /// All zeros.
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> fmt::Debug for PrivateData<N> {
    /// Without the zeros at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = self.0.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        write!(f, "PrivateData({:02x?} of {N} bytes)", &self.0[..used])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_up_and_refuses_more() {
        let data = PrivateData::<4>::new(b"abc").unwrap();
        assert_eq!(data.as_bytes(), b"abc\0");
        assert_eq!(std::format!("{data:?}"), "PrivateData([61, 62, 63] of 4 bytes)");
        assert_eq!(PrivateData::<4>::new(b"abcde"), None);
        assert_eq!(PrivateData::<4>::new(&[]), Some(PrivateData::default()));
    }
}
