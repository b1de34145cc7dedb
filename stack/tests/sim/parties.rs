//! One end of the unreliable services: an engine, its queue pairs, and an application that posts and polls.

use uroce_stack::wire::{Mtu, Psn, Qpn};
use uroce_stack::{
    Access, AddressHandle, Completion, CompletionReader, Config, Engine, Gather, Instant, NewQp, Pd, QpAttr,
    QpInit, QpState, QpType, Recipient, Region, RemoteAddr, SendFlags, SendOp, SendWr, Sge, SharedRecvQueue,
    SrqInit,
};

use crate::endpoint::path;
use crate::rng::Rng;

/// Messages of each queue pair.
pub(crate) const MESSAGES: usize = 40;
/// The longest message, and the room of each receive.
const LONGEST: usize = 4000;
const ROOM: usize = LONGEST + 40;
/// Receives of one end.
const SLOTS: usize = 128;
/// Receives that a queue holds.
const DEPTH: usize = 32;
/// Where the receives end and the places of WRITEs begin.
const PLACES: usize = SLOTS * ROOM;
const MTU: Mtu = Mtu::B1024;
const QKEY: u32 = 0x1234;

/// A message, as it was planned.
pub(crate) struct Message {
    /// The queue pair it goes to.
    pub(crate) to: usize,
    pub(crate) bytes: Vec<u8>,
    pub(crate) immediate: Option<u32>,
    /// Where it is written to; it is a SEND otherwise.
    pub(crate) write: Option<usize>,
}

/// What a peer knows of a queue pair.
#[derive(Clone, Copy)]
pub(crate) struct Contact {
    qpn: Qpn,
    kind: QpType,
    addr: u64,
    rkey: u32,
}

struct Station {
    qp: NewQp,
    kind: QpType,
    plan: Vec<Message>,
    posted: usize,
    completed: usize,
    /// Receives that it holds.
    receives: usize,
}

pub(crate) struct Party {
    pub(crate) engine: Engine,
    end: usize,
    pd: Pd,
    /// Receives, and behind them what peers write to.
    region: Region,
    key: u32,
    /// What is sent.
    outgoing: Region,
    outgoing_key: u32,
    completions: CompletionReader,
    stations: Vec<Station>,
    shared: Option<SharedRecvQueue>,
    /// Which queue pair holds the receive of each slot; the shared queue is number [`SHARED`].
    slots: Vec<Option<usize>>,
    peers: Vec<Contact>,
}

const SHARED: usize = usize::MAX;

/// Where a WRITE goes: each to a place of its own.
pub(crate) const fn place_of(station: usize, number: usize) -> usize {
    PLACES + outgoing_at(station, number)
}

/// Where a message leaves from.
const fn outgoing_at(station: usize, number: usize) -> usize {
    (station * MESSAGES + number) * LONGEST
}

pub(crate) fn memory_at(party: &Party, offset: usize, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    assert!(party.region.read_at(offset, &mut bytes));
    bytes
}

impl Party {
    pub(crate) fn new(end: usize, rng: &mut Rng, kinds: &[QpType]) -> Self {
        let mut engine = Engine::new(Config::new(rng.seed(), MTU)).expect("the default configuration");
        engine.set_addresses(&[path(end, false, Qpn::default(), Qpn::default()).source]);
        let pd = engine.alloc_pd().expect("a protection domain");
        let region = Region::alloc(place_of(kinds.len(), 0));
        let access = Access::LOCAL_WRITE | Access::REMOTE;
        let key = engine.register_mr(pd, region.clone(), region.addr(), access).expect("a region").lkey;
        let outgoing = Region::alloc(outgoing_at(kinds.len(), 0));
        let outgoing_key = engine
            .register_mr(pd, outgoing.clone(), outgoing.addr(), Access::empty())
            .expect("a region")
            .lkey;
        let (cq, completions) = engine.create_cq(1024).expect("a completion queue");
        let shared = rng.chance(0.3).then(|| {
            let init = SrqInit { max_wr: 2 * DEPTH as u32, max_sge: 1, xrc: None };
            engine.create_srq(pd, &init).expect("a shared receive queue")
        });
        let (srq, shared) = shared.unzip();
        let create = |kind: &QpType| {
            let init = QpInit {
                max_send_wr: 16,
                max_recv_wr: DEPTH as u32,
                max_send_sge: 1,
                max_recv_sge: 1,
                sq_sig_all: true,
                srq,
                ..QpInit::new(*kind, cq, cq)
            };
            let qp = engine.create_qp(pd, &init).expect("a queue pair");
            Station { qp, kind: *kind, plan: Vec::new(), posted: 0, completed: 0, receives: 0 }
        };
        let stations = kinds.iter().map(create).collect();
        let (slots, peers) = (vec![None; SLOTS], Vec::new());
        Self {
            engine,
            end,
            pd,
            region,
            key,
            outgoing,
            outgoing_key,
            completions,
            stations,
            shared,
            slots,
            peers,
        }
    }

