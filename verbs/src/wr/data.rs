//! The data of a send work request.

use uroce_stack::{Gather, SendFlags, Sge};

use super::sge::{INLINE_SGES, SgeList};

/// Bytes of inline data that are kept in place; as large as the entries.
const INLINE_BYTES: usize = INLINE_SGES * size_of::<Sge>();

#[derive(Clone, Debug)]
pub(super) enum Data {
    Sges(SgeList),
    Short { count: u8, bytes: [u8; INLINE_BYTES] },
    Long(Box<[u8]>),
}

impl Data {
    pub(super) fn inline(from: &[u8]) -> Self {
        if from.len() > INLINE_BYTES {
            return Self::Long(from.into());
        }
        let mut bytes = [0; INLINE_BYTES];
        bytes[..from.len()].copy_from_slice(from);
        Self::Short { count: from.len() as u8, bytes }
    }

    pub(super) fn gather(&self) -> Gather<'_> {
        match self {
            Self::Sges(sges) => Gather::Sges(sges.as_slice()),
            Self::Short { count, bytes } => Gather::Inline(&bytes[..usize::from(*count)]),
            Self::Long(bytes) => Gather::Inline(bytes),
        }
    }

    /// The flags that go with it.
    pub(super) const fn flags(&self) -> SendFlags {
        match self {
            Self::Sges(_) => SendFlags::empty(),
            Self::Short { .. } | Self::Long(_) => SendFlags::INLINE,
        }
    }
}

/// The 8 bytes of an [ATOMIC WRITE](super::SendWr::atomic_write): an [`Sge`] of registered memory, the bytes as they are
/// to stand in memory, or a number in host order. Bytes and numbers are copied when posted, and need a queue pair made
/// with a `max_inline_data` of 8 or more.
#[derive(Clone, Debug)]
pub struct Word(pub(super) Data);

impl From<Sge> for Word {
    fn from(sge: Sge) -> Self {
        Self(Data::Sges(sge.into()))
    }
}

impl From<[u8; 8]> for Word {
    fn from(bytes: [u8; 8]) -> Self {
        Self(Data::inline(&bytes))
    }
}

impl From<&[u8; 8]> for Word {
    fn from(bytes: &[u8; 8]) -> Self {
        Self::from(*bytes)
    }
}

impl From<u64> for Word {
    fn from(value: u64) -> Self {
        Self::from(value.to_ne_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inline_data_of_every_length_is_kept() {
        for length in [0, 1, INLINE_BYTES, INLINE_BYTES + 1, 512] {
            let bytes = vec![0x5a; length];
            let data = Data::inline(&bytes);
            assert!(matches!(data.gather(), Gather::Inline(kept) if kept == bytes));
            assert_eq!(data.flags(), SendFlags::INLINE);
        }
    }

    #[test]
    fn a_word_is_memory_bytes_or_a_number() {
        let inline = |word: Word| match word.0.gather() {
            Gather::Inline(bytes) => bytes.to_vec(),
            Gather::Sges(_) => Vec::new(),
        };
        assert_eq!(inline(7_u64.into()), 7_u64.to_ne_bytes());
        assert_eq!(inline((*b"in order").into()), b"in order");
        assert!(matches!(Word::from(Sge::default()).0.gather(), Gather::Sges([_])));
    }
}
