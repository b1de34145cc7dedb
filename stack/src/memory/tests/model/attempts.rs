//! Attempts to reach bytes through every key.

use super::World;
use super::dice::{ADDRESSES, Dice, LENGTHS, RIGHTS, SUBJECTS};
use crate::memory::Crc;
use crate::memory::tests::*;
use crate::work::Sge;

impl World {
    /// Tries every key that ever was, and its neighbour, as everybody.
    pub(super) fn try_everything(&self, mut dice: Dice<'_>) {
        let (va, len, rights) = (dice.mostly(&ADDRESSES), dice.pick(&LENGTHS), dice.mostly(&RIGHTS));
        for key in self.keys.iter().flat_map(|key| [*key, key ^ 1]) {
            for by in SUBJECTS {
                self.try_remote(by, RemoteAddr { va, rkey: key }, len, rights);
            }
            self.try_local(Sge { addr: va, length: len as u32, lkey: key }, rights);
        }
    }

    fn try_remote(&self, by: Subject, remote: RemoteAddr, len: u64, rights: Access) {
        let expected = self.reached(by.pd, Some(by.qp), remote.rkey, (remote.va, len), rights);
        let found = self.host.memory.check_remote(by, remote, len, rights);
        assert_eq!(found.is_ok(), expected.is_some(), "{by:?} {remote:?} {len} {rights:?}");
        let (Some((memory, offset)), Access::REMOTE_READ) = (expected, rights) else { return };
        let (mut there, mut here) = (std::vec![0; len as usize], std::vec![0; len as usize]);
        assert!(self.host.memory.read_remote(by, remote, &mut there, Crc::new()).is_ok());
        assert!(memory.read_at(offset as usize, &mut here));
        assert_eq!(there, here);
    }

    fn try_local(&self, sge: Sge, rights: Access) {
        let at = (sge.addr, u64::from(sge.length));
        for pd in [PD, OTHER_PD] {
            let is_expected = sge.length == 0 || self.reached(pd, None, sge.lkey, at, rights).is_some();
            let found = self.host.memory.check_local(pd, &[sge], rights);
            assert_eq!(found.is_ok(), is_expected, "{pd:?} {sge:?} {rights:?}");
        }
    }
}
