//! Receiving datagrams (protocol sections 4.11 and 5.4).

use super::super::connection::Connection;
use super::super::env::Env;
use super::super::receives::Receives;
use crate::completion::{Completion, WcFlags, WcOpcode, WcStatus};
use crate::counters::Counter;
use crate::wire::{Class, Operation, Packet, Payload};

/// Bytes before the payload in the receive, for the IP header: IPv6's 40, or IPv4's 20 behind 20 zero bytes.
const HEADER_AREA: usize = 40;

/// The receiving half of a datagram queue pair.
#[derive(Debug)]
pub(crate) struct DatagramReceiver {
    receives: Receives,
}

impl DatagramReceiver {
    pub(crate) const fn new(receives: Receives) -> Self {
        Self { receives }
    }

    /// Takes a datagram that is whole, and whose Q_Key fits; it is dropped when it finds no receive, or one that is too
    /// small, which then waits for the next (case C25). An error tells how the receive ends; the queue pair is in error.
    pub(crate) fn on_request(
        &mut self,
        connection: &Connection,
        env: &mut Env<'_>,
        packet: &Packet<'_>,
    ) -> Result<(), WcStatus> {
        let (Operation::Send { immediate, .. }, Class::Ud(deth)) = (packet.operation, packet.class) else {
            env.counters.add(Counter::WrongService);
            return Ok(());
        };
        if !self.receives.take(env) {
            env.counters.add(Counter::NoReceive);
            return Ok(());
        }
        let total = (HEADER_AREA + packet.payload.len()) as u64;
        if total > self.receives.current().room() {
            env.counters.add(Counter::TooLong);
            self.receives.give_up();
            return Ok(());
        }
        self.place(connection, env, packet)?;
        env.counters.add(Counter::RdmaRecvs);
        let completion = Completion {
            opcode: WcOpcode::Recv,
            byte_len: total as u32,
            immediate,
            qp_num: connection.number,
            src_qp: deth.source_qp,
            source_mac: Some(packet.source_mac),
            flags: if immediate.is_some() { WcFlags::GRH | WcFlags::WITH_IMM } else { WcFlags::GRH },
            ..Completion::default()
        };
        self.receives.finish(connection, env, completion, packet.bth.solicited, packet.bth.psn);
        self.receives.release(env, None);
        Ok(())
    }

    /// Ends every receive as flushed, but the one at fault as told.
    pub(crate) fn flush(&mut self, connection: &Connection, env: &mut Env<'_>, open: WcStatus) {
        self.receives.flush(connection, env, open);
    }

    /// Forgets every receive: a reset.
    pub(crate) fn discard(&mut self) {
        self.receives.discard();
    }

    fn place(&self, connection: &Connection, env: &mut Env<'_>, packet: &Packet<'_>) -> Result<(), WcStatus> {
        let mut area = [0; HEADER_AREA];
        area[HEADER_AREA - packet.ip_header.len()..].copy_from_slice(packet.ip_header);
        let header = Payload { head: &area, rest: &[] };
        self.receives
            .place(connection, env, 0, header)
            .and_then(|()| self.receives.place(connection, env, HEADER_AREA as u64, packet.payload))
            .map_err(|_| {
                env.counters.add(Counter::RespLocalErr);
                WcStatus::LocProtErr
            })
    }
}
