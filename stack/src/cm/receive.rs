//! A datagram arrives.

use super::conn::CmState;
use super::params::Sender;
use super::{Cm, CmCounter, Place};
use crate::time::Instant;
use crate::wire::Qpn;
use crate::wire::cm::{CmMad, CmMessage};

impl Cm {
    /// Takes a datagram that queue pair 1 received, without what UD puts before the payload. What is no message of
    /// connection management is counted and dropped.
    pub fn receive(&mut self, now: Instant, from: &Sender, mad: &[u8]) {
        if from.source_qp != Qpn::GSI {
            // Answers go to queue pair 1 and nowhere else, whoever asks.
            return self.counters.add(CmCounter::WrongSource);
        }
        match CmMad::parse(mad) {
            Ok(mad) => self.dispatch(now, from, &mad),
            Err(reason) => self.counters.add(CmCounter::refused(reason)),
        }
    }

    fn dispatch(&mut self, now: Instant, from: &Sender, mad: &CmMad) {
        self.counters.add(CmCounter::received(mad.message.kind()));
        match &mad.message {
            CmMessage::Req(req) => self.on_req(now, from, mad.transaction_id, req),
            CmMessage::Mra(mra) => self.on_mra(now, from, mra),
            CmMessage::Rej(rej) => self.on_rej(now, from, rej),
            CmMessage::Rep(rep) => self.on_rep(now, from, mad.transaction_id, rep),
            CmMessage::Rtu(rtu) => self.on_rtu(from, rtu),
            CmMessage::Dreq(dreq) => self.on_dreq(now, from, mad.transaction_id, dreq),
            CmMessage::Drep(drep) => self.on_drep(now, from, drep),
            CmMessage::SidrReq(req) => self.on_sidr_req(from, mad.transaction_id, req),
            CmMessage::SidrRep(rep) => self.on_sidr_rep(from, rep),
        }
    }

    /// The connection that both identifiers, ours and the peer's, name, and that is with whoever names it.
    pub(super) fn known(&self, from: &Sender, ours: u32, theirs: u32) -> Option<(Place, CmState)> {
        let (place, conn) = self.table.find(ours)?;
        let matches = conn.remote_id == Some(theirs) && conn.is_with(from.source, from.destination);
        matches.then_some((place, conn.state))
    }

    /// The same for an answer to our request: only it tells the peer's identifier.
    pub(super) fn asked(&self, from: &Sender, ours: u32, theirs: u32) -> Option<(Place, CmState)> {
        let (place, conn) = self.table.find(ours)?;
        let matches = conn.state.is_asked() && conn.is_with(from.source, from.destination);
        if matches { Some((place, conn.state)) } else { self.known(from, ours, theirs) }
    }
}
