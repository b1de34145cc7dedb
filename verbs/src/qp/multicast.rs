//! Members of multicast groups.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;

use super::QueuePair;
use crate::driver::lock;
use crate::error::Error;
use crate::gid::Gid;
use crate::os::Membership;

/// The groups that a queue pair is in, each with what keeps the interface listening.
pub(super) type Groups = Mutex<HashMap<IpAddr, Option<Membership>>>;

impl QueuePair {
    /// Makes a UD queue pair a member of a multicast group (`ibv_attach_mcast`): it gets a copy of every datagram to it
    /// that has its Q_Key, also of those sent here. The interface listens to the group until the queue pair leaves it or
    /// is dropped. To attach it again changes nothing.
    ///
    /// # Errors
    /// [`Error::Refused`] when the address is none of multicast, the queue pair is not UD, or there are as many groups or
    /// members as the device allows; [`Error::System`] when the kernel does not let the interface listen.
    pub fn attach_multicast(&self, group: impl Into<Gid>) -> Result<(), Error> {
        let group = group.into().ip();
        let mut groups = lock(&self.groups);
        if groups.contains_key(&group) {
            return Ok(());
        }
        let context = self.pd.context();
        context.core().control(|port, _| port.engine.attach_multicast(self.qpn, group))?;
        match context.listen_to(group) {
            Ok(membership) => {
                groups.insert(group, membership);
                Ok(())
            }
            Err(error) => {
                self.leave(group)?;
                Err(error)
            }
        }
    }

    /// Takes it out of a multicast group (`ibv_detach_mcast`).
    ///
    /// # Errors
    /// [`Error::Refused`] when it is not in it.
    pub fn detach_multicast(&self, group: impl Into<Gid>) -> Result<(), Error> {
        let group = group.into().ip();
        let mut groups = lock(&self.groups);
        self.leave(group)?;
        groups.remove(&group);
        Ok(())
    }

    fn leave(&self, group: IpAddr) -> Result<(), Error> {
        let core = self.pd.context().core();
        Ok(core.control(|port, _| port.engine.detach_multicast(self.qpn, group))?)
    }
}
