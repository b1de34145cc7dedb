//! Every state meets every message.

use crate::host::*;
use crate::peer::*;
use uroce_stack::QpType;
use uroce_stack::cm::*;
use uroce_stack::wire::Qpn;
use uroce_stack::wire::cm::*;

pub(crate) const QUESTION: ServiceId = ServiceId::new(PortSpace::Udp, 7174);

/// A connection manager with one connection, or question, in a certain state, and nothing to send or to fetch.
pub(crate) struct Scene {
    pub(crate) host: Host,
    pub(crate) id: ConnId,
    pub(crate) peer: Peer,
}

pub(crate) const STATES: [CmState; 14] = [
    CmState::ReqSent,
    CmState::MraReqRcvd,
    CmState::RepRcvd,
    CmState::MraRepSent,
    CmState::ReqRcvd,
    CmState::MraReqSent,
    CmState::RepSent,
    CmState::MraRepRcvd,
    CmState::Established,
    CmState::DreqSent,
    CmState::DreqRcvd,
    CmState::Timewait,
    CmState::SidrReqSent,
    CmState::SidrReqRcvd,
];

impl Scene {
    /// Connections that both sides may have got to are those that we asked for.
    pub(crate) fn of(state: CmState) -> Self {
        let mut host = Host::listening();
        host.listen(QUESTION, QpType::Ud);
        let (id, peer) = match state {
            CmState::SidrReqSent => ask(&mut host),
            CmState::SidrReqRcvd => be_asked(&mut host),
            CmState::ReqRcvd | CmState::MraReqSent | CmState::RepSent | CmState::MraRepRcvd => {
                passive_until(&mut host, state)
            }
            _ => active_until(&mut host, state),
        };
        host.datagrams();
        host.events();
        assert_eq!(host.cm.state(id), Some(state));
        Self { host, id, peer }
    }
}

fn active_until(host: &mut Host, state: CmState) -> (ConnId, Peer) {
    let id = host.connect();
    let peer = Peer::asked(host);
    if state == CmState::MraReqRcvd {
        host.receive(&peer.mra(Answered::Req, 20));
    }
    if matches!(state, CmState::ReqSent | CmState::MraReqRcvd) {
        return (id, peer);
    }
    host.receive(&peer.rep());
    if state == CmState::MraRepSent {
        host.cm.mra(id, 20, b"wait").expect("a reply is there");
    }
    if matches!(state, CmState::RepRcvd | CmState::MraRepSent) {
        return (id, peer);
    }
    host.cm.establish(id, b"").expect("a reply is there");
    match state {
        CmState::DreqSent => host.disconnect(id),
        CmState::DreqRcvd => host.receive(&peer.dreq()),
        CmState::Timewait => {
            host.receive(&peer.dreq());
            host.disconnect(id);
        }
        _ => {}
    }
    (id, peer)
}

fn passive_until(host: &mut Host, state: CmState) -> (ConnId, Peer) {
    host.receive(&req_mad(req()));
    let id = host.request().id;
    let peer = Peer::asking(id);
    match state {
        CmState::MraReqSent => host.cm.mra(id, 20, b"wait").expect("a request is there"),
        CmState::RepSent => host.accept(id),
        CmState::MraRepRcvd => {
            host.accept(id);
            host.receive(&peer.mra(Answered::Rep, 20));
        }
        _ => {}
    }
    (id, peer)
}

pub(crate) fn sidr_params(private_data: &[u8]) -> SidrParams<'_> {
    let route = Route::new(ip(HERE), ip(THERE));
    SidrParams { route, service_id: QUESTION, source_port: 40_000, private_data }
}

fn ask(host: &mut Host) -> (ConnId, Peer) {
    let id = host.cm.sidr_request(host.now, &sidr_params(b"")).expect("it is possible");
    (id, Peer { ours: id.comm_id(), theirs: PEER_ID, transaction_id: PEER_TID })
}

fn be_asked(host: &mut Host) -> (ConnId, Peer) {
    host.receive(&sidr_req());
    let CmEvent::SidrRequest(request) = host.event() else { panic!("no question") };
    (request.id, Peer::asking(request.id))
}

pub(crate) fn sidr_req() -> CmMad {
    let header = IpCmHeader { source_port: 0xb5e7, source: ip(THERE), destination: ip(HERE) };
    let private_data = header.emit(b"hello").expect("it fits");
    mad(
        PEER_TID,
        CmMessage::SidrReq(SidrReq { request_id: PEER_ID, pkey: 0xffff, service_id: QUESTION, private_data }),
    )
}

pub(crate) fn sidr_rep(peer: &Peer) -> CmMad {
    peer.says(CmMessage::SidrRep(SidrRep {
        request_id: peer.ours,
        status: SidrStatus::Valid,
        info_len: 0,
        vendor_id: 0,
        qpn: PEER_QPN,
        service_id: QUESTION,
        qkey: 0x0123_4567,
        info: PrivateData::default(),
        private_data: PrivateData::default(),
    }))
}

