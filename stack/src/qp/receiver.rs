//! The receiving half of a queue pair, of whichever service.

use super::attr::QpAttr;
use super::connection::Connection;
use super::env::Env;
use super::responder::{Fatal, Responder};
use super::unreliable::{ConnectedReceiver, DatagramReceiver};
use crate::completion::WcStatus;
use crate::wire::{NakCode, Packet};

/// A request that ends the queue pair's life in good order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken {
    /// What the peer is told, if it is told.
    pub(super) code: Option<NakCode>,
    /// How the receive of the open message ends.
    pub(super) receive: WcStatus,
}

impl From<Fatal> for Broken {
    fn from(fatal: Fatal) -> Self {
        Self { code: Some(fatal.code), receive: fatal.receive }
    }
}

impl From<WcStatus> for Broken {
    fn from(receive: WcStatus) -> Self {
        Self { code: None, receive }
    }
}

#[derive(Debug)]
pub(super) enum Receiver {
    Reliable(Responder),
    Connected(ConnectedReceiver),
    Datagram(DatagramReceiver),
}

impl Receiver {
    pub(super) fn apply(&mut self, attr: &QpAttr) {
        match self {
            Self::Reliable(responder) => responder.apply(attr),
            Self::Connected(receiver) => receiver.apply(attr),
            Self::Datagram(_) => {}
        }
    }

    /// Adds what was set.
    pub(super) fn describe(&self, attr: &mut QpAttr) {
        match self {
            Self::Reliable(responder) => {
                let settings = responder.settings();
                attr.rq_psn = Some(settings.rq_psn);
                attr.max_dest_rd_atomic = Some(settings.max_dest_rd_atomic);
                attr.min_rnr_timer = Some(settings.min_rnr_timer);
            }
            Self::Connected(receiver) => attr.rq_psn = Some(receiver.rq_psn()),
            Self::Datagram(_) => {}
        }
    }

    pub(super) fn on_request(
        &mut self,
        connection: &Connection,
        env: &mut Env<'_>,
        packet: &Packet<'_>,
    ) -> Result<(), Broken> {
        match self {
            Self::Reliable(responder) => responder.on_request(connection, env, packet)?,
            Self::Connected(receiver) => receiver.on_request(connection, env, packet)?,
            Self::Datagram(receiver) => receiver.on_request(connection, env, packet)?,
        }
        Ok(())
    }

    /// Fills `frame` with the next response, if one is owed.
    pub(super) fn poll_transmit(
        &mut self,
        connection: &mut Connection,
        env: &mut Env<'_>,
        frame: &mut [u8],
    ) -> Result<Option<usize>, Broken> {
        match self {
            Self::Reliable(responder) => Ok(responder.poll_transmit(connection, env, frame)?),
            Self::Connected(_) | Self::Datagram(_) => Ok(None),
        }
    }

    pub(super) fn flush(
        &mut self,
        connection: &Connection,
        env: &mut Env<'_>,
        receive: WcStatus,
        keep_responses: bool,
    ) {
        match self {
            Self::Reliable(responder) => responder.flush(connection, env, receive, keep_responses),
            Self::Connected(receiver) => receiver.flush(connection, env, receive),
            Self::Datagram(receiver) => receiver.flush(connection, env, receive),
        }
    }

    pub(super) fn discard(&mut self) {
        match self {
            Self::Reliable(responder) => responder.discard(),
            Self::Connected(receiver) => receiver.discard(),
            Self::Datagram(receiver) => receiver.discard(),
        }
    }
}
