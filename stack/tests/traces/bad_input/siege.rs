//! A host under siege: what may happen to it, and what must hold all the time.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use uroce_stack::wire::{Aeth, Operation};

use super::forge::{Aim, Forged, Open, any_forged};
use crate::common::*;

/// A page that peers may use lies between two that nobody may.
const PAGE: usize = 4096;
const PAGE_VA: u64 = 0x5000_0000;
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Packet(Forged),
    Bytes(Vec<u8>),
    Send { kind: u8, length: u32 },
    Receive { length: u32 },
    Transmit,
    Round,
    Advance { micros: u32 },
    Recover,
    Drain,
}

pub(crate) fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => any_forged().prop_map(Step::Packet),
        1 => vec(any::<u8>(), 0..120).prop_map(Step::Bytes),
        3 => (any::<u8>(), 0u32..3000).prop_map(|(kind, length)| Step::Send { kind, length }),
        3 => (0u32..3000).prop_map(|length| Step::Receive { length }),
        3 => Just(Step::Transmit),
        4 => Just(Step::Round),
        2 => (0u32..20_000).prop_map(|micros| Step::Advance { micros }),
        4 => Just(Step::Recover),
        1 => Just(Step::Drain),
    ]
}

/// A host, and a peer that means harm and knows where the connection stands.
pub(crate) struct Siege {
    host: Host,
    pages: Region,
    aim: Aim,
    open: Open,
    /// The kind of answer to the newest request.
    awaited: usize,
    next_wr_id: u64,
    completed: (u64, u64),
}

impl Siege {
    pub(crate) fn new() -> Self {
        let mut host = Host::with(Setup { mtu: Mtu::B256, depth: 8, window: 8, ..Setup::default() });
        let pages = Region::alloc(3 * PAGE);
        let middle = std::ptr::NonNull::new(pages.as_ptr().wrapping_add(PAGE)).expect("not null");
        // SAFETY: the middle page is part of `pages`, which lives as long as the engine, in the same structure; it is
        // readable and writable, and no reference to it exists: regions are reached by copy only.
        let page = unsafe { Region::from_raw(middle, PAGE) };
        let keys = host
            .engine
            .register_mr(host.pd, page, PAGE_VA, Access::LOCAL_WRITE | Access::REMOTE)
            .expect("room for a region");
        let aim = Aim {
            to: host.qpn,
            rkey: keys.rkey,
            va: PAGE_VA,
            next_request: host.setup.rq_psn,
            newest_sent: host.setup.sq_psn,
        };
        Self { host, pages, aim, open: Open::Nothing, awaited: 19, next_wr_id: 1, completed: (0, 0) }
    }

    pub(crate) fn take(&mut self, step: &Step) {
        match step {
            Step::Packet(forged) => self.forge(forged),
            Step::Bytes(bytes) => {
                let (head, rest) = bytes.split_at(bytes.len() / 2);
                self.host.engine.receive(self.host.now, head, rest);
                self.host.engine.receive(self.host.now, bytes, &[]);
            }
            Step::Send { kind, length } => self.post(*kind, *length),
            Step::Receive { length } => {
                let sge = [self.host.sge(8192, *length)];
                let wr_id = self.wr_id();
                let _ = self.host.try_post_recv(wr_id, &sge);
            }
            Step::Transmit => {
                let sent = self.host.transmit();
                self.learn(sent.as_slice());
            }
            Step::Round => {
                let sent = self.host.sent();
                self.learn(&sent);
            }
            Step::Advance { micros } => self.host.advance(Duration::from_micros(u64::from(*micros))),
            Step::Recover => self.recover(),
            Step::Drain => {
                let _ = self.host.engine.modify_qp(self.host.now, self.host.qpn, &QpAttr::to(QpState::Sqd));
            }
        }
        self.check();
    }

    fn forge(&mut self, forged: &Forged) {
        let forged = &if forged.fitting { forged.honest(self.open, self.awaited) } else { forged.clone() };
        self.host.engine.receive(self.host.now, &forged.frame(&self.aim), &[]);
        if !forged.is_response() && forged.psn_offset == 0 {
            self.aim.next_request += forged.psns();
            self.open = forged.leaves(self.open);
        }
    }

    /// What the engine sends tells where it stands.
    fn learn(&mut self, sent: &[Pkt]) {
        for packet in sent {
            match packet.operation {
                Operation::Acknowledge(Aeth { syndrome: Syndrome::Ack { .. }, .. })
                | Operation::AtomicAcknowledge { .. }
                | Operation::ReadResponse { .. } => self.aim.next_request = packet.psn + 1,
                Operation::Acknowledge(_) => self.aim.next_request = packet.psn,
                Operation::ReadRequest(reth) => {
                    self.await_answer(packet.psn, if reth.length > 256 { 15 } else { 18 });
                }
                Operation::CompareSwap(_) | Operation::FetchAdd(_) => self.await_answer(packet.psn, 20),
                _ => self.await_answer(packet.psn, 19),
            }
        }
    }

    fn await_answer(&mut self, psn: u32, kind: usize) {
        (self.aim.newest_sent, self.awaited) = (psn, kind);
    }

    fn post(&mut self, kind: u8, length: u32) {
        let (wr_id, remote) = (self.wr_id(), FAR);
        let op = match kind % 5 {
            0 => SendOp::Send { immediate: None },
            1 => SendOp::Write { remote, immediate: Some(1) },
            2 => SendOp::Read { remote },
            3 => SendOp::FetchAdd { remote, add: 1 },
            _ => SendOp::CompareSwap { remote, compare: 0, swap: 1 },
        };
        let length = if kind % 5 > 2 { 8 } else { length };
        let flags = SendFlags::from_bits_truncate(u32::from(kind >> 5) & 3);
        let sge = if kind == 255 { Sge { addr: 0, length, lkey: 0 } } else { self.host.sge(0, length) };
        let _ =
            self.host.try_post(&SendWr { wr_id, op, flags, data: Gather::Sges(&[sge]), to: Recipient::Peer });
    }

    fn wr_id(&mut self) -> u64 {
        self.next_wr_id += 1;
        self.next_wr_id
    }

    fn recover(&mut self) {
        if self.host.state() == QpState::Err {
            self.open = Open::Nothing;
            self.host.modify(&QpAttr::to(QpState::Reset));
            self.host.bring_up();
            (self.aim.next_request, self.aim.newest_sent) = (self.host.setup.rq_psn, self.host.setup.sq_psn);
        } else if self.host.state() == QpState::Sqd {
            self.host.modify(&QpAttr::to(QpState::Rts));
        }
    }

    fn check(&mut self) {
        for (wr_id, _) in self.host.done() {
            assert!(wr_id > self.completed.0, "sends complete once and in order");
            self.completed.0 = wr_id;
        }
        for (wr_id, _) in self.host.received() {
            assert!(wr_id > self.completed.1, "receives complete once and in order");
            self.completed.1 = wr_id;
        }
        for guard in [0, 2 * PAGE] {
            let mut bytes = [0; PAGE];
            assert!(self.pages.read_at(guard, &mut bytes));
            assert!(bytes.iter().all(|byte| *byte == 0), "a page that is not registered was written");
        }
        assert!(self.host.events().len() <= 4);
    }
}