const MESSAGES: [&str; 14] = [
    "REQ",
    "REQ of another",
    "MRA of REQ",
    "MRA of REP",
    "REJ of REQ",
    "REJ of REP",
    "REJ",
    "REJ timeout",
    "REP",
    "RTU",
    "DREQ",
    "DREP",
    "SIDR_REQ",
    "SIDR_REP",
];

fn message(name: &str, peer: &Peer) -> CmMad {
    let reason = RejectReason::ConsumerDefined;
    match name {
        "REQ" => req_mad(req()),
        "REQ of another" => req_mad(Req { local_comm_id: 0xbeef, local_qpn: Qpn::new(0x999), ..req() }),
        "MRA of REQ" => peer.mra(Answered::Req, 20),
        "MRA of REP" => peer.mra(Answered::Rep, 20),
        "REJ of REQ" => peer.rej(Answered::Req, reason),
        "REJ of REP" => peer.rej(Answered::Rep, reason),
        "REJ" => peer.rej(Answered::Other, reason),
        "REJ timeout" => peer.rej_timeout(),
        "REP" => peer.rep(),
        "RTU" => peer.rtu(),
        "DREQ" => peer.dreq(),
        "DREP" => peer.drep(),
        "SIDR_REQ" => sidr_req(),
        "SIDR_REP" => sidr_rep(peer),
        other => panic!("no message {other}"),
    }
}

/// What a message does: the state after it, what is sent, and what the application hears.
fn outcome(state: CmState, name: &str) -> String {
    let Scene { mut host, id, peer } = Scene::of(state);
    host.receive(&message(name, &peer));
    let after = host.cm.state(id).map_or("gone".to_owned(), |state| format!("{state:?}"));
    let mut outcome = if host.cm.state(id) == Some(state) { "same".to_owned() } else { after };
    for kind in kinds(&host.sent()) {
        outcome += &format!(", sends {kind:?}");
    }
    for event in host.events() {
        let text = format!("{event:?}");
        outcome += &format!(", {}", text.split([' ', '(']).next().unwrap_or_default());
    }
    outcome
}

/// What does not stand here changes nothing, sends nothing and tells nothing; but for requests of others, which the
/// application hears of in any state.
const TABLE: &[(CmState, &[(&str, &str)])] = &[
    (
        CmState::ReqSent,
        &[
            ("REQ", "same, ConnectRequest"),
            ("MRA of REQ", "MraReqRcvd, MraReceived"),
            ("REJ of REQ", "gone, Rejected"),
            ("REP", "RepRcvd, Reply"),
            ("DREQ", "same, sends Drep"),
        ],
    ),
    (
        CmState::MraReqRcvd,
        &[
            ("REQ", "same, ConnectRequest"),
            ("REJ of REQ", "gone, Rejected"),
            ("REJ of REP", "gone, Rejected"),
            ("REJ", "gone, Rejected"),
            ("REP", "RepRcvd, Reply"),
        ],
    ),
    (
        CmState::RepRcvd,
        &[
            ("REQ", "same, sends Rej"),
            ("REJ of REQ", "gone, Rejected"),
            ("REJ of REP", "gone, Rejected"),
            ("REJ", "gone, Rejected"),
            ("REP", "MraRepSent, sends Mra"),
            ("DREQ", "DreqRcvd, DisconnectRequest"),
        ],
    ),
    (
        CmState::MraRepSent,
        &[
            ("REQ", "same, sends Rej"),
            ("REJ of REQ", "gone, Rejected"),
            ("REJ of REP", "gone, Rejected"),
            ("REJ", "gone, Rejected"),
            ("REP", "same, sends Mra"),
            ("DREQ", "DreqRcvd, DisconnectRequest"),
        ],
    ),
    (
        CmState::ReqRcvd,
        &[
            ("REQ", "MraReqSent, sends Mra"),
            ("REJ of REQ", "gone, Rejected"),
            ("REJ of REP", "gone, Rejected"),
            ("REJ", "gone, Rejected"),
            ("REJ timeout", "gone, Rejected"),
        ],
    ),
    (
        CmState::MraReqSent,
        &[
            ("REQ", "same, sends Mra"),
            ("REJ of REQ", "gone, Rejected"),
            ("REJ of REP", "gone, Rejected"),
            ("REJ", "gone, Rejected"),
            ("REJ timeout", "gone, Rejected"),
        ],
    ),
    (
        CmState::RepSent,
        &[
            ("MRA of REP", "MraRepRcvd, MraReceived"),
            ("REJ of REQ", "gone, Rejected"),
            ("REJ of REP", "gone, Rejected"),
            ("REJ", "gone, Rejected"),
            ("REJ timeout", "gone, Rejected"),
            ("RTU", "Established, Established"),
            ("DREQ", "DreqRcvd, DisconnectRequest"),
        ],
    ),
    (
        CmState::MraRepRcvd,
        &[
            ("REJ of REQ", "gone, Rejected"),
            ("REJ of REP", "gone, Rejected"),
            ("REJ", "gone, Rejected"),
            ("REJ timeout", "gone, Rejected"),
            ("RTU", "Established, Established"),
            ("DREQ", "DreqRcvd, DisconnectRequest"),
        ],
    ),
    (
        CmState::Established,
        &[
            ("REQ", "same, sends Rej"),
            ("REJ of REQ", "gone, Rejected"),
            ("REJ of REP", "gone, Rejected"),
            ("REJ", "gone, Rejected"),
            ("REP", "same, sends Rtu"),
            ("DREQ", "DreqRcvd, DisconnectRequest"),
        ],
    ),
    (
        CmState::DreqSent,
        &[
            ("REQ", "same, sends Rej"),
            ("REJ of REQ", "Timewait, Disconnected"),
            ("REJ of REP", "Timewait, Disconnected"),
            ("REJ", "Timewait, Disconnected"),
            ("DREQ", "Timewait, sends Drep, Disconnected"),
            ("DREP", "Timewait, Disconnected"),
        ],
    ),
    (CmState::DreqRcvd, &[("REQ", "same, sends Rej")]),
    (CmState::Timewait, &[("REQ", "same, sends Rej"), ("DREQ", "same, sends Drep")]),
    (
        CmState::SidrReqSent,
        &[
            ("REQ", "same, ConnectRequest"),
            ("REP", "same, sends Rej"),
            ("DREQ", "same, sends Drep"),
            ("SIDR_REP", "gone, SidrReply"),
        ],
    ),
    (CmState::SidrReqRcvd, &[("REQ", "same, ConnectRequest")]),
];

