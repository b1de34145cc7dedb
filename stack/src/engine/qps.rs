//! Control calls: queue pairs.

use super::control::check_range;
use super::{Engine, Pd};
use crate::config::Limits;
use crate::counters::Counters;
use crate::error::{Error, ModifyError};
use crate::qp::{Connection, Qp, QpAttr, QpInit, QpType, Rings};
use crate::queue::{Doorbell, OwnReceives, QpShared, QueueCaps, RecvQueue, SendQueue, recv_queue, send_ring};
use crate::time::Instant;
use crate::wire::Qpn;

/// A new queue pair, in RESET.
#[derive(Debug)]
pub struct NewQp {
    /// Its number.
    pub qpn: Qpn,
    /// The application's half of its send queue.
    pub send: SendQueue,
    /// The application's half of its receive queue.
    pub recv: RecvQueue,
}

impl Engine {
    /// A new queue pair, in RESET, with a number that nobody can guess.
    ///
    /// # Errors
    /// When a size is above its limit, when an object it names does not exist, or when there are as many queue pairs
    /// as the limits, or the range of numbers, allow.
    pub fn create_qp(&mut self, pd: Pd, init: &QpInit) -> Result<NewQp, Error> {
        self.check_pd(pd)?;
        check_init(init, &self.config.limits)?;
        self.check_objects(init)?;
        let exhausted = Error::Exhausted { what: "queue pair", limit: self.config.limits.max_qp };
        let place = self.qps.vacant().ok_or_else(|| exhausted.clone())?;
        let number = if init.qp_type == QpType::Gsi {
            self.qpns.claim(Qpn::GSI.get(), place).ok_or(Error::Busy("queue pair 1"))?
        } else {
            let range = self.config.qpns.clone();
            self.qpns.insert(&mut self.rng, range.start, range.end, place).ok_or(exhausted)?
        };
        Ok(self.insert_qp(place, Qpn::new(number), pd, *init))
    }

    fn insert_qp(&mut self, place: u32, qpn: Qpn, pd: Pd, init: QpInit) -> NewQp {
        let shared = QpShared::new(Doorbell::new(&self.doorbells, place));
        let receives = own_receives(&init);
        let caps = QueueCaps {
            qp_type: init.qp_type,
            pd,
            receives,
            max_send_sge: init.max_send_sge as usize,
            max_recv_sge: if receives == OwnReceives::Posted { init.max_recv_sge as usize } else { 0 },
            max_inline_data: init.max_inline_data as usize,
            max_msg_sz: self.config.limits.max_msg_sz,
        };
        let max_send_wr = if init.qp_type.posts_sends() { init.max_send_wr } else { 0 };
        let max_recv_wr = if receives == OwnReceives::Posted { init.max_recv_wr } else { 0 };
        let (send, sq) = send_ring(max_send_wr, caps, &shared);
        let (recv, rq) = recv_queue(max_recv_wr, caps, &shared);
        let rings = Rings { sq, rq, max_shared_sge: self.max_shared_sge(&init) };
        let ident = self.rng.next_u32() as u16;
        let connection = Connection::new(qpn, pd, init, ident, &self.port);
        self.qps.insert(Qp::new(connection, rings, shared, self.config.window));
        self.reset_counters(place);
        self.deadlines.grow(place + 1);
        self.ready.grow(place + 1);
        NewQp { qpn, send, recv }
    }

    fn max_shared_sge(&self, init: &QpInit) -> usize {
        let entries = match init.srq {
            Some(srq) => self.srqs.max_sge(srq),
            None if init.qp_type == QpType::XrcTgt => self.config.limits.max_srq_sge,
            None => 0,
        };
        entries as usize
    }

    fn reset_counters(&mut self, place: u32) {
        let place = place as usize;
        if self.qp_counters.len() <= place {
            self.qp_counters.resize_with(place + 1, Counters::default);
        }
        self.qp_counters[place] = Counters::default();
    }

    /// Changes attributes and state of a queue pair.
    ///
    /// # Errors
    /// When the state machine or its attribute tables forbid it, or a value is out of range; nothing is changed.
    pub fn modify_qp(&mut self, now: Instant, qpn: Qpn, attr: &QpAttr) -> Result<(), ModifyError> {
        let place = self.qpns.get(qpn.get()).ok_or(ModifyError::NotFound)?;
        self.check_peer(place, attr)?;
        let (limits, port) = (self.config.limits.clone(), self.port.clone());
        let (qp, mut env) = self.split(place, now);
        qp.ok_or(ModifyError::NotFound)?.modify(&mut env, attr, &limits, &port)?;
        self.settle(place);
        Ok(())
    }

