//! Queue pair 1: one an engine, with the number and the Q_Key that everybody knows (protocol sections 4.11 and 4.15).

use crate::common::*;
use Position::Only;
use uroce_stack::Error;

const GSI_QKEY: u32 = 0x8001_0000;

fn host() -> Host {
    Host::with(Setup::of(QpType::Gsi))
}

#[test]
fn it_has_number_1_and_there_is_one_of_it() {
    let mut host = host();
    assert_eq!(host.qpn, Qpn::GSI);
    let init = host.init();
    assert_eq!(host.engine.create_qp(host.pd, &init).map(|qp| qp.qpn), Err(Error::Busy("queue pair 1")));
    host.engine.destroy_qp(host.qpn).expect("it exists");
    assert_eq!(host.engine.create_qp(host.pd, &init).map(|qp| qp.qpn), Ok(Qpn::GSI));
}

#[test]
fn no_other_queue_pair_gets_its_number() {
    let config = Config { qpns: 2..6, ..Config::new([9; 32], Mtu::B1024) };
    let mut engine = Engine::new(config).expect("the configuration is valid");
    let pd = engine.alloc_pd().expect("room for a protection domain");
    let (cq, _reader) = engine.create_cq(1).expect("room for a completion queue");
    let init = qp_init(&Setup::of(QpType::Ud), cq, cq);
    let mut numbers: Vec<u32> =
        (0..4).map(|_| engine.create_qp(pd, &init).expect("room").qpn.get()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [2, 3, 4, 5]);
    assert!(Engine::new(Config { qpns: 1..6, ..Config::new([9; 32], Mtu::B1024) }).is_err());
}

#[test]
fn its_qkey_is_what_everybody_knows_whatever_is_set() {
    let mut host = host();
    assert_eq!(host.attr().qkey, Some(GSI_QKEY), "the setup asked for another one");
    host.modify(&QpAttr { qkey: Some(5), ..QpAttr::default() });
    assert_eq!(host.attr().qkey, Some(GSI_QKEY));
    host.post_recv(1, 0, 512);
    host.recv(send(Only, 0, b"no").ud(5, PEER_QPN));
    host.recv(send(Only, 0, b"no").ud(QKEY, PEER_QPN));
    assert_eq!((host.sent(), host.received(), host.count(Counter::BadQkey)), (vec![], vec![], 2));
    host.recv(send(Only, 0, &pattern(256)).ud(GSI_QKEY, Qpn::GSI));
    let [received] = host_completions(&mut host)[..] else { panic!("one completion") };
    assert_eq!((received.qp_num, received.src_qp, received.byte_len), (Qpn::GSI, Qpn::GSI, 296));
}

fn host_completions(host: &mut Host) -> Vec<Completion> {
    assert_eq!(host.sent(), []);
    host.recv_completions()
}

#[test]
fn it_speaks_to_its_like() {
    let mut host = host();
    host.fill(0, &pattern(256));
    host.post_datagram_to(1, 256, PEER, Qpn::GSI, GSI_QKEY);
    let expected = send(Only, 500, &pattern(256)).ud(GSI_QKEY, Qpn::GSI).number(Qpn::GSI);
    assert_eq!(
        (host.sent(), host.done()),
        (vec![expected], ok([1])),
        "AckReq is not set, other than rxe has it"
    );
}

#[test]
fn two_of_them_reach_each_other() {
    let (mut a, mut b) = (host(), host());
    a.fill(0, b"request");
    b.post_recv(1, 0, 296);
    a.post_datagram_to(2, 7, PEER, Qpn::GSI, GSI_QKEY);
    let sent = a.sent();
    b.recv_all(sent);
    assert_eq!((b.sent(), b.received(), b.bytes(40, 7)), (vec![], ok([1]), b"request".to_vec()));
}

#[test]
fn p4_15_it_has_no_port_to_set() {
    let mut host = Host::with(Setup { state: QpState::Reset, ..Setup::of(QpType::Gsi) });
    let with_port = QpAttr { port: Some(1), ..attr_to(QpState::Init, &host.setup) };
    assert!(host.engine.modify_qp(host.now, host.qpn, &with_port).is_err());
    let without_qkey = QpAttr { pkey_index: Some(0), ..QpAttr::to(QpState::Init) };
    assert!(host.engine.modify_qp(host.now, host.qpn, &without_qkey).is_err());
    host.setup.state = QpState::Rts;
    host.bring_up();
    assert_eq!(host.state(), QpState::Rts);
}
