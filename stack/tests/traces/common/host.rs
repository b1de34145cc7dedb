//! One engine, one queue pair, and an application.

use std::time::Duration;

use super::*;

/// The address of the first byte of [`Host::region`].
pub const VA: u64 = 0x10_0000;
/// How many bytes [`Host::region`] has.
pub const AREA: usize = 1 << 16;

/// An engine with one queue pair, and what belongs to it.
pub struct Host {
    pub engine: Engine,
    pub now: Instant,
    pub setup: Setup,
    pub pd: Pd,
    pub qpn: Qpn,
    pub sends: SendQueue,
    pub recvs: RecvQueue,
    /// Registered at [`VA`] with every right.
    pub region: Region,
    pub keys: MrKeys,
    pub send_cq: Cq,
    pub recv_cq: Cq,
    pub send_reader: CompletionReader,
    pub recv_reader: CompletionReader,
    /// Completion queues that fired, in order.
    pub notified: Vec<Cq>,
    /// Where receives come from, if they are not the queue pair's own.
    pub srq: Option<SharedReceives>,
    /// The domain of an XRC target and its shared receive queue.
    pub xrcd: Option<Xrcd>,
}

impl Host {
    /// A connection in RTS.
    pub fn new() -> Self {
        Self::with(Setup::default())
    }

    pub fn with(setup: Setup) -> Self {
        let (window, rxe_flush_icrc) = (setup.window, setup.rxe_flush_icrc);
        let config = Config { window, rxe_flush_icrc, ..Config::new([42; 32], setup.port_mtu) };
        let mut engine = Engine::new(config).expect("the configuration is valid");
        let pd = engine.alloc_pd().expect("room for a protection domain");
        let region = Region::alloc(AREA);
        let keys = engine
            .register_mr(pd, region.clone(), VA, Access::LOCAL_WRITE | Access::REMOTE)
            .expect("room for a region");
        let (send_cq, send_reader) = engine.create_cq(setup.cqe).expect("room for a completion queue");
        let (recv_cq, recv_reader) = engine.create_cq(setup.cqe).expect("room for a completion queue");
        engine.set_addresses(&[HOST, HOST_V6]);
        let xrcd = (setup.qp_type == QpType::XrcTgt).then(|| engine.open_xrcd().expect("room for a domain"));
        let xrc = xrcd.map(|xrcd| (xrcd, recv_cq));
        let size = setup.srq.or(xrc.map(|_| setup.depth));
        let srq = size.map(|size| SharedReceives::new(&mut engine, pd, size, xrc));
        let own = srq.as_ref().filter(|_| xrc.is_none()).map(|srq| srq.srq);
        let init = QpInit { srq: own, xrcd, ..qp_init(&setup, send_cq, recv_cq) };
        let NewQp { qpn, send: sends, recv: recvs } =
            engine.create_qp(pd, &init).expect("room for a queue pair");
        let mut host = Self {
            engine,
            now: Instant::from_nanos(1_000_000_000),
            pd,
            qpn,
            sends,
            recvs,
            region,
            keys,
            send_cq,
            recv_cq,
            send_reader,
            recv_reader,
            notified: Vec::new(),
            srq,
            xrcd,
            setup,
        };
        host.bring_up();
        host
    }

    /// What queue pairs of this host are created with.
    pub fn init(&self) -> QpInit {
        let own = self.srq.as_ref().filter(|_| self.xrcd.is_none());
        let srq = own.map(|shared| shared.srq);
        QpInit { srq, xrcd: self.xrcd, ..qp_init(&self.setup, self.send_cq, self.recv_cq) }
    }

    /// Brings the queue pair from RESET to the state of the setup.
    pub fn bring_up(&mut self) {
        for step in [QpState::Init, QpState::Rtr, QpState::Rts] {
            if self.state() != self.setup.state {
                self.modify(&attr_to(step, &self.setup));
            }
        }
    }

    /// The peer's packet arrives.
    pub fn recv(&mut self, packet: Pkt) {
        let frame = packet.frame(self.qpn);
        self.engine.receive(self.now, &frame, &[]);
    }

    pub fn recv_all(&mut self, packets: impl IntoIterator<Item = Pkt>) {
        for packet in packets {
            self.recv(packet);
        }
    }

    /// The rest of the round: everything that the engine has to send, then completions become visible.
    pub fn sent(&mut self) -> Vec<Pkt> {
        let sent = std::iter::from_fn(|| self.transmit()).collect();
        self.publish();
        sent
    }

    /// One frame of the engine.
    pub fn transmit(&mut self) -> Option<Pkt> {
        let mut frame = [0; 4096 + MAX_HEADER];
        let len = self.engine.transmit(self.now, &mut frame)?;
        let packet = Packet::parse(&frame[..len], &[]).expect("the engine sends valid packets");
        assert!(packet.payload.len() <= self.setup.mtu.bytes());
        Some(Pkt::parsed(&packet))
    }

    pub fn publish(&mut self) {
        let notified = &mut self.notified;
        self.engine.publish(&mut |cq| notified.push(cq));
    }