    pub(crate) fn contacts(&self) -> Vec<Contact> {
        let (addr, rkey) = (self.region.addr(), self.key);
        self.stations
            .iter()
            .map(|station| Contact { qpn: station.qp.qpn, kind: station.kind, addr, rkey })
            .collect()
    }

    pub(crate) fn connect(&mut self, peers: &[Contact], psns: &[[Psn; 2]]) {
        self.peers = peers.to_vec();
        for ((station, peer), psns) in self.stations.iter().zip(peers).zip(psns) {
            for attr in steps(self.end, station, peer.qpn, *psns) {
                self.engine.modify_qp(Instant::ZERO, station.qp.qpn, &attr).expect("a transition");
            }
        }
    }

    /// Plans what is sent: over UC to the peer, over UD to any queue pair of its kind.
    pub(crate) fn plan(&mut self, rng: &mut Rng) {
        let is_datagram = |index: &usize| self.peers[*index].kind == QpType::Ud;
        let datagrams: Vec<usize> = (0..self.peers.len()).filter(is_datagram).collect();
        for (index, station) in self.stations.iter_mut().enumerate() {
            let mut message = |number| match station.kind {
                QpType::Uc => connected(rng, index, number),
                _ => Message { to: rng.pick(&datagrams), ..sent(rng, number, MTU.bytes()) },
            };
            station.plan = (0..MESSAGES).map(&mut message).collect();
            for (number, message) in station.plan.iter().enumerate() {
                assert!(self.outgoing.write_at(outgoing_at(index, number), &message.bytes));
            }
        }
    }

    /// How many messages complete a receive if they arrive.
    pub(crate) fn planned(&self) -> usize {
        let completes = |message: &&Message| message.write.is_none() || message.immediate.is_some();
        self.stations.iter().map(|station| station.plan.iter().filter(completes).count()).sum()
    }

    pub(crate) fn has_sent_all(&self) -> bool {
        self.stations.iter().all(|station| station.completed == station.plan.len())
    }

    pub(crate) fn index_of(&self, qpn: Qpn) -> Option<usize> {
        self.stations.iter().position(|station| station.qp.qpn == qpn)
    }

    pub(crate) fn message(&self, station: usize, number: usize) -> Option<&Message> {
        let station = self.stations.get(station)?;
        station.plan[..station.posted].get(number)
    }

    /// Every WRITE: where it goes, and what.
    pub(crate) fn writes(&self) -> impl Iterator<Item = (usize, &Message)> {
        let messages = self.stations.iter().flat_map(|station| &station.plan);
        messages.filter_map(|message| Some((message.write?, message)))
    }

    /// Bytes of a receive before the message.
    pub(crate) fn area_before(&self, station: usize) -> usize {
        if self.stations[station].kind == QpType::Ud { 40 } else { 0 }
    }

    pub(crate) fn poll(&mut self) -> Option<Completion> {
        let mut completion = [Completion::default()];
        (self.completions.poll(&mut completion) == 1).then_some(completion[0])
    }

    pub(crate) fn complete_send(&mut self, completion: &Completion) -> Result<(), String> {
        let index = self.index_of(completion.qp_num).ok_or("an unknown queue pair")?;
        let station = &mut self.stations[index];
        if completion.wr_id as usize != station.completed || station.completed == station.posted {
            return Err(format!("completed out of order, {} before it", station.completed));
        }
        station.completed += 1;
        Ok(())
    }

    /// The receive is used up; tells what a SEND left in it.
    pub(crate) fn take_receive(&mut self, completion: &Completion) -> Result<Vec<u8>, String> {
        let index = self.index_of(completion.qp_num).ok_or("an unknown queue pair")?;
        let slot = completion.wr_id as usize;
        let owner = self.slots.get_mut(slot).and_then(Option::take).ok_or("a receive that was not posted")?;
        if owner != SHARED && owner != index {
            return Err("a receive of another queue pair".into());
        }
        if owner == index {
            self.stations[index].receives -= 1;
        }
        let before = self.area_before(index);
        let len = (completion.byte_len as usize).saturating_sub(before).min(LONGEST);
        Ok(memory_at(self, slot * ROOM + before, len))
    }

