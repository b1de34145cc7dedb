//! One end: an engine, its queue pairs, and an application that posts and polls.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use uroce_stack::wire::{MacAddr, Mtu, Path, Psn, Qpn, source_port};
use uroce_stack::{
    Access, Completion, CompletionReader, Config, Engine, Gather, Instant, NewQp, PostError, QpAttr, QpInit,
    QpState, QpType, Recipient, RecvQueue, Region, SendOp, SendQueue, SendWr, Sge, Srq, WcStatus,
};

use crate::plan::{AREA, Expected, Plan, Step, Target};
use crate::rng::Rng;
use crate::shared::Shared;

/// Bytes of local memory for each step or receive.
pub(crate) const ROOM: usize = AREA / 8 + 8;

/// What both ends of a queue pair agree on.
#[derive(Clone, Copy)]
pub(crate) struct Agreement {
    pub(crate) mtu: Mtu,
    pub(crate) ipv6: bool,
    pub(crate) depth: u8,
    pub(crate) psns: [Psn; 2],
}

pub(crate) struct Endpoint {
    pub(crate) engine: Engine,
    pub(crate) sides: Vec<Side>,
    end: usize,
    /// Where some of the queue pairs take their receives from.
    shared: Shared,
}

/// One end of one queue pair.
pub(crate) struct Side {
    pub(crate) qpn: Qpn,
    send: SendQueue,
    recv: RecvQueue,
    completions: CompletionReader,
    local: Buffer,
    receives: Buffer,
    /// What the peer reaches.
    area: Buffer,
    plan: Plan,
    /// What arrives.
    expected: Vec<Expected>,
    posted: usize,
    receives_posted: usize,
    completed: usize,
    received: usize,
    /// It takes its receives from the shared queue.
    is_shared: bool,
}

struct Buffer {
    region: Region,
    lkey: u32,
}

impl Endpoint {
    pub(crate) fn new(end: usize, seed: [u8; 32]) -> Self {
        let mut engine = Engine::new(Config::new(seed, Mtu::B4096)).expect("the default configuration");
        let shared = Shared::new(&mut engine);
        Self { engine, sides: Vec::new(), end, shared }
    }

    /// A queue pair with its memory; tells what the peer may reach.
    pub(crate) fn add(&mut self, rng: &mut Rng, capacity: u32) -> Target {
        let pd = self.engine.alloc_pd().expect("a protection domain");
        let mut buffer = |len, access| {
            let region = Region::alloc(len);
            let keys = self.engine.register_mr(pd, region.clone(), region.addr(), access).expect("a region");
            Buffer { region, lkey: keys.lkey }
        };
        let local = buffer(128 * ROOM, Access::LOCAL_WRITE);
        let receives = buffer(128 * ROOM, Access::LOCAL_WRITE);
        let area = buffer(AREA, Access::LOCAL_WRITE | Access::REMOTE);
        let shadow = rng.bytes(AREA);
        assert!(area.region.write_at(0, &shadow));
        let target = Target { addr: area.region.addr(), rkey: area.lkey, shadow };
        let srq: Option<Srq> = rng.chance(0.3).then_some(self.shared.srq);
        let (cq, completions) = self.engine.create_cq(512).expect("a completion queue");
        let init = QpInit {
            max_send_wr: capacity,
            max_recv_wr: 16,
            max_send_sge: 4,
            max_recv_sge: 2,
            max_inline_data: 64,
            sq_sig_all: false,
            srq,
            ..QpInit::new(QpType::Rc, cq, cq)
        };
        let NewQp { qpn, send, recv } = self.engine.create_qp(pd, &init).expect("a queue pair");
        self.sides.push(Side {
            qpn,
            send,
            recv,
            completions,
            local,
            receives,
            area,
            plan: Plan::default(),
            expected: Vec::new(),
            posted: 0,
            receives_posted: 0,
            completed: 0,
            received: 0,
            is_shared: srq.is_some(),
        });
        target
    }

    pub(crate) fn connect(&mut self, index: usize, peer: Qpn, agreed: &Agreement) {
        let qpn = self.sides[index].qpn;
        let (ours, theirs) = (agreed.psns[self.end], agreed.psns[1 - self.end]);
        for attr in transitions(self.end, qpn, peer, agreed, ours, theirs) {
            self.engine.modify_qp(Instant::ZERO, qpn, &attr).expect("a transition");
        }
    }

