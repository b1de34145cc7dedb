//! Two engines on one thread, joined by a handful of frames: the stack alone, without any I/O.

use std::net::{IpAddr, Ipv4Addr};

use uroce_stack::wire::{MacAddr, Mtu, Path, Psn, Qpn};
use uroce_stack::{
    Access, Completion, CompletionReader, Config, Engine, Gather, Instant, NewQp, QpAttr, QpInit, QpState,
    QpType, Recipient, RecvQueue, Region, RemoteAddr, SendFlags, SendOp, SendQueue, SendWr, Sge, WcStatus,
};

/// Frames that cross before the other end looks, as a driver's batch would have them.
const BATCH: usize = 64;
/// Room for the largest frame.
const FRAME: usize = 4352;
/// Work requests outstanding at most.
const DEPTH: u32 = 128;
/// Every so many work requests ask for a completion.
const SIGNAL_EVERY: u64 = 32;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// RDMA WRITE.
    Write,
    /// RDMA READ.
    Read,
    /// SEND.
    Send,
}

/// Both ends and the frames between them.
pub struct Pair {
    ends: [End; 2],
    frames: Vec<[u8; FRAME]>,
    lengths: Vec<usize>,
    posted: u64,
    completed: u64,
    received: u64,
    receives_posted: u64,
}

struct End {
    engine: Engine,
    qpn: Qpn,
    send: SendQueue,
    recv: RecvQueue,
    completions: CompletionReader,
    region: Region,
    key: u32,
}

impl Pair {
    /// Connected ends with regions of `size` bytes.
    ///
    /// # Panics
    /// When a fixed part of the setup is refused, which would be a defect.
    #[must_use]
    pub fn new(mtu: Mtu, size: usize) -> Self {
        let mut ends = [End::new(1, size), End::new(2, size)];
        let numbers = [ends[0].qpn, ends[1].qpn];
        ends[0].connect(0, numbers[1], mtu);
        ends[1].connect(1, numbers[0], mtu);
        Self {
            ends,
            frames: vec![[0; FRAME]; BATCH],
            lengths: Vec::with_capacity(BATCH),
            posted: 0,
            completed: 0,
            received: 0,
            receives_posted: 0,
        }
    }

    /// Runs `count` messages of `size` bytes from end 0 to its completion; `count` is a multiple of 32.
    ///
    /// # Panics
    /// When one of them fails, which would be a defect.
    pub fn run(&mut self, work: Work, size: usize, count: u64) {
        let end = self.posted + count;
        while self.completed < end {
            self.post(work, size, end);
            self.transfer(0);
            self.poll_receives();
            self.transfer(1);
            self.poll();
        }
    }

    fn post(&mut self, work: Work, size: usize, end: u64) {
        if work == Work::Send {
            self.post_receives(size, end);
        }
        let [local, remote] = &mut self.ends;
        let target = RemoteAddr { va: remote.region.addr(), rkey: remote.key };
        let op = match work {
            Work::Write => SendOp::Write { remote: target, immediate: None },
            Work::Read => SendOp::Read { remote: target },
            Work::Send => SendOp::Send { immediate: None },
        };
        let sge = [Sge { addr: local.region.addr(), length: size as u32, lkey: local.key }];
        let before = self.posted;
        while self.posted < end {
            let signaled = (self.posted + 1).is_multiple_of(SIGNAL_EVERY);
            let flags = if signaled { SendFlags::SIGNALED } else { SendFlags::empty() };
            let wr = SendWr { wr_id: self.posted, op, flags, data: Gather::Sges(&sge), to: Recipient::Peer };
            if local.send.push(&wr).is_err() {
                break;
            }
            self.posted += 1;
        }
        if self.posted != before {
            local.send.ring_doorbell();
        }
    }

    fn post_receives(&mut self, size: usize, end: u64) {
        let remote = &mut self.ends[1];
        let sge = [Sge { addr: remote.region.addr(), length: size as u32, lkey: remote.key }];
        while self.receives_posted < end && remote.recv.push(self.receives_posted, &sge).is_ok() {
            self.receives_posted += 1;
        }
        remote.recv.ring_doorbell();
    }

    /// One round of each driver: what end `from` has to send arrives at the other.
    fn transfer(&mut self, from: usize) {
        let now = Instant::ZERO;
        self.lengths.clear();
        for frame in &mut self.frames {
            let Some(len) = self.ends[from].engine.transmit(now, frame) else { break };
            self.lengths.push(len);
        }
        self.ends[from].engine.publish(&mut |_| {});
        for (frame, len) in self.frames.iter().zip(&self.lengths) {
            self.ends[1 - from].engine.receive(now, &frame[..*len], &[]);
        }
    }

    fn poll(&mut self) {
        let mut completions = [Completion::default(); 16];
        let count = self.ends[0].completions.poll(&mut completions);
        for completion in &completions[..count] {
            assert_eq!(completion.status, WcStatus::Success);
            self.completed = completion.wr_id + 1;
        }
    }

    fn poll_receives(&mut self) {
        let mut completions = [Completion::default(); 64];
        self.received += self.ends[1].completions.poll(&mut completions) as u64;
    }
}

impl End {
    fn new(seed: u8, size: usize) -> Self {
        let mut engine = Engine::new(Config::new([seed; 32], Mtu::B4096)).expect("the default configuration");
        let pd = engine.alloc_pd().expect("a protection domain");
        let region = Region::alloc(size);
        let keys = engine
            .register_mr(pd, region.clone(), region.addr(), Access::LOCAL_WRITE | Access::REMOTE)
            .expect("a region");
        let (cq, completions) = engine.create_cq(4096).expect("a completion queue");
        let init = QpInit {
            max_send_wr: DEPTH,
            max_recv_wr: DEPTH * 2,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: 0,
            sq_sig_all: false,
            ..QpInit::new(QpType::Rc, cq, cq)
        };
        let NewQp { qpn, send, recv } = engine.create_qp(pd, &init).expect("a queue pair");
        Self { engine, qpn, send, recv, completions, region, key: keys.lkey }
    }

    fn connect(&mut self, end: u8, peer: Qpn, mtu: Mtu) {
        let psn = Some(Psn::new(0));
        let init = QpAttr {
            port: Some(1),
            pkey_index: Some(0),
            access: Some(Access::LOCAL_WRITE | Access::REMOTE),
            ..QpAttr::to(QpState::Init)
        };
        let rtr = QpAttr {
            path: Some(path(end)),
            path_mtu: Some(mtu),
            dest_qpn: Some(peer),
            rq_psn: psn,
            max_dest_rd_atomic: Some(16),
            min_rnr_timer: Some(12),
            ..QpAttr::to(QpState::Rtr)
        };
        let rts = QpAttr {
            timeout: Some(14),
            retry_cnt: Some(7),
            rnr_retry: Some(7),
            sq_psn: psn,
            max_rd_atomic: Some(16),
            ..QpAttr::to(QpState::Rts)
        };
        for attr in [init, rtr, rts] {
            self.engine.modify_qp(Instant::ZERO, self.qpn, &attr).expect("a transition");
        }
    }
}

fn path(end: u8) -> Path {
    Path {
        source_mac: MacAddr([2, 0, 0, 0, 0, end]),
        destination_mac: MacAddr([2, 0, 0, 0, 0, 1 - end]),
        vlan: None,
        source: IpAddr::V4(Ipv4Addr::new(10, 0, 0, end + 1)),
        destination: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2 - end)),
        source_port: 0xC000,
        traffic_class: 0,
        hop_limit: 64,
        flow_label: 0,
    }
}
