//! Who listens to what.

use alloc::vec::Vec;
use core::net::IpAddr;

use super::params::ListenParams;
use super::{CmError, ListenId};
use crate::qp::QpType;
use crate::wire::cm::ServiceId;

/// A listener, and what it asked for.
pub(super) type Listener = (ListenId, ListenParams);

/// Listeners at most.
const LIMIT: u32 = 4096;

#[derive(Debug, Default)]
pub(super) struct Listeners {
    each: Vec<Listener>,
    next: u64,
}

impl Listeners {
    pub(super) fn insert(&mut self, params: &ListenParams) -> Result<ListenId, CmError> {
        check(params)?;
        if self.each.iter().any(|(_, other)| overlap(params, other)) {
            return Err(CmError::AddressInUse(params.service_id));
        }
        if self.each.len() >= LIMIT as usize {
            return Err(CmError::Exhausted { what: "listener", limit: LIMIT });
        }
        let id = ListenId(self.next);
        self.next += 1;
        self.each.push((id, *params));
        Ok(id)
    }

    pub(super) fn remove(&mut self, id: ListenId) -> Result<(), CmError> {
        let place = self.each.iter().position(|(other, _)| *other == id).ok_or(CmError::NotFound)?;
        self.each.swap_remove(place);
        Ok(())
    }

    /// Who listens to `service_id` at `address`: whoever names the address before whoever does not.
    pub(super) fn find(&self, service_id: ServiceId, address: IpAddr, datagrams: bool) -> Option<Listener> {
        let listens = |params: &ListenParams| {
            (service_id.0 ^ params.service_id.0) & params.mask == 0
                && params.address.is_none_or(|own| own == address)
                && (params.qp_type == QpType::Ud) == datagrams
        };
        let mut matching = self.each.iter().filter(|(_, params)| listens(params)).copied();
        let first = matching.next()?;
        Some(matching.find(|_| first.1.address.is_none()).unwrap_or(first))
    }
}

fn check(params: &ListenParams) -> Result<(), CmError> {
    if !matches!(params.qp_type, QpType::Rc | QpType::Uc | QpType::Ud) {
        return Err(CmError::Invalid("connections are RC or UC, questions are after UD"));
    }
    match params.backlog {
        Some(0) => Err(CmError::Invalid("a backlog of 0 admits nobody")),
        _ => Ok(()),
    }
}

/// Whether a request could be for both.
fn overlap(a: &ListenParams, b: &ListenParams) -> bool {
    (a.service_id.0 ^ b.service_id.0) & a.mask & b.mask == 0
        && a.address == b.address
        && (a.qp_type == QpType::Ud) == (b.qp_type == QpType::Ud)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVICE: ServiceId = ServiceId(0x0106_1234);

    #[test]
    fn the_address_decides_before_the_order() {
        let here = "10.0.0.1".parse().unwrap();
        let any = ListenParams::new(SERVICE, QpType::Rc);
        for order in [[None, Some(here)], [Some(here), None]] {
            let mut listeners = Listeners::default();
            let ids = order.map(|address| listeners.insert(&ListenParams { address, ..any }).unwrap());
            let found = |address| listeners.find(SERVICE, address, false).map(|(id, _)| id);
            let (at_any, at_here) = if order[0].is_none() { (ids[0], ids[1]) } else { (ids[1], ids[0]) };
            assert_eq!(found(here), Some(at_here));
            assert_eq!(found("10.0.0.2".parse().unwrap()), Some(at_any));
        }
    }

    #[test]
    fn ranges_overlap_and_datagrams_are_apart() {
        let mut listeners = Listeners::default();
        let all = ListenParams { mask: !0xffff, ..ListenParams::new(SERVICE, QpType::Rc) };
        let id = listeners.insert(&all).unwrap();
        let one = ListenParams::new(ServiceId(SERVICE.0 + 1), QpType::Rc);
        assert_eq!(listeners.insert(&one), Err(CmError::AddressInUse(one.service_id)));
        assert!(listeners.insert(&ListenParams { qp_type: QpType::Ud, ..one }).is_ok());
        assert_eq!(listeners.remove(id), Ok(()));
        assert_eq!(listeners.remove(id), Err(CmError::NotFound));
        assert!(listeners.insert(&one).is_ok());
    }

    #[test]
    fn no_listener_for_nobody_or_other_types() {
        let params = ListenParams::new(SERVICE, QpType::Rc);
        let mut listeners = Listeners::default();
        assert!(listeners.insert(&ListenParams { backlog: Some(0), ..params }).is_err());
        assert!(listeners.insert(&ListenParams { qp_type: QpType::Gsi, ..params }).is_err());
    }
}
