//! Queue pairs: a sending and a receiving half on one connection or address, and the state machine over both.

mod address;
mod assembly;
mod attr;
mod connection;
mod env;
mod receiver;
mod receives;
mod requester;
mod requests;
mod responder;
mod sends;
mod transition;
mod unreliable;

use alloc::sync::Arc;

pub use address::AddressHandle;
pub use attr::{AttrMask, QpAttr, QpInit, QpState, QpType};
pub(crate) use connection::{Connection, Port};
pub(crate) use env::Env;

use crate::completion::WcStatus;
use crate::config::Limits;
use crate::counters::Counter;
use crate::engine::Pd;
use crate::error::ModifyError;
use crate::event::AsyncEvent;
use crate::queue::{Consumer, QpShared, RecvSlot, SendSlot};
use crate::time::Instant;
use crate::wire::{Class, NakCode, Packet, Path, Qpn};
use connection::pkey_matches;
use receiver::{Broken, Receiver};
use receives::Receives;
use requester::Requester;
use requests::Requests;
use responder::Responder;
use sends::{Failure, Transmit};
use unreliable::{ConnectedReceiver, DatagramReceiver, UnreliableRequester};

/// One queue pair.
#[derive(Debug)]
pub(crate) struct Qp {
    connection: Connection,
    requests: Requests,
    receiver: Receiver,
    shared: Arc<QpShared>,
    state: QpState,
    notify_drained: bool,
    comm_established: bool,
    /// [`AsyncEvent::QpLastWqeReached`] was raised since the last reset.
    last_wqe_reached: bool,
    /// Requests and responses take turns when both are waiting.
    responses_first: bool,
}

/// The engine's halves of the rings, and how many entries a receive of a shared queue may have.
#[derive(Debug)]
pub(crate) struct Rings {
    pub(crate) sq: Consumer<SendSlot>,
    pub(crate) rq: Consumer<RecvSlot>,
    pub(crate) max_shared_sge: usize,
}

impl Qp {
    pub(crate) fn new(connection: Connection, rings: Rings, shared: Arc<QpShared>, window: u32) -> Self {
        let kind = connection.init.qp_type;
        let receives = Receives::new(rings.rq, connection.init.srq, rings.max_shared_sge);
        Self {
            requests: if kind.is_reliable() {
                Requests::Reliable(Requester::new(rings.sq, window))
            } else {
                Requests::Unreliable(UnreliableRequester::new(rings.sq))
            },
            receiver: match kind {
                QpType::Uc => Receiver::Connected(ConnectedReceiver::new(receives)),
                QpType::Ud | QpType::Gsi => Receiver::Datagram(DatagramReceiver::new(receives)),
                QpType::Rc | QpType::XrcIni | QpType::XrcTgt => {
                    Receiver::Reliable(Responder::new(receives, connection.subject()))
                }
            },
            connection,
            shared,
            state: QpState::Reset,
            notify_drained: false,
            comm_established: false,
            last_wqe_reached: false,
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

    /// The peer that it claims: where it is, and its number there.
    pub(crate) fn peer(&self) -> Option<(&Path, Qpn)> {
        let claims = matches!(self.state, QpState::Rtr | QpState::Rts | QpState::Sqd | QpState::Sqe);
        let path = self.connection.path().filter(|_| claims && self.init().qp_type.is_connected())?;
        Some((path, self.connection.peer))
    }

    /// Everything that was set, as it stands.
    pub(crate) fn attr(&self) -> QpAttr {
        let connected = self.init().qp_type.is_connected();
        let mut attr = QpAttr {
            state: Some(self.state),
            cur_state: Some(self.state),
            en_sqd_async_notify: Some(self.notify_drained),
            access: connected.then_some(self.connection.access),
            pkey_index: Some(0),
            port: Some(1),
            qkey: (!connected).then_some(self.connection.qkey),
            path: self.connection.path().copied(),
            path_mtu: Some(self.connection.mtu),
            dest_qpn: connected.then_some(self.connection.peer),
            ..QpAttr::default()
        };
        self.requests.describe(&mut attr);
        self.receiver.describe(&mut attr);
        attr
    }

    pub(crate) fn modify(
        &mut self,
        env: &mut Env<'_>,
        attr: &QpAttr,
        limits: &Limits,
        port: &Port,
    ) -> Result<(), ModifyError> {
        let to = transition::check(attr, self.init().qp_type, self.state, limits, port)?;
        self.connection.apply(attr);
        self.requests.apply(attr);
        self.receiver.apply(attr);
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
        self.requests.set_draining(to == QpState::Sqd);
        if to == QpState::Sqd {
            self.check_drained(env);
        }
    }

    fn reset(&mut self) {
        self.set_state(QpState::Reset);
        self.requests.discard();
        self.receiver.discard();
        (self.comm_established, self.last_wqe_reached) = (false, false);
    }

    fn set_state(&mut self, state: QpState) {
        self.state = state;
        self.shared.set_state(state);
    }

    /// Into error: flushes both queues, the receive of an open message with `receive`.
    pub(crate) fn fail(&mut self, env: &mut Env<'_>, receive: WcStatus, keep_responses: bool) {
        self.set_state(QpState::Err);
        self.receiver.flush(&self.connection, env, receive, keep_responses);
        self.requests.flush(&self.connection, env);
        self.note_last_receive(env);
    }

    /// A queue pair on a shared receive queue takes no more from it once it is in error (case C65).
    fn note_last_receive(&mut self, env: &mut Env<'_>) {
        if self.init().srq.is_some() && !core::mem::replace(&mut self.last_wqe_reached, true) {
            env.events.raise(AsyncEvent::QpLastWqeReached(self.number()));
        }
    }

    /// The queue pair goes away: what is posted ends without completions, and nothing more is accepted.
    pub(crate) fn destroy(&mut self) {
        self.reset();
    }

    /// Whether the packet may touch this queue pair at all (section 5.1, steps 8 to 12).
    pub(crate) fn admit(&self, packet: &Packet<'_>) -> Result<(), Counter> {
        let kind = self.init().qp_type;
        let is_request = packet.opcode.is_request();
        if packet.opcode.service() != kind.service() || (is_request && !kind.takes_requests()) {
            return Err(Counter::WrongService);
        }
        let ready = if is_request { self.state.receives() } else { self.state.sends() };
        if !ready {
            return Err(Counter::WrongState);
        }
        if kind.is_connected() && !self.is_peer(packet) {
            return Err(Counter::WrongSource);
        }
        if !pkey_matches(packet.bth.pkey) {
            return Err(Counter::BadPkey);
        }
        self.admit_qkey(packet)
    }

    fn admit_qkey(&self, packet: &Packet<'_>) -> Result<(), Counter> {
        match packet.class {
            Class::Ud(deth) if deth.qkey != self.connection.qkey => Err(Counter::BadQkey),
            _ => Ok(()),
        }
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
            if let Err(broken) = self.receiver.on_request(&self.connection, env, packet) {
                self.fail_request(env, broken);
            }
        } else if let Err(failure) = self.requests.on_response(&self.connection, env, packet) {
            self.fail_send(env, failure);
        } else {
            self.check_drained(env);
        }
    }

    /// Timers that are due at `env.now`.
    pub(crate) fn expire(&mut self, env: &mut Env<'_>) {
        if let Err(failure) = self.requests.expire(env) {
            self.fail_send(env, failure);
        }
    }

    /// When [`expire`](Self::expire) has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.requests.deadline().filter(|_| self.state.sends())
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
        match self.receiver.poll_transmit(&mut self.connection, env, frame) {
            Ok(sent) => sent,
            Err(broken) => {
                self.fail_request(env, broken);
                // The NAK took the place of the response.
                self.receiver.poll_transmit(&mut self.connection, env, frame).ok().flatten()
            }
        }
    }