    /// The application: posts what fits, takes what is there.
    pub(crate) fn act(&mut self, rng: &mut Rng) -> Result<(), String> {
        self.shared.post(rng);
        self.sides.iter_mut().try_for_each(|side| side.act(rng, &mut self.shared))
    }

    pub(crate) fn is_done(&self) -> bool {
        self.sides.iter().all(Side::is_done)
    }
}

impl Side {
    pub(crate) fn set_plan(&mut self, plan: Plan, expected: Vec<Expected>) {
        (self.plan, self.expected) = (plan, expected);
    }

    pub(crate) fn has_posted_all(&self) -> bool {
        let posted = self.is_shared || self.receives_posted == self.expected.len();
        posted && self.posted == self.plan.steps.len()
    }

    /// What the peer has to receive.
    pub(crate) fn expected_by_peer(plan: &Plan) -> Vec<Expected> {
        plan.expected.clone()
    }

    /// Whether everything is as it must be in the end.
    pub(crate) fn check_area(&self, shadow: &[u8]) -> Result<(), String> {
        let mut bytes = vec![0; AREA];
        assert!(self.area.region.read_at(0, &mut bytes));
        match bytes.iter().zip(shadow).position(|(is, should)| is != should) {
            Some(at) => Err(format!("{}: memory differs at byte {at}", self.qpn)),
            None => Ok(()),
        }
    }

    fn act(&mut self, rng: &mut Rng, shared: &mut Shared) -> Result<(), String> {
        if rng.chance(0.5) && !self.is_shared {
            self.post_receives();
        }
        self.post_sends(rng);
        self.poll(shared)
    }

    fn is_done(&self) -> bool {
        self.completed == self.plan.steps.len() && self.received == self.expected.len()
    }

    fn post_receives(&mut self) {
        while self.receives_posted < self.expected.len() {
            let (at, lkey) = (self.receives.region.addr() + room(self.receives_posted), self.receives.lkey);
            let cut = self.receives_posted % 7;
            let sges = [
                Sge { addr: at, length: cut as u32, lkey },
                Sge { addr: at + cut as u64, length: (ROOM - cut) as u32, lkey },
            ];
            match self.recv.push(self.receives_posted as u64, &sges) {
                Ok(()) => self.receives_posted += 1,
                Err(PostError::QueueFull) => break,
                Err(error) => panic!("{error}"),
            }
        }
        self.recv.ring_doorbell();
    }

    fn post_sends(&mut self, rng: &mut Rng) {
        while self.posted < self.plan.steps.len() && rng.chance(0.8) {
            let step = &self.plan.steps[self.posted];
            if !post(&mut self.send, &self.local, step, self.posted, self.plan.steps.len()) {
                break;
            }
            self.posted += 1;
        }
        self.send.ring_doorbell();
    }

    fn poll(&mut self, shared: &mut Shared) -> Result<(), String> {
        let mut completions = [Completion::default(); 8];
        loop {
            let count = self.completions.poll(&mut completions);
            for completion in &completions[..count] {
                self.check(completion, shared)
                    .map_err(|what| format!("{}: {what}: {completion:?}", self.qpn))?;
            }
            if count == 0 {
                return Ok(());
            }
        }
    }

    fn check(&mut self, completion: &Completion, shared: &mut Shared) -> Result<(), String> {
        if completion.status != WcStatus::Success {
            return Err("failed".into());
        }
        if (completion.opcode as u8) < 128 {
            self.check_send(completion)
        } else {
            self.check_receive(completion, shared)
        }
    }

    /// Completions come in order; unsignaled ones are implied by the next.
    fn check_send(&mut self, completion: &Completion) -> Result<(), String> {
        let index = completion.wr_id as usize;
        if index < self.completed || index >= self.posted {
            return Err(format!("completed out of order after {}", self.completed));
        }
        for index in self.completed..=index {
            self.check_result(index)?;
        }
        self.completed = index + 1;
        Ok(())
    }

    fn check_result(&self, index: usize) -> Result<(), String> {
        let step = &self.plan.steps[index];
        if matches!(step.op, SendOp::Send { .. } | SendOp::Write { .. }) {
            return Ok(());
        }
        let mut bytes = vec![0; step.bytes.len()];
        assert!(self.local.region.read_at(room(index) as usize, &mut bytes));
        if bytes == step.bytes {
            Ok(())
        } else {
            Err(format!("step {index} {:?} returned wrong bytes", step.op))
        }
    }

