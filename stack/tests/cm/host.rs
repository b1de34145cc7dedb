//! A connection manager under test, its virtual clock, and what it says.

use std::net::IpAddr;
use std::time::Duration;

use uroce_stack::Instant;
use uroce_stack::QpType;
use uroce_stack::cm::*;
use uroce_stack::wire::cm::{CmKind, CmMad, CmMessage, PortSpace, PrivateData, ServiceId};
use uroce_stack::wire::{Mtu, Psn, Qpn};

pub(crate) const HERE: &str = "10.1.0.1";
pub(crate) const THERE: &str = "10.1.0.2";
pub(crate) const OUR_GUID: u64 = 0x5054_00ff_fe00_0001;
pub(crate) const OUR_QPN: Qpn = Qpn::new(0x26);
pub(crate) const SERVICE: ServiceId = ServiceId::new(PortSpace::Tcp, 18515);

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

pub(crate) fn config(seed: u8) -> CmConfig {
    CmConfig::new([seed; 32], OUR_GUID, Mtu::B4096)
}

pub(crate) fn connect_params(private_data: &[u8]) -> ConnectParams<'_> {
    ConnectParams {
        route: Route::new(ip(HERE), ip(THERE)),
        service_id: SERVICE,
        source_port: 40_000,
        qp_type: QpType::Rc,
        qpn: OUR_QPN,
        rq_psn: Psn::new(0x10_0000),
        path_mtu: Mtu::B1024,
        responder_resources: 4,
        initiator_depth: 5,
        retry_count: 6,
        rnr_retry_count: 7,
        flow_control: false,
        srq: false,
        private_data,
    }
}

pub(crate) fn accept_params(private_data: &[u8]) -> AcceptParams<'_> {
    AcceptParams {
        qpn: OUR_QPN,
        rq_psn: Psn::new(0x20_0000),
        responder_resources: 3,
        initiator_depth: 2,
        rnr_retry_count: 1,
        flow_control: false,
        srq: false,
        private_data,
    }
}

/// `data` filled up with zeros.
pub(crate) fn data<const N: usize>(data: &[u8]) -> PrivateData<N> {
    PrivateData::new(data).expect("it fits")
}

pub(crate) struct Host {
    pub(crate) cm: Cm,
    pub(crate) now: Instant,
}

impl Host {
    pub(crate) fn new() -> Self {
        Self::with(config(1))
    }

    pub(crate) fn with(config: CmConfig) -> Self {
        Self { cm: Cm::new(config).expect("the configuration is valid"), now: Instant::from_nanos(1) }
    }

    /// One that listens to [`SERVICE`].
    pub(crate) fn listening() -> Self {
        let mut host = Self::new();
        host.listen(SERVICE, QpType::Rc);
        host
    }

    pub(crate) fn listen(&mut self, service_id: ServiceId, qp_type: QpType) -> ListenId {
        self.cm.listen(&ListenParams::new(service_id, qp_type)).expect("nobody else listens")
    }

    pub(crate) fn connect(&mut self) -> ConnId {
        self.cm.connect(self.now, &connect_params(b"hello")).expect("it is possible")
    }

    pub(crate) fn accept(&mut self, id: ConnId) {
        self.cm.accept(self.now, id, &accept_params(b"welcome")).expect("it is possible");
    }

    pub(crate) fn disconnect(&mut self, id: ConnId) {
        self.cm.disconnect(self.now, id, b"bye").expect("it is possible");
    }

    pub(crate) fn receive(&mut self, mad: &CmMad) {
        self.receive_from(THERE, mad);
    }

    pub(crate) fn receive_from(&mut self, source: &str, mad: &CmMad) {
        let sender = Sender { source: ip(source), destination: ip(HERE), source_qp: Qpn::GSI };
        self.cm.receive(self.now, &sender, &mad.emit());
    }

    /// Hands it what it sends to itself.
    pub(crate) fn loop_back(&mut self) {
        for out in self.datagrams() {
            let sender = Sender { source: out.source, destination: out.destination, source_qp: Qpn::GSI };
            self.cm.receive(self.now, &sender, &out.mad);
        }
    }

    /// Everything it wants to send, in order.
    pub(crate) fn datagrams(&mut self) -> Vec<Datagram> {
        core::iter::from_fn(|| self.cm.poll_transmit()).collect()
    }

    /// The same as messages, all of them to the peer.
    pub(crate) fn sent(&mut self) -> Vec<CmMad> {
        let datagrams = self.datagrams();
        assert!(datagrams.iter().all(|out| (out.source, out.destination) == (ip(HERE), ip(THERE))));
        assert!(datagrams.iter().all(|out| out.destination_qp == Qpn::GSI && out.hop_limit == 64));
        datagrams.iter().map(|out| CmMad::parse(&out.mad).expect("a message")).collect()
    }

    pub(crate) fn sent_one(&mut self) -> CmMad {
        let sent = self.sent();
        assert_eq!(sent.len(), 1, "{sent:?}");
        sent[0]
    }

    pub(crate) fn events(&mut self) -> Vec<CmEvent> {
        core::iter::from_fn(|| self.cm.next_event()).collect()
    }

    pub(crate) fn event(&mut self) -> CmEvent {
        let events = self.events();
        assert_eq!(events.len(), 1, "{events:?}");
        events[0]
    }

    /// The request of a peer that was just received.
    pub(crate) fn request(&mut self) -> ConnectRequest {
        match self.event() {
            CmEvent::ConnectRequest(request) => request,
            other => panic!("no request: {other:?}"),
        }
    }

    pub(crate) fn reply(&mut self) -> Reply {
        match self.event() {
            CmEvent::Reply(reply) => reply,
            other => panic!("no reply: {other:?}"),
        }
    }

    pub(crate) fn advance(&mut self, by: Duration) {
        self.now = self.now + by;
        self.cm.expire(self.now);
    }

    /// Lets time pass to the next deadline; how long that was.
    pub(crate) fn next_timeout(&mut self) -> Duration {
        let deadline = self.cm.next_deadline().expect("something is waited for");
        let waited = deadline.since(self.now);
        self.now = self.now.max(deadline);
        self.cm.expire(self.now);
        waited
    }

    pub(crate) fn next_timeout_if_any(&mut self) {
        if self.cm.next_deadline().is_some() {
            self.next_timeout();
        }
    }

    pub(crate) fn count(&self, counter: CmCounter) -> u64 {
        self.cm.counters().get(counter)
    }

    pub(crate) fn is_quiet(&mut self) -> bool {
        self.events().is_empty() && self.datagrams().is_empty()
    }
}

pub(crate) fn kinds(sent: &[CmMad]) -> Vec<CmKind> {
    sent.iter().map(|mad| mad.message.kind()).collect()
}

/// The fields of a message of a kind that it must have.
macro_rules! want {
    ($mad:expr, $kind:ident) => {
        match $mad.message {
            uroce_stack::wire::cm::CmMessage::$kind(message) => message,
            other => panic!("not the message that was expected: {other:?}"),
        }
    };
}
pub(crate) use want;

/// A message in a datagram of the exchange `transaction_id`.
pub(crate) fn mad(transaction_id: u64, message: CmMessage) -> CmMad {
    CmMad { transaction_id, attribute_modifier: 0, message }
}