    fn send_request(&mut self, env: &mut Env<'_>, frame: &mut [u8]) -> Option<usize> {
        match self.state {
            QpState::Rts | QpState::Sqd => {}
            QpState::Sqe => {
                self.requests.flush(&self.connection, env);
                return None;
            }
            QpState::Err => {
                self.requests.flush(&self.connection, env);
                self.receiver.flush(&self.connection, env, WcStatus::WrFlushErr, true);
                return None;
            }
            QpState::Reset | QpState::Init | QpState::Rtr => return None,
        }
        match self.requests.poll_transmit(&mut self.connection, env, frame) {
            Transmit::Frame(len) => {
                self.check_drained(env);
                Some(len)
            }
            Transmit::Idle => {
                self.check_drained(env);
                None
            }
            Transmit::Failed(failure) => {
                self.fail_send(env, failure);
                None
            }
        }
    }

    fn fail_request(&mut self, env: &mut Env<'_>, broken: Broken) {
        match broken.code {
            Some(NakCode::RemoteAccessError) => env.events.raise(AsyncEvent::QpAccessErr(self.number())),
            Some(NakCode::InvalidRequest) => env.events.raise(AsyncEvent::QpReqErr(self.number())),
            _ => {}
        }
        self.fail(env, broken.receive, true);
    }

    /// A send failed. On a reliable service that ends the connection; on others the sending half alone stops, until the
    /// application brings it back to RTS (IBTA, SQE).
    fn fail_send(&mut self, env: &mut Env<'_>, failure: Failure) {
        if self.init().qp_type.is_reliable() {
            self.set_state(QpState::Err);
            self.requests.fail_oldest(&self.connection, env, failure);
            self.fail(env, WcStatus::WrFlushErr, true);
        } else {
            self.set_state(QpState::Sqe);
            self.requests.fail_oldest(&self.connection, env, failure);
            self.requests.flush(&self.connection, env);
        }
    }

    /// The peer speaks before the application has said that it may. Datagrams establish nothing.
    fn note_communication(&mut self, env: &mut Env<'_>) {
        if self.state == QpState::Rtr && self.init().qp_type.is_connected() && !self.comm_established {
            self.comm_established = true;
            env.events.raise(AsyncEvent::CommEst(self.number()));
        }
    }

    fn check_drained(&mut self, env: &mut Env<'_>) {
        if self.state == QpState::Sqd && self.notify_drained && self.requests.is_drained() {
            self.notify_drained = false;
            env.events.raise(AsyncEvent::SqDrained(self.number()));
        }
    }

    /// Whether going into error would change anything.
    pub(crate) fn can_fail(&self) -> bool {
        !matches!(self.state, QpState::Reset | QpState::Err)
    }
}
