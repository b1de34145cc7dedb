//! Multicast groups: who gets a copy of a datagram (IBTA, Attach QP to Multicast Group).

use alloc::vec::Vec;
use core::net::IpAddr;

use hashbrown::HashMap;

use super::Engine;
use crate::counters::Counter;
use crate::error::Error;
use crate::time::Instant;
use crate::wire::{Packet, Qpn};

/// The members of every group that has any.
#[derive(Debug, Default)]
pub(super) struct Groups {
    members: HashMap<IpAddr, Vec<u32>>,
}

impl Groups {
    fn join(&mut self, group: IpAddr, place: u32, limits: (u32, u32)) -> Result<(), Error> {
        let (max_groups, max_members) = limits;
        if !self.members.contains_key(&group) && self.members.len() as u64 >= u64::from(max_groups) {
            return Err(Error::Exhausted { what: "multicast group", limit: max_groups });
        }
        let members = self.members.entry(group).or_default();
        if members.contains(&place) {
            return Ok(());
        }
        if members.len() as u64 >= u64::from(max_members) {
            return Err(Error::Exhausted { what: "place in the multicast group", limit: max_members });
        }
        members.push(place);
        Ok(())
    }

    fn leave(&mut self, group: IpAddr, place: u32) -> bool {
        let Some(members) = self.members.get_mut(&group) else { return false };
        let before = members.len();
        members.retain(|member| *member != place);
        let left = members.len() < before;
        if members.is_empty() {
            self.members.remove(&group);
        }
        left
    }

    /// The queue pair is gone.
    pub(super) fn forget(&mut self, place: u32) {
        self.members.retain(|_, members| {
            members.retain(|member| *member != place);
            !members.is_empty()
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    fn member(&self, group: &IpAddr, number: usize) -> Option<u32> {
        self.members.get(group)?.get(number).copied()
    }
}

impl Engine {
    /// Adds a UD queue pair to the multicast group of that address: it gets a copy of every datagram to the group whose
    /// Q_Key is its own, also of those that queue pairs of this engine send. To attach it again changes nothing.
    ///
    /// The interface must listen to the group, too: that is the caller's.
    ///
    /// # Errors
    /// When the address is no multicast address, when the queue pair does not exist or is not UD, or when there are as
    /// many groups or members as the limits allow.
    pub fn attach_multicast(&mut self, qpn: Qpn, group: IpAddr) -> Result<(), Error> {
        let limits = (self.config.limits.max_mcast_grp, self.config.limits.max_mcast_qp_attach);
        if !group.is_multicast() {
            return Err(Error::Invalid("that is no multicast address: those are 224.0.0.0/4 and ff00::/8"));
        }
        let place = self.datagram_place(qpn)?;
        self.groups.join(group, place, limits)
    }

    /// Takes a queue pair out of a multicast group.
    ///
    /// # Errors
    /// When it is not in it.
    pub fn detach_multicast(&mut self, qpn: Qpn, group: IpAddr) -> Result<(), Error> {
        let place = self.datagram_place(qpn)?;
        if self.groups.leave(group, place) {
            Ok(())
        } else {
            Err(Error::NotFound("member of the multicast group"))
        }
    }

    fn datagram_place(&self, qpn: Qpn) -> Result<u32, Error> {
        let place = self.qpns.get(qpn.get()).ok_or(Error::NotFound("queue pair"))?;
        match self.qps.get(place) {
            Some(qp) if qp.init().qp_type.is_datagram() => Ok(place),
            _ => Err(Error::Invalid("only datagram (UD) queue pairs are members of multicast groups")),
        }
    }

    /// A copy for each member, but for a sender that does not want its own.
    pub(super) fn deliver(&mut self, now: Instant, packet: &Packet<'_>, sender: Option<u32>) {
        let group = packet.ip.destination;
        if self.groups.member(&group, 0).is_none() && sender.is_none() {
            return self.counters.add(Counter::NoGroup);
        }
        let mut number = 0;
        while let Some(place) = self.groups.member(&group, number) {
            number += 1;
            if sender != Some(place) || !self.blocks_own(place) {
                self.deliver_to(now, place, packet);
            }
        }
    }

    fn blocks_own(&self, place: u32) -> bool {
        self.qps.get(place).is_some_and(|qp| qp.init().block_multicast_loopback)
    }

    fn deliver_to(&mut self, now: Instant, place: u32, packet: &Packet<'_>) {
        self.counters.add(Counter::MulticastDelivered);
        self.hand_over(now, place, packet);
    }
}