    /// The application: posts receives and a few sends.
    pub(crate) fn act(&mut self, rng: &mut Rng) {
        self.post_receives();
        for index in 0..self.stations.len() {
            for _ in 0..rng.below(3) {
                self.post_send(index);
            }
        }
    }

    fn post_receives(&mut self) {
        let (addr, lkey) = (self.region.addr(), self.key);
        for (slot, owner) in self.slots.iter_mut().enumerate().filter(|(_, owner)| owner.is_none()) {
            let sges = [Sge { addr: addr + (slot * ROOM) as u64, length: ROOM as u32, lkey }];
            let station = slot % self.stations.len();
            *owner = match &mut self.shared {
                Some(queue) => queue.push(slot as u64, &sges).is_ok().then_some(SHARED),
                None => self.stations[station].qp.recv.push(slot as u64, &sges).is_ok().then_some(station),
            };
            if *owner == Some(station) {
                self.stations[station].receives += 1;
            }
        }
        self.stations.iter_mut().for_each(|station| station.qp.recv.ring_doorbell());
        self.shared.iter_mut().for_each(SharedRecvQueue::ring_doorbell);
    }

    fn post_send(&mut self, index: usize) {
        let station = &mut self.stations[index];
        let Some(message) = station.plan.get(station.posted) else { return };
        let peer = &self.peers[message.to];
        let op = match message.write {
            Some(place) => {
                let remote = RemoteAddr { va: peer.addr + place as u64, rkey: peer.rkey };
                SendOp::Write { remote, immediate: message.immediate }
            }
            None => SendOp::Send { immediate: message.immediate },
        };
        let addr = self.outgoing.addr() + outgoing_at(index, station.posted) as u64;
        let sges = [Sge { addr, length: message.bytes.len() as u32, lkey: self.outgoing_key }];
        let ah = AddressHandle::new(self.pd, &path(self.end, false, station.qp.qpn, peer.qpn))
            .expect("one family");
        let to = match station.kind {
            QpType::Uc => Recipient::Peer,
            _ => Recipient::Datagram { ah: &ah, qpn: peer.qpn, qkey: QKEY },
        };
        let wr = SendWr {
            wr_id: station.posted as u64,
            op,
            flags: SendFlags::empty(),
            data: Gather::Sges(&sges),
            to,
        };
        if station.qp.send.push(&wr).is_ok() {
            station.posted += 1;
            station.qp.send.ring_doorbell();
        }
    }
}

/// A message over UC: a SEND, or a WRITE with or without an immediate.
fn connected(rng: &mut Rng, index: usize, number: usize) -> Message {
    let message = Message { to: index, ..sent(rng, number, LONGEST) };
    if rng.chance(0.5) {
        return message;
    }
    let immediate = rng.chance(0.7).then_some(number as u32);
    Message { write: Some(place_of(index, number)), immediate, ..message }
}

/// A SEND that tells its number in its first bytes.
fn sent(rng: &mut Rng, number: usize, longest: usize) -> Message {
    let mtu = MTU.bytes();
    let boundary = rng.pick(&[4, 5, 6, 7, mtu - 1, mtu, mtu + 1, 2 * mtu, 2 * mtu + 1]);
    let any = 4 + rng.below(longest - 3);
    let len = if rng.chance(0.5) { boundary.min(longest) } else { any };
    let mut bytes = rng.bytes(len);
    bytes[..4].copy_from_slice(&(number as u32).to_le_bytes());
    Message { to: 0, bytes, immediate: rng.chance(0.3).then_some(number as u32), write: None }
}

fn steps(end: usize, station: &Station, peer: Qpn, psns: [Psn; 2]) -> [QpAttr; 3] {
    let connected = station.kind == QpType::Uc;
    let path = path(end, false, station.qp.qpn, peer);
    [
        QpAttr {
            port: Some(1),
            pkey_index: Some(0),
            access: connected.then_some(Access::REMOTE),
            qkey: (!connected).then_some(QKEY),
            ..QpAttr::to(QpState::Init)
        },
        QpAttr {
            path: connected.then_some(path),
            path_mtu: connected.then_some(MTU),
            dest_qpn: connected.then_some(peer),
            rq_psn: connected.then_some(psns[1 - end]),
            ..QpAttr::to(QpState::Rtr)
        },
        QpAttr { sq_psn: Some(psns[end]), ..QpAttr::to(QpState::Rts) },
    ]
}
