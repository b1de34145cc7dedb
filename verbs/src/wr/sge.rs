//! Lists of scatter/gather entries.

use uroce_stack::Sge;

/// Entries that are kept in place before they move to the heap.
pub(super) const INLINE_SGES: usize = 4;

/// A list of scatter/gather entries: from one [`Sge`], from an array, a slice or a vector of them.
///
/// ```
/// use uroce::{Sge, SgeList};
/// let one: SgeList = Sge::default().into();
/// let none: SgeList = [].into();
/// assert_eq!((one.as_slice().len(), none.as_slice().len()), (1, 0));
/// ```
#[derive(Clone, Debug)]
pub struct SgeList(List);

#[derive(Clone, Debug)]
enum List {
    Few { count: u8, sges: [Sge; INLINE_SGES] },
    Many(Box<[Sge]>),
}

impl SgeList {
    /// The entries.
    #[must_use]
    pub fn as_slice(&self) -> &[Sge] {
        match &self.0 {
            List::Few { count, sges } => &sges[..usize::from(*count)],
            List::Many(sges) => sges,
        }
    }
}

impl From<&[Sge]> for SgeList {
    fn from(from: &[Sge]) -> Self {
        if from.len() > INLINE_SGES {
            return Self(List::Many(from.into()));
        }
        let mut sges = [Sge::default(); INLINE_SGES];
        sges[..from.len()].copy_from_slice(from);
        Self(List::Few { count: from.len() as u8, sges })
    }
}

impl<const N: usize> From<[Sge; N]> for SgeList {
    fn from(sges: [Sge; N]) -> Self {
        sges.as_slice().into()
    }
}

impl From<Vec<Sge>> for SgeList {
    fn from(sges: Vec<Sge>) -> Self {
        sges.as_slice().into()
    }
}

impl From<Sge> for SgeList {
    fn from(sge: Sge) -> Self {
        [sge].into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_every_length_keep_their_entries() {
        for count in 0..=32 {
            let sges: Vec<Sge> = (0..count).map(|n| Sge { addr: n.into(), length: n, lkey: n }).collect();
            assert_eq!(SgeList::from(sges.clone()).as_slice(), sges);
        }
    }
}