    /// Time passes, and timers fire.
    pub fn advance(&mut self, by: Duration) {
        self.now = self.now + by;
        self.engine.expire(self.now);
    }

    /// Posts a send of registered memory.
    pub fn post(&mut self, wr_id: u64, op: SendOp, flags: SendFlags, sges: &[Sge]) {
        self.try_post(&SendWr { wr_id, op, flags, data: Gather::Sges(sges), to: Recipient::Peer })
            .expect("the request is accepted");
    }

    pub fn try_post(&mut self, wr: &SendWr<'_>) -> Result<(), PostError> {
        self.sends.push(wr)?;
        self.sends.ring_doorbell();
        Ok(())
    }

    /// Posts a SEND of the first `length` bytes.
    pub fn post_send(&mut self, wr_id: u64, length: u32) {
        self.post(wr_id, SendOp::Send { immediate: None }, SendFlags::empty(), &[self.sge(0, length)]);
    }

    /// Posts a WRITE of the first `length` bytes to [`FAR`].
    pub fn post_write(&mut self, wr_id: u64, length: u32) {
        let op = SendOp::Write { remote: FAR, immediate: None };
        self.post(wr_id, op, SendFlags::empty(), &[self.sge(0, length)]);
    }

    /// Posts a READ from [`FAR`] to the first `length` bytes.
    pub fn post_read(&mut self, wr_id: u64, length: u32) {
        self.post(wr_id, SendOp::Read { remote: FAR }, SendFlags::empty(), &[self.sge(0, length)]);
    }

    /// Posts a FETCH_ADD of 1 at [`FAR`] whose result goes to `offset`.
    pub fn post_fetch_add(&mut self, wr_id: u64, offset: u64) {
        let op = SendOp::FetchAdd { remote: FAR, add: 1 };
        self.post(wr_id, op, SendFlags::empty(), &[self.sge(offset, 8)]);
    }

    /// Posts a receive into `length` bytes from `offset` on.
    pub fn post_recv(&mut self, wr_id: u64, offset: u64, length: u32) {
        self.try_post_recv(wr_id, &[self.sge(offset, length)]).expect("the receive is accepted");
    }

    pub fn try_post_recv(&mut self, wr_id: u64, sges: &[Sge]) -> Result<(), PostError> {
        self.recvs.push(wr_id, sges)?;
        self.recvs.ring_doorbell();
        Ok(())
    }

    /// How visible sends ended, in order: their numbers and statuses.
    pub fn done(&mut self) -> Vec<(u64, WcStatus)> {
        outcomes(drain(&mut self.send_reader))
    }

    /// How visible receives ended, in order: their numbers and statuses.
    pub fn received(&mut self) -> Vec<(u64, WcStatus)> {
        outcomes(drain(&mut self.recv_reader))
    }

    /// Visible completions of sends.
    pub fn send_completions(&mut self) -> Vec<Completion> {
        drain(&mut self.send_reader)
    }

    /// Visible completions of receives.
    pub fn recv_completions(&mut self) -> Vec<Completion> {
        drain(&mut self.recv_reader)
    }

    pub fn state(&self) -> QpState {
        let (attr, _) = self.engine.query_qp(self.qpn).expect("the queue pair exists");
        assert_eq!(attr.state, attr.cur_state, "C69");
        attr.state.expect("C69: the state is told")
    }

    pub fn modify(&mut self, attr: &QpAttr) {
        self.engine.modify_qp(self.now, self.qpn, attr).expect("the transition is allowed");
    }

    pub fn events(&mut self) -> Vec<AsyncEvent> {
        std::iter::from_fn(|| self.engine.next_event()).collect()
    }

    pub fn count(&self, counter: Counter) -> u64 {
        self.engine.counters().get(counter)
    }

    /// A piece of the region, for local use.
    pub const fn sge(&self, offset: u64, length: u32) -> Sge {
        Sge { addr: VA + offset, length, lkey: self.keys.lkey }
    }

    /// A place in the region, for the peer's use.
    pub const fn at(&self, offset: u64) -> RemoteAddr {
        RemoteAddr { va: VA + offset, rkey: self.keys.rkey }
    }

    pub fn fill(&self, offset: usize, bytes: &[u8]) {
        assert!(self.region.write_at(offset, bytes));
    }

    pub fn bytes(&self, offset: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        assert!(self.region.read_at(offset, &mut bytes));
        bytes
    }

    pub fn word(&self, offset: usize) -> u64 {
        u64::from_ne_bytes(self.bytes(offset, 8).try_into().expect("eight bytes"))
    }
}

fn drain(reader: &mut CompletionReader) -> Vec<Completion> {
    let mut out = vec![Completion::default(); reader.capacity() as usize];
    let count = reader.poll(&mut out);
    out.truncate(count);
    out
}

fn outcomes(completions: Vec<Completion>) -> Vec<(u64, WcStatus)> {
    completions.iter().map(|completion| (completion.wr_id, completion.status)).collect()
}
