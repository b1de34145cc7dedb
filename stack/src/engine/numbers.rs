//! Objects that are nothing but a number.

use hashbrown::HashSet;

use crate::error::Error;

/// Which numbers are in use.
#[derive(Debug)]
pub(super) struct Numbers {
    used: HashSet<u32>,
    next: u32,
    what: &'static str,
    limit: u32,
}

impl Numbers {
    pub(super) fn new(what: &'static str, limit: u32) -> Self {
        Self { used: HashSet::new(), next: 0, what, limit }
    }

    /// A number that was not used for as long as possible.
    pub(super) fn take(&mut self) -> Result<u32, Error> {
        if self.used.len() as u64 >= u64::from(self.limit) {
            return Err(Error::Exhausted { what: self.what, limit: self.limit });
        }
        while !self.used.insert(self.next) {
            self.next = self.next.wrapping_add(1);
        }
        self.next = self.next.wrapping_add(1);
        Ok(self.next.wrapping_sub(1))
    }

    pub(super) fn release(&mut self, number: u32) {
        self.used.remove(&number);
    }

    pub(super) fn check(&self, number: u32) -> Result<(), Error> {
        if self.used.contains(&number) { Ok(()) } else { Err(Error::NotFound(self.what)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_bounded_and_not_used_again_at_once() {
        let mut numbers = Numbers::new("thing", 2);
        assert_eq!((numbers.take(), numbers.take()), (Ok(0), Ok(1)));
        assert_eq!(numbers.take(), Err(Error::Exhausted { what: "thing", limit: 2 }));
        numbers.release(0);
        assert_eq!(numbers.check(0), Err(Error::NotFound("thing")));
        assert_eq!(numbers.take(), Ok(2));
        assert_eq!(numbers.check(2), Ok(()));
    }
}
