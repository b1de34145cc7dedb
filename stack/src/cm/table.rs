//! All connections, and how messages find theirs.

use alloc::collections::VecDeque;
use core::net::IpAddr;

use hashbrown::HashMap;

use super::conn::{CmState, Conn, Remote};
use super::{CmError, ConnId};
use crate::memory::Keys;
use crate::rng::Rng;
use crate::slab::Slab;
use crate::time::Instant;
use crate::wire::Qpn;

/// A place in the table.
pub(super) type Place = u32;

/// Identifiers of peers are told apart by peer, so that nobody touches the connections of others.
#[derive(Debug)]
pub(super) struct Table {
    conns: Slab<Conn>,
    limit: u32,
    ids: Keys,
    id_range: core::ops::Range<u32>,
    by_remote_id: HashMap<(IpAddr, u64, u32), Place>,
    by_remote_qpn: HashMap<(IpAddr, u64, Qpn), Place>,
    by_question: HashMap<(IpAddr, u32), Place>,
    by_local_qpn: HashMap<Qpn, Place>,
    /// Those begun by peers that are not established, oldest first.
    half_open: VecDeque<Place>,
}

impl Table {
    pub(super) fn new(limit: u32, id_range: core::ops::Range<u32>) -> Self {
        Self {
            conns: Slab::new(limit),
            limit,
            ids: Keys::default(),
            id_range,
            by_remote_id: HashMap::new(),
            by_remote_qpn: HashMap::new(),
            by_question: HashMap::new(),
            by_local_qpn: HashMap::new(),
            half_open: VecDeque::new(),
        }
    }

    /// An identifier for the next [`insert`](Self::insert).
    pub(super) fn new_id(&mut self, rng: &mut Rng) -> Result<ConnId, CmError> {
        let exhausted = CmError::Exhausted { what: "connection", limit: self.limit };
        let place = self.conns.vacant().ok_or(exhausted)?;
        let range = self.id_range.clone();
        self.ids.insert(rng, range.start, range.end, place).map(ConnId).ok_or(exhausted)
    }

    pub(super) fn is_full(&self) -> bool {
        self.conns.vacant().is_none()
    }

    /// Enters a connection whose identifier was just made.
    pub(super) fn insert(&mut self, conn: Conn) -> Option<Place> {
        let (peer, state, local_qpn) = (conn.route.destination, conn.state, conn.local_qpn);
        let (question, remote) = (conn.remote_id.filter(|_| state == CmState::SidrReqRcvd), conn.remote);
        let place = self.conns.insert(conn)?;
        if let Some(request_id) = question {
            self.by_question.insert((peer, request_id), place);
        }
        if let Some(remote) = remote {
            self.link_remote(peer, remote, place);
        }
        if let Some(qpn) = local_qpn {
            self.by_local_qpn.insert(qpn, place);
        }
        if state.is_half_open() {
            self.half_open.push_back(place);
        }
        Some(place)
    }

    /// The peer's end has become known.
    pub(super) fn set_remote(&mut self, place: Place, remote: Remote) {
        let Some(conn) = self.conns.get_mut(place) else { return };
        conn.remote_id = Some(remote.comm_id);
        conn.remote = Some(remote);
        let peer = conn.route.destination;
        self.link_remote(peer, remote, place);
    }

    /// What is there already keeps its place: the newer connection is found by our identifier alone.
    fn link_remote(&mut self, peer: IpAddr, remote: Remote, place: Place) {
        self.by_remote_id.entry((peer, remote.ca_guid, remote.comm_id)).or_insert(place);
        self.by_remote_qpn.entry((peer, remote.ca_guid, remote.qpn)).or_insert(place);
    }

    pub(super) fn set_local_qpn(&mut self, place: Place, qpn: Qpn) {
        if let Some(conn) = self.conns.get_mut(place) {
            conn.local_qpn = Some(qpn);
            self.by_local_qpn.insert(qpn, place);
        }
    }

