//! The sending half of a queue pair, reliable or not.

use super::attr::QpAttr;
use super::connection::Connection;
use super::env::Env;
use super::requester::Requester;
use super::sends::{Failure, Transmit};
use super::unreliable::UnreliableRequester;
use crate::time::Instant;
use crate::wire::Packet;

#[derive(Debug)]
pub(super) enum Requests {
    Reliable(Requester),
    Unreliable(UnreliableRequester),
}

impl Requests {
    pub(super) fn apply(&mut self, attr: &QpAttr) {
        match self {
            Self::Reliable(requester) => requester.apply(attr),
            Self::Unreliable(requester) => requester.apply(attr),
        }
    }

    /// Adds what was set.
    pub(super) fn describe(&self, attr: &mut QpAttr) {
        match self {
            Self::Reliable(requester) => {
                let settings = requester.settings();
                attr.timeout = Some(settings.timeout);
                attr.retry_cnt = Some(settings.retry_cnt);
                attr.rnr_retry = Some(settings.rnr_retry);
                attr.sq_psn = Some(settings.sq_psn);
                attr.max_rd_atomic = Some(settings.max_rd_atomic);
            }
            Self::Unreliable(requester) => attr.sq_psn = Some(requester.sq_psn()),
        }
    }

    pub(super) const fn set_draining(&mut self, draining: bool) {
        match self {
            Self::Reliable(requester) => requester.set_draining(draining),
            Self::Unreliable(requester) => requester.set_draining(draining),
        }
    }

    pub(super) fn is_drained(&self) -> bool {
        match self {
            Self::Reliable(requester) => requester.is_drained(),
            Self::Unreliable(requester) => requester.is_drained(),
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Reliable(requester) => requester.deadline(),
            Self::Unreliable(_) => None,
        }
    }

    pub(super) fn expire(&mut self, env: &mut Env<'_>) -> Result<(), Failure> {
        match self {
            Self::Reliable(requester) => requester.expire(env),
            Self::Unreliable(_) => Ok(()),
        }
    }

    pub(super) fn on_response(
        &mut self,
        connection: &Connection,
        env: &mut Env<'_>,
        packet: &Packet<'_>,
    ) -> Result<(), Failure> {
        match self {
            Self::Reliable(requester) => requester.on_response(connection, env, packet),
            Self::Unreliable(_) => Ok(()),
        }
    }

    pub(super) fn poll_transmit(
        &mut self,
        connection: &mut Connection,
        env: &mut Env<'_>,
        frame: &mut [u8],
    ) -> Transmit {
        match self {
            Self::Reliable(requester) => requester.poll_transmit(connection, env, frame),
            Self::Unreliable(requester) => requester.poll_transmit(connection, env, frame),
        }
    }

    pub(super) fn fail_oldest(&mut self, connection: &Connection, env: &mut Env<'_>, failure: Failure) {
        match self {
            Self::Reliable(requester) => requester.fail_oldest(connection, env, failure),
            Self::Unreliable(requester) => requester.fail_oldest(connection, env, failure),
        }
    }

    pub(super) fn flush(&mut self, connection: &Connection, env: &mut Env<'_>) {
        match self {
            Self::Reliable(requester) => requester.flush(connection, env),
            Self::Unreliable(requester) => requester.flush(connection, env),
        }
    }

    pub(super) fn discard(&mut self) {
        match self {
            Self::Reliable(requester) => requester.discard(),
            Self::Unreliable(requester) => requester.discard(),
        }
    }
}