    fn check_receive(&mut self, completion: &Completion, shared: &mut Shared) -> Result<(), String> {
        let index = self.received;
        let expected = self.expected.get(index).ok_or("one receive too many")?;
        self.received += 1;
        if completion.opcode != expected.opcode
            || completion.immediate != expected.immediate
            || completion.byte_len != expected.byte_len
        {
            return Err(format!("receive {index} should be {expected:?}"));
        }
        let bytes = if self.is_shared {
            shared.take(completion.wr_id, expected.bytes.len())?
        } else {
            self.own_receive(completion.wr_id, expected.bytes.len())?
        };
        if bytes == expected.bytes { Ok(()) } else { Err(format!("receive {index} has wrong bytes")) }
    }

    /// Receives of its own complete in the order in which they were posted.
    fn own_receive(&self, wr_id: u64, len: usize) -> Result<Vec<u8>, String> {
        if wr_id + 1 != self.received as u64 {
            return Err(format!("receive {wr_id} completed as number {}", self.received - 1));
        }
        let mut bytes = vec![0; len];
        assert!(self.receives.region.read_at(room(self.received - 1) as usize, &mut bytes));
        Ok(bytes)
    }
}

fn room(index: usize) -> u64 {
    (index * ROOM) as u64
}

fn post(queue: &mut SendQueue, local: &Buffer, step: &Step, index: usize, count: usize) -> bool {
    let (addr, lkey) = (local.region.addr() + room(index), local.lkey);
    if matches!(step.op, SendOp::Send { .. } | SendOp::Write { .. }) {
        assert!(local.region.write_at(room(index) as usize, &step.bytes));
    }
    let mut at = addr;
    let sges: Vec<Sge> = step
        .pieces
        .iter()
        .map(|&piece| {
            let sge = Sge { addr: at, length: piece as u32, lkey };
            at += piece as u64;
            sge
        })
        .collect();
    let data = if step.inline { Gather::Inline(&step.bytes) } else { Gather::Sges(&sges) };
    let mut flags = step.flags;
    flags.set(
        uroce_stack::SendFlags::SIGNALED,
        flags.contains(uroce_stack::SendFlags::SIGNALED) || index + 1 == count,
    );
    match queue.push(&SendWr { wr_id: index as u64, op: step.op, flags, data, to: Recipient::Peer }) {
        Ok(()) => true,
        Err(PostError::QueueFull) => false,
        Err(error) => panic!("{error}"),
    }
}

fn transitions(end: usize, qpn: Qpn, peer: Qpn, agreed: &Agreement, ours: Psn, theirs: Psn) -> [QpAttr; 3] {
    let path = path(end, agreed.ipv6, qpn, peer);
    [
        QpAttr {
            port: Some(1),
            pkey_index: Some(0),
            access: Some(Access::LOCAL_WRITE | Access::REMOTE),
            ..QpAttr::to(QpState::Init)
        },
        QpAttr {
            path: Some(path),
            path_mtu: Some(agreed.mtu),
            dest_qpn: Some(peer),
            rq_psn: Some(theirs),
            max_dest_rd_atomic: Some(agreed.depth),
            min_rnr_timer: Some(3),
            ..QpAttr::to(QpState::Rtr)
        },
        QpAttr {
            timeout: Some(8),
            retry_cnt: Some(7),
            rnr_retry: Some(7),
            sq_psn: Some(ours),
            max_rd_atomic: Some(agreed.depth),
            ..QpAttr::to(QpState::Rts)
        },
    ]
}

pub(crate) fn path(end: usize, ipv6: bool, qpn: Qpn, peer: Qpn) -> Path {
    let mac = |end: usize| MacAddr([0x52, 0x54, 0, 0, 0, end as u8 + 1]);
    let ip = |end: usize| match ipv6 {
        true => IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, end as u16 + 1)),
        false => IpAddr::V4(Ipv4Addr::new(10, 0, 0, end as u8 + 1)),
    };
    Path {
        source_mac: mac(end),
        destination_mac: mac(1 - end),
        vlan: None,
        source: ip(end),
        destination: ip(1 - end),
        source_port: source_port(0, qpn, peer),
        traffic_class: 0,
        hop_limit: 64,
        flow_label: 0,
    }
}