    pub(super) fn set_state(&mut self, place: Place, state: CmState) {
        let Some(conn) = self.conns.get_mut(place) else { return };
        conn.state = state;
        if !state.is_half_open() {
            self.half_open.retain(|half_open| *half_open != place);
        }
    }

    pub(super) fn remove(&mut self, place: Place) -> Option<Conn> {
        let conn = self.conns.remove(place)?;
        let peer = conn.route.destination;
        self.ids.remove(conn.id.0);
        if let Some(remote) = conn.remote {
            unlink(&mut self.by_remote_id, &(peer, remote.ca_guid, remote.comm_id), place);
            unlink(&mut self.by_remote_qpn, &(peer, remote.ca_guid, remote.qpn), place);
        }
        if let Some(request_id) = conn.remote_id {
            unlink(&mut self.by_question, &(peer, request_id), place);
        }
        if let Some(qpn) = conn.local_qpn {
            unlink(&mut self.by_local_qpn, &qpn, place);
        }
        self.half_open.retain(|half_open| *half_open != place);
        Some(conn)
    }

    pub(super) fn get(&self, place: Place) -> Option<&Conn> {
        self.conns.get(place)
    }

    pub(super) fn get_mut(&mut self, place: Place) -> Option<&mut Conn> {
        self.conns.get_mut(place)
    }

    /// The connection of one of our identifiers.
    pub(super) fn find(&self, comm_id: u32) -> Option<(Place, &Conn)> {
        let place = self.ids.get(comm_id)?;
        Some((place, self.conns.get(place)?))
    }

    pub(super) fn by_remote_id(&self, peer: IpAddr, ca_guid: u64, comm_id: u32) -> Option<(Place, &Conn)> {
        let place = *self.by_remote_id.get(&(peer, ca_guid, comm_id))?;
        Some((place, self.conns.get(place)?))
    }

    pub(super) fn by_remote_qpn(&self, peer: IpAddr, ca_guid: u64, qpn: Qpn) -> Option<(Place, &Conn)> {
        let place = *self.by_remote_qpn.get(&(peer, ca_guid, qpn))?;
        Some((place, self.conns.get(place)?))
    }

    pub(super) fn has_question(&self, peer: IpAddr, request_id: u32) -> bool {
        self.by_question.contains_key(&(peer, request_id))
    }

    pub(super) fn by_local_qpn(&self, qpn: Qpn) -> Option<(Place, &Conn)> {
        let place = *self.by_local_qpn.get(&qpn)?;
        Some((place, self.conns.get(place)?))
    }

    /// The oldest half-open connection that `within` admits, if there are `limit` or more of those.
    pub(super) fn oldest_half_open(&self, limit: u32, within: impl Fn(&Conn) -> bool) -> Option<Place> {
        let admitted = |place: &Place| self.conns.get(*place).is_some_and(&within);
        let mut matching = self.half_open.iter().copied().filter(admitted);
        let oldest = matching.next()?;
        (matching.count() as u64 + 1 >= u64::from(limit)).then_some(oldest)
    }

    /// Those begun at a listener that still wait for an answer of the application.
    pub(super) fn pending_at(&self, listener: super::ListenId) -> Option<Place> {
        self.oldest_half_open(1, |conn| conn.listener == Some(listener) && conn.state.is_pending())
    }

    pub(super) fn len(&self) -> usize {
        self.conns.iter().count()
    }

    /// Appends every place whose deadline has come.
    pub(super) fn due(&mut self, now: Instant, due: &mut alloc::vec::Vec<Place>) {
        let late = |conn: &Conn| conn.deadline.is_some_and(|deadline| deadline <= now);
        due.extend(self.conns.iter_mut().filter(|(_, conn)| late(conn)).map(|(place, _)| place));
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.conns.iter().filter_map(|conn| conn.deadline).min()
    }
}

fn unlink<K: core::hash::Hash + Eq>(map: &mut HashMap<K, Place>, key: &K, place: Place) {
    if map.get(key) == Some(&place) {
        map.remove(key);
    }
}