    /// The attributes of a queue pair as they stand, its true state first of all.
    ///
    /// # Errors
    /// When there is no such queue pair.
    pub fn query_qp(&self, qpn: Qpn) -> Result<(QpAttr, QpInit), Error> {
        let qp = self.qpns.get(qpn.get()).and_then(|place| self.qps.get(place));
        let qp = qp.ok_or(Error::NotFound("queue pair"))?;
        Ok((qp.attr(), *qp.init()))
    }

    /// Ends a queue pair. What is posted ends without completions; completions that exist stay.
    ///
    /// # Errors
    /// When there is no such queue pair.
    pub fn destroy_qp(&mut self, qpn: Qpn) -> Result<(), Error> {
        let place = self.qpns.remove(qpn.get()).ok_or(Error::NotFound("queue pair"))?;
        let mut qp = self.qps.remove(place).ok_or(Error::NotFound("queue pair"))?;
        qp.destroy();
        self.memory.unbind_queue_pair(qpn);
        self.groups.forget(place);
        self.deadlines.set(place, None);
        self.events.forget(|event| event.queue_pair() == Some(qpn));
        Ok(())
    }

    /// Packets do not say which queue pair sent them, so two that claim the same peer would take each other's.
    fn check_peer(&self, place: u32, attr: &QpAttr) -> Result<(), ModifyError> {
        let Some(qp) = self.qps.get(place).filter(|qp| qp.init().qp_type.is_connected()) else {
            return Ok(());
        };
        let (Some(path), Some(peer)) = (attr.path.as_ref(), attr.dest_qpn.or_else(|| Some(qp.peer()?.1)))
        else {
            return Ok(());
        };
        let claims = |other: &&Qp| {
            let claimed = other.peer().map(|(theirs, qpn)| (theirs.destination, qpn));
            other.number() != qp.number() && claimed == Some((path.destination, peer))
        };
        match self.qps.iter().find(claims) {
            Some(other) => Err(ModifyError::PeerTaken { peer, other: other.number() }),
            None => Ok(()),
        }
    }

    /// The objects that the kind of the queue pair needs, and no others.
    fn check_objects(&self, init: &QpInit) -> Result<(), Error> {
        let kind = init.qp_type;
        if kind != QpType::XrcTgt && !(self.cqs.contains(init.send_cq) && self.cqs.contains(init.recv_cq)) {
            return Err(Error::NotFound("completion queue"));
        }
        match init.xrcd {
            Some(xrcd) if kind == QpType::XrcTgt => self.xrcds.check(xrcd.0)?,
            None if kind != QpType::XrcTgt => {}
            _ => return Err(Error::Invalid("an XRC target, and nothing else, belongs to an XRC domain")),
        }
        match init.srq {
            None => Ok(()),
            Some(srq) if !self.srqs.contains(srq) => Err(Error::NotFound("shared receive queue")),
            Some(_) if !kind.posts_receives() => Err(Error::Invalid(
                "an XRC queue pair has no shared receive queue of its own: its peer names one in each request",
            )),
            Some(srq) if self.srqs.is_xrc(srq) => {
                Err(Error::Invalid("an XRC shared receive queue serves XRC targets only"))
            }
            Some(_) => Ok(()),
        }
    }
}

fn own_receives(init: &QpInit) -> OwnReceives {
    match init.srq {
        _ if !init.qp_type.posts_receives() => OwnReceives::None,
        Some(_) => OwnReceives::Shared,
        None => OwnReceives::Posted,
    }
}

fn check_init(init: &QpInit, limits: &Limits) -> Result<(), Error> {
    check_range("max_send_wr", init.max_send_wr, 0, limits.max_qp_wr)?;
    check_range("max_send_sge", init.max_send_sge, 0, limits.max_sge)?;
    // What would size a receive queue of its own is ignored when there is none (case C66).
    if own_receives(init) == OwnReceives::Posted {
        check_range("max_recv_wr", init.max_recv_wr, 0, limits.max_qp_wr)?;
        check_range("max_recv_sge", init.max_recv_sge, 0, limits.max_sge)?;
    }
    check_range("max_inline_data", init.max_inline_data, 0, limits.max_inline_data)
}
