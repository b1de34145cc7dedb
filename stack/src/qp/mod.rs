//! Queue pairs: a requester and a responder on one connection, and the state machine over both.

mod attr;
mod connection;
mod env;
mod requester;
mod responder;
mod transition;

use alloc::sync::Arc;

pub use attr::{AttrMask, QpAttr, QpInit, QpState, QpType};
pub(crate) use env::Env;

use crate::completion::WcStatus;
use crate::config::Limits;
use crate::counters::Counter;
use crate::engine::Pd;
use crate::error::ModifyError;
use crate::event::AsyncEvent;
use crate::queue::{Consumer, QpShared, RecvSlot, SendSlot};
use crate::time::Instant;
use crate::wire::{Mtu, NakCode, Packet, Qpn, Service};
use connection::{Connection, pkey_matches};
use requester::{Failure, Requester, Transmit};
use responder::{Fatal, Responder};

/// One queue pair.
#[derive(Debug)]
pub(crate) struct Qp {
    connection: Connection,
    requester: Requester,
    responder: Responder,
    shared: Arc<QpShared>,
    state: QpState,
    notify_drained: bool,
    comm_established: bool,
    /// Requests and responses take turns when both are waiting.
    responses_first: bool,
}

impl Qp {
    pub(crate) fn new(
        number: Qpn,
        pd: Pd,
        init: QpInit,
        rings: (Consumer<SendSlot>, Consumer<RecvSlot>),
        shared: Arc<QpShared>,
        window: u32,
        ident: u16,
    ) -> Self {
        Self {
            connection: Connection::new(number, pd, init, ident),
            requester: Requester::new(rings.0, window),
            responder: Responder::new(rings.1),
            shared,
            state: QpState::Reset,
            notify_drained: false,
            comm_established: false,
            responses_first: true,
        }
    }

    pub(crate) const fn number(&self) -> Qpn {
        self.connection.number
    }

    pub(crate) const fn pd(&self) -> Pd {
        self.connection.pd
    }

    pub(crate) const fn init(&self) -> &QpInit {
        &self.connection.init
    }

    /// Everything that was set, as it stands.
    pub(crate) fn attr(&self) -> QpAttr {
        let (requester, responder) = (self.requester.settings(), self.responder.settings());
        QpAttr {
            state: Some(self.state),
            cur_state: Some(self.state),
            en_sqd_async_notify: Some(self.notify_drained),
            access: Some(self.connection.access),
            pkey_index: Some(0),
            port: Some(1),
            qkey: None,
            path: self.connection.path().copied(),
            path_mtu: Some(self.connection.mtu),
            timeout: Some(requester.timeout),
            retry_cnt: Some(requester.retry_cnt),
            rnr_retry: Some(requester.rnr_retry),
            rq_psn: Some(responder.rq_psn),
            sq_psn: Some(requester.sq_psn),
            max_rd_atomic: Some(requester.max_rd_atomic),
            max_dest_rd_atomic: Some(responder.max_dest_rd_atomic),
            min_rnr_timer: Some(responder.min_rnr_timer),
            dest_qpn: Some(self.connection.peer),
        }
    }

    pub(crate) fn modify(
        &mut self,
        env: &mut Env<'_>,
        attr: &QpAttr,
        limits: &Limits,
        port_mtu: Mtu,
    ) -> Result<(), ModifyError> {
        let to = transition::check(attr, self.state, limits, port_mtu)?;
        self.connection.apply(attr);
        self.requester.apply(attr);
        self.responder.apply(attr);
        self.notify_drained = attr.en_sqd_async_notify.unwrap_or(self.notify_drained);
        if attr.state.is_some() {
            self.enter(env, to);
        }
        Ok(())
    }

    fn enter(&mut self, env: &mut Env<'_>, to: QpState) {
        match to {
            QpState::Err => return self.fail(env, WcStatus::WrFlushErr, false),
            QpState::Reset | QpState::Init if self.state != QpState::Init => self.reset(),
            _ => {}
        }
        self.set_state(to);
        self.requester.set_draining(to == QpState::Sqd);
        if to == QpState::Sqd {
            self.check_drained(env);
        }
    }

    fn reset(&mut self) {
        self.set_state(QpState::Reset);
        self.requester.discard();
        self.responder.discard();
        self.comm_established = false;
    }

    fn set_state(&mut self, state: QpState) {
        self.state = state;
        self.shared.set_state(state);
    }

    /// Into error: flushes both queues, the receive of an open message with `receive`.
    pub(crate) fn fail(&mut self, env: &mut Env<'_>, receive: WcStatus, keep_responses: bool) {
        self.set_state(QpState::Err);
        self.responder.flush(&self.connection, env, receive, keep_responses);
        self.requester.flush(&self.connection, env);
    }