#[test]
fn every_state_meets_every_message() {
    assert_eq!(TABLE.len(), STATES.len());
    for &(state, row) in TABLE {
        for name in MESSAGES {
            let otherwise = match name {
                "REQ of another" => "same, ConnectRequest",
                "SIDR_REQ" if state != CmState::SidrReqRcvd => "same, SidrRequest",
                _ => "same",
            };
            let expected =
                row.iter().find(|(of, _)| *of == name).map_or(otherwise, |(_, expected)| *expected);
            assert_eq!(outcome(state, name), expected, "{state:?} meets {name}");
        }
        assert!(row.iter().all(|(name, _)| MESSAGES.contains(name)), "{state:?}");
    }
}

/// The passive side of an established connection, which repeats nothing: its REP has been confirmed.
#[test]
fn an_established_passive_side_knows_duplicates() {
    for name in MESSAGES {
        let mut host = Host::listening();
        let (id, peer) = passive(&mut host);
        host.receive(&message(name, &peer));
        let silent =
            matches!(name, "REQ" | "RTU" | "REP" | "DREP") || name.contains("MRA") || name == "REJ timeout";
        assert_eq!(host.is_quiet(), silent || name == "SIDR_REP", "{name}");
        let ends = name.starts_with("REJ of") || matches!(name, "REJ" | "DREQ");
        assert_eq!(host.cm.state(id) == Some(CmState::Established), !ends, "{name}");
        let counted = [CmCounter::Duplicates, CmCounter::WrongState, CmCounter::UnknownId];
        let counts: u64 = counted.map(|counter| host.count(counter)).iter().sum();
        assert_eq!(counts, u64::from(silent || name == "SIDR_REP"), "{name}");
    }
}

/// The same messages from another host, or naming another of its identifiers, do nothing to the connection.
#[test]
fn only_the_peer_of_a_connection_is_heard() {
    for state in STATES {
        for name in MESSAGES {
            let Scene { mut host, id, peer } = Scene::of(state);
            host.receive_from("10.1.0.66", &message(name, &peer));
            assert_eq!(host.cm.state(id), Some(state), "{name}");
            assert!(
                host.events().iter().all(|event| event.id() != id),
                "{state:?} hears {name} of a stranger"
            );
            let answers = host.datagrams();
            assert!(answers.iter().all(|out| out.destination == ip("10.1.0.66")), "the stranger is answered");
        }
    }
}

#[test]
fn identifiers_must_belong_together() {
    let sensitive = ["MRA of REP", "REJ of REP", "REJ", "RTU", "DREQ", "DREP"];
    for state in STATES.into_iter().filter(|state| !format!("{state:?}").starts_with("Sidr")) {
        for name in sensitive {
            let Scene { mut host, id, peer } = Scene::of(state);
            host.receive(&message(name, &Peer { theirs: 0xbad, ..peer }));
            assert_eq!((host.cm.state(id), host.events()), (Some(state), vec![]), "{state:?} hears {name}");
            assert_eq!(host.count(CmCounter::UnknownId), 1);
        }
    }
}
