//! Requests that are refused, and what they are answered (protocol section 6.3).

use crate::host::*;
use crate::peer::*;
use uroce_stack::QpType;
use uroce_stack::cm::*;
use uroce_stack::wire::cm::*;
use uroce_stack::wire::{MadRefused, Mtu, Qpn};

/// What a listener answers that takes no other path MTU than 1024.
fn answer(req: Req) -> Rej {
    let mut host = Host::with(CmConfig { port_mtu: Mtu::B1024, ..config(1) });
    host.listen(SERVICE, QpType::Rc);
    host.receive(&req_mad(req));
    assert!(host.events().is_empty());
    assert_eq!(host.cm.connections(), 0, "nothing is kept");
    let sent = host.sent_one();
    let rej = want!(sent, Rej);
    assert_eq!((rej.local_comm_id, rej.remote_comm_id), (0, PEER_ID));
    assert_eq!((rej.answered, sent.transaction_id), (Answered::Req, PEER_TID));
    rej
}

fn with_header(change: impl FnOnce(&mut [u8; 92])) -> Req {
    let mut bytes = *req().private_data.as_bytes();
    change(&mut bytes);
    Req { private_data: bytes.into(), ..req() }
}

fn with_path(path: CmPath) -> Req {
    Req { primary: path, ..req() }
}

#[test]
fn each_refusal_has_its_reason() {
    use RejectReason::*;
    let alternate = path();
    let refused = [
        (Req { service_id: ServiceId::new(PortSpace::Tcp, 1), ..req() }, InvalidServiceId),
        (Req { service_id: ServiceId(SERVICE.0 | 2 << 32), ..req() }, InvalidServiceId),
        (Req { transport: CmTransport::Uc, ..req() }, InvalidTransportType),
        (Req { transport: CmTransport::Rd, ..req() }, InvalidTransportType),
        (Req { transport: CmTransport::Extended(1), ..req() }, InvalidTransportType),
        (with_path(CmPath { remote_gid: ip("10.1.0.9"), ..path() }), InvalidGid),
        (Req { pkey: 0x1234, ..req() }, InvalidGid),
        (Req { alternate, ..req() }, InvalidAltGid),
        (Req { local_qpn: Qpn::GSI, ..req() }, UnsupportedRequest),
        (Req { local_qpn: Qpn::MULTICAST, ..req() }, UnsupportedRequest),
        (Req { path_mtu: 0, ..req() }, InvalidMtu),
        (Req { path_mtu: 6, ..req() }, InvalidMtu),
        (Req { path_mtu: 5, ..req() }, InvalidMtu),
        (with_header(|bytes| bytes[0] = 0x10), ConsumerDefined),
        (with_header(|bytes| bytes[1] = 0x50), ConsumerDefined),
        (with_header(|bytes| bytes[1] = 0x60), ConsumerDefined),
        (with_header(|bytes| bytes[35] = 9), ConsumerDefined),
        (with_header(|bytes| bytes[19] = 9), ConsumerDefined),
        (with_header(|bytes| bytes[16..20].fill(0)), ConsumerDefined),
        (with_header(|bytes| bytes[16] = 127), ConsumerDefined),
        (with_header(|bytes| bytes[16] = 224), ConsumerDefined),
    ];
    for (req, reason) in refused {
        assert_eq!(answer(req).reason, reason, "{req:?}");
    }
}

#[test]
fn some_reasons_say_what_would_be_right() {
    let ours = gid(ip(HERE));
    assert_eq!(answer(with_path(CmPath { remote_gid: ip("::1"), ..path() })).info.as_bytes(), ours);
    assert_eq!(answer(Req { pkey: 0, ..req() }).info.as_bytes(), ours);
    assert_eq!(answer(Req { path_mtu: 4, ..req() }).info.as_bytes(), [Mtu::B1024.code()]);
}

/// Section 6.8: addresses that no packet comes from, even when the IP header agrees.
#[test]
fn impossible_addresses_are_refused() {
    for source in ["127.0.0.1", "224.0.0.1", "0.0.0.0", "255.255.255.255"] {
        let mut host = Host::listening();
        let header = IpCmHeader { source_port: 1, source: ip(source), destination: ip(HERE) };
        let primary = CmPath { local_gid: ip(source), ..path() };
        host.receive_from(
            source,
            &req_mad(Req { primary, private_data: header.emit(&[]).unwrap(), ..req() }),
        );
        let rej = want!(CmMad::parse(&host.datagrams()[0].mad).unwrap(), Rej);
        assert_eq!(rej.reason, RejectReason::ConsumerDefined, "{source}");
    }
}

#[test]
fn both_kinds_of_members_of_the_partition_are_welcome() {
    let mut host = Host::listening();
    host.receive(&req_mad(Req { pkey: 0x7fff, ..req() }));
    assert_eq!(host.request().terms.qpn, PEER_QPN);
}

#[test]
fn a_request_that_names_another_sender_is_dropped() {
    let mut host = Host::listening();
    host.receive_from("10.1.0.66", &req_mad(req()));
    assert!(host.is_quiet());
    assert_eq!(host.count(CmCounter::WrongSource), 1);
}

#[test]
fn datagrams_from_other_queue_pairs_are_dropped() {
    let mut host = Host::listening();
    let sender = Sender { source: ip(THERE), destination: ip(HERE), source_qp: Qpn::new(7) };
    host.cm.receive(host.now, &sender, &req_mad(req()).emit());
    assert!(host.is_quiet());
    assert_eq!(host.count(CmCounter::WrongSource), 1);
}

/// What is no message is dropped without a word, and counted by name; alternate paths too.
#[test]
fn what_is_no_message_is_dropped_and_counted() {
    let good = req_mad(req()).emit();
    let broken = |at: usize, value: u8| {
        let mut mad = good.to_vec();
        mad[at] = value;
        mad
    };
    let dropped = [
        (broken(0, 2), CmCounter::BadBaseVersion),
        (broken(1, 3), CmCounter::BadClass),
        (broken(2, 1), CmCounter::BadClassVersion),
        (broken(3, 1), CmCounter::BadMethod),
        (broken(3, 0x83), CmCounter::BadMethod),
        (broken(17, 0x19), CmCounter::AlternatePath),
        (broken(17, 0x1a), CmCounter::AlternatePath),
        (broken(17, 0x1b), CmCounter::BadAttribute),
        (broken(16, 1), CmCounter::BadAttribute),
        (good[..255].to_vec(), CmCounter::BadLength),
        ([&good[..], &[0]].concat(), CmCounter::BadLength),
        (Vec::new(), CmCounter::BadLength),
    ];
    for (mad, counter) in dropped {
        let mut host = Host::listening();
        let sender = Sender { source: ip(THERE), destination: ip(HERE), source_qp: Qpn::GSI };
        host.cm.receive(host.now, &sender, &mad);
        assert!(host.is_quiet(), "{counter:?}");
        assert_eq!(host.cm.counters().iter().filter(|(_, value)| *value > 0).count(), 1);
        assert_eq!(host.count(counter), 1);
    }
    assert_eq!(CmCounter::refused(MadRefused::AlternatePath).name(), "cm_rx_alternate_path");
}

#[test]
fn a_peer_that_uses_an_identifier_twice_is_told_so() {
    let mut host = Host::listening();
    active(&mut host);
    host.receive(&req_mad(req()));
    assert_eq!(want!(host.sent_one(), Rej).reason, RejectReason::DuplicateLocalCommId);
}