    /// The queue pair goes away: what is posted ends without completions, and nothing more is accepted.
    pub(crate) fn destroy(&mut self) {
        self.reset();
    }

    /// Whether the packet may touch this queue pair at all (section 5.1, steps 8 to 11).
    pub(crate) fn admit(&self, packet: &Packet<'_>) -> Result<(), Counter> {
        if packet.opcode.service() != Service::Rc {
            return Err(Counter::WrongService);
        }
        let ready = if packet.opcode.is_request() { self.state.receives() } else { self.state.sends() };
        if !ready || self.connection.path().is_none() {
            return Err(Counter::WrongState);
        }
        if !self.is_peer(packet) {
            return Err(Counter::WrongSource);
        }
        if !pkey_matches(packet.bth.pkey) {
            return Err(Counter::BadPkey);
        }
        Ok(())
    }

    /// Whether the packet comes from the peer's address and is sent to ours.
    pub(crate) fn is_peer(&self, packet: &Packet<'_>) -> bool {
        let path = self.connection.path();
        path.is_some_and(|path| packet.ip.source == path.destination && packet.ip.destination == path.source)
    }

    /// Takes a packet that [`admit`](Self::admit) let through.
    pub(crate) fn receive(&mut self, env: &mut Env<'_>, packet: &Packet<'_>) {
        if packet.opcode.is_request() {
            self.note_communication(env);
            if let Err(fatal) = self.responder.on_request(&self.connection, env, packet) {
                self.fail_request(env, fatal);
            }
        } else if let Err(failure) = self.requester.on_response(&self.connection, env, packet) {
            self.fail_send(env, failure);
        } else {
            self.check_drained(env);
        }
    }

    /// Timers that are due at `env.now`.
    pub(crate) fn expire(&mut self, env: &mut Env<'_>) {
        if let Err(failure) = self.requester.expire(env) {
            self.fail_send(env, failure);
        }
    }

    /// When [`expire`](Self::expire) has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.requester.deadline().filter(|_| self.state.sends())
    }

    /// Fills `frame` with the next packet that this queue pair has to send, if any.
    pub(crate) fn poll_transmit(&mut self, env: &mut Env<'_>, frame: &mut [u8]) -> Option<usize> {
        self.responses_first = !self.responses_first;
        if self.responses_first {
            self.send_response(env, frame).or_else(|| self.send_request(env, frame))
        } else {
            self.send_request(env, frame).or_else(|| self.send_response(env, frame))
        }
    }

    fn send_response(&mut self, env: &mut Env<'_>, frame: &mut [u8]) -> Option<usize> {
        match self.responder.poll_transmit(&mut self.connection, env, frame) {
            Ok(sent) => sent,
            Err(fatal) => {
                self.fail_request(env, fatal);
                // The NAK took the place of the response.
                self.responder.poll_transmit(&mut self.connection, env, frame).ok().flatten()
            }
        }
    }

    fn send_request(&mut self, env: &mut Env<'_>, frame: &mut [u8]) -> Option<usize> {
        if self.state == QpState::Err {
            self.requester.flush(&self.connection, env);
            self.responder.flush(&self.connection, env, WcStatus::WrFlushErr, true);
            return None;
        }
        if !self.state.sends() {
            return None;
        }
        match self.requester.poll_transmit(&mut self.connection, env, frame) {
            Transmit::Frame(len) => Some(len),
            Transmit::Idle => None,
            Transmit::Failed(failure) => {
                self.fail_send(env, failure);
                None
            }
        }
    }

    fn fail_request(&mut self, env: &mut Env<'_>, fatal: Fatal) {
        match fatal.code {
            NakCode::RemoteAccessError => env.events.raise(AsyncEvent::QpAccessErr(self.number())),
            NakCode::InvalidRequest => env.events.raise(AsyncEvent::QpReqErr(self.number())),
            _ => {}
        }
        self.fail(env, fatal.receive, true);
    }

    fn fail_send(&mut self, env: &mut Env<'_>, failure: Failure) {
        self.set_state(QpState::Err);
        self.requester.fail_oldest(&self.connection, env, failure);
        self.fail(env, WcStatus::WrFlushErr, true);
    }

    fn note_communication(&mut self, env: &mut Env<'_>) {
        if self.state == QpState::Rtr && !self.comm_established {
            self.comm_established = true;
            env.events.raise(AsyncEvent::CommEst(self.number()));
        }
    }

    fn check_drained(&mut self, env: &mut Env<'_>) {
        if self.state == QpState::Sqd && self.notify_drained && self.requester.is_drained() {
            self.notify_drained = false;
            env.events.raise(AsyncEvent::SqDrained(self.number()));
        }
    }

    /// Whether going into error would change anything.
    pub(crate) fn can_fail(&self) -> bool {
        !matches!(self.state, QpState::Reset | QpState::Err)
    }
}
