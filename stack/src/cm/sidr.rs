//! Questions after queue pairs for datagrams: SIDR_REQ and SIDR_REP.

use super::active::{PKEY, check_qpn_number, with_ip_header};
use super::admission::{ip_header, is_pkey};
use super::conn::CmState;
use super::event::{CmEvent, SidrRequest};
use super::params::{Sender, SidrParams, private_data};
use super::request::{Begun, passive_conn};
use super::{Cm, CmCounter, CmError, ConnId, Keep, Place};
use crate::time::Instant;
use crate::wire::Qpn;
use crate::wire::cm::{CmMad, CmMessage, IpCmHeader, PrivateData, ServiceId, SidrRep, SidrReq, SidrStatus};

impl Cm {
    /// Asks which queue pair of the peer serves datagrams. A [`CmEvent::SidrReply`] or [`CmEvent::Unreachable`] follows.
    ///
    /// # Errors
    /// When a value is out of range, or there are as many connections as the configuration allows.
    pub fn sidr_request(&mut self, now: Instant, params: &SidrParams<'_>) -> Result<ConnId, CmError> {
        params.route.check()?;
        let (route, service_id) = (params.route, params.service_id);
        let private_data = with_ip_header(&route, service_id, params.source_port, params.private_data)?;
        let id = self.table.new_id(&mut self.rng)?;
        let place = self.insert(self.active_conn(id, CmState::SidrReqSent, route, service_id, None))?;
        let req = SidrReq { request_id: id.0, pkey: PKEY, service_id, private_data };
        self.send(place, CmMessage::SidrReq(req), Keep::Yes);
        self.arm(place, now);
        Ok(id)
    }

    /// Answers that `qpn` serves datagrams with `qkey`. The handle names nothing any more; a peer that misses the answer
    /// asks again.
    ///
    /// # Errors
    /// When the question was answered or has gone, or there are more than 136 bytes of private data.
    pub fn sidr_accept(&mut self, id: ConnId, qpn: Qpn, qkey: u32, data: &[u8]) -> Result<(), CmError> {
        let place = self.owned_in("sidr_accept", id, |state| state == CmState::SidrReqRcvd)?;
        check_qpn_number(qpn)?;
        let private_data = private_data(data)?;
        self.answer_sidr(place, |rep| SidrRep { qpn, qkey, private_data, ..rep });
        Ok(())
    }

    /// Answers that there is no queue pair. The handle names nothing any more.
    ///
    /// # Errors
    /// When the question was answered or has gone, the status is [`SidrStatus::Valid`], or there are more than 136 bytes
    /// of private data.
    pub fn sidr_reject(&mut self, id: ConnId, status: SidrStatus, data: &[u8]) -> Result<(), CmError> {
        let place = self.owned_in("sidr_reject", id, |state| state == CmState::SidrReqRcvd)?;
        if status == SidrStatus::Valid {
            return Err(CmError::Invalid("a rejection says why: the status is not Valid"));
        }
        let private_data = private_data(data)?;
        self.answer_sidr(place, |rep| SidrRep { status, private_data, ..rep });
        Ok(())
    }

    pub(super) fn refuse_sidr(&mut self, place: Place) {
        self.answer_sidr(place, |rep| SidrRep { status: SidrStatus::Rejected, ..rep });
    }

    fn answer_sidr(&mut self, place: Place, fill: impl FnOnce(SidrRep) -> SidrRep) {
        let Some(conn) = self.table.get(place) else { return };
        let rep = fill(empty_rep(conn.remote_id.unwrap_or_default(), conn.service_id));
        self.events.forget(conn.id);
        self.send(place, CmMessage::SidrRep(rep), Keep::No);
        self.table.remove(place);
    }

    pub(super) fn on_sidr_req(&mut self, from: &Sender, transaction_id: u64, req: &SidrReq) {
        if self.table.has_question(from.source, req.request_id) {
            return self.count_duplicate();
        }
        let Some((listener, params)) = self.listeners.find(req.service_id, from.destination, true) else {
            self.counters.add(CmCounter::NoListener);
            return self.answer_status(from, transaction_id, req, SidrStatus::UnsupportedServiceId);
        };
        let Some(ip) = check_question(from, req) else {
            self.counters.add(CmCounter::BadRequest);
            return self.answer_status(from, transaction_id, req, SidrStatus::Rejected);
        };
        self.make_room(listener, &params, from);
        let Ok(id) = self.table.new_id(&mut self.rng) else {
            self.counters.add(CmCounter::NoRoom);
            return self.answer_status(from, transaction_id, req, SidrStatus::NoQp);
        };
        let begun =
            Begun { state: CmState::SidrReqRcvd, listener, remote_id: req.request_id, transaction_id };
        let conn = passive_conn(id, from, req.service_id, begun);
        let request = SidrRequest {
            listener,
            id,
            service_id: req.service_id,
            local: from.destination,
            remote: from.source,
            ip,
            data: req.private_data,
        };
        self.announce(conn, CmEvent::SidrRequest(request));
    }

    fn answer_status(&mut self, to: &Sender, transaction_id: u64, req: &SidrReq, status: SidrStatus) {
        let rep = SidrRep { status, ..empty_rep(req.request_id, req.service_id) };
        let mad = CmMad { transaction_id, attribute_modifier: 0, message: CmMessage::SidrRep(rep) };
        self.outbox.answer(&mut self.counters, to, &mad);
    }

    pub(super) fn on_sidr_rep(&mut self, from: &Sender, rep: &SidrRep) {
        let found = self.table.find(rep.request_id);
        let found = found.filter(|(_, conn)| conn.is_with(from.source, from.destination));
        let Some((place, conn)) = found else { return self.counters.add(CmCounter::UnknownId) };
        if conn.state != CmState::SidrReqSent {
            return self.count_wrong_state();
        }
        let id = conn.id;
        let SidrRep { status, qpn, qkey, info, private_data, .. } = *rep;
        self.tell_end(place, CmEvent::SidrReply { id, status, qpn, qkey, info, private_data });
        self.table.remove(place);
    }
}

/// What a question must be, whoever takes it; its IP CM header if it has one.
fn check_question(from: &Sender, req: &SidrReq) -> Option<Option<IpCmHeader>> {
    let ip = ip_header(from, req.service_id, &req.private_data).ok()?;
    is_pkey(req.pkey).then_some(ip)
}

fn empty_rep(request_id: u32, service_id: ServiceId) -> SidrRep {
    SidrRep {
        request_id,
        status: SidrStatus::Valid,
        info_len: 0,
        vendor_id: 0,
        qpn: Qpn::default(),
        service_id,
        qkey: 0,
        info: PrivateData::default(),
        private_data: PrivateData::default(),
    }
}
