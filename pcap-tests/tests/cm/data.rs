//! The traffic of a connection against what its queue pairs are set to.

use uroce_pcap_tests::{Set, frames};
use uroce_stack::cm::QpSettings;
use uroce_stack::wire::{Packet, Qpn};

use crate::session::{Session, Side};

/// What `side` sent: to the right queue pair, from the right port, and its first request, if it made one, with the right
/// PSN; whether it made one.
pub(crate) fn check_data(set: Set, name: &str, session: &Session, side: Side, settings: &QpSettings) -> bool {
    let (req, rep) = (session.req().expect("a connection"), session.rep().expect("a connection"));
    let (ours, theirs) = (session.address(side), session.address(side.other()));
    assert_eq!((settings.source, settings.destination), (ours, theirs));
    let depths = match side {
        Side::Active => (rep.responder_resources, rep.initiator_depth),
        Side::Passive => (rep.initiator_depth, rep.responder_resources),
    };
    assert_eq!((settings.max_rd_atomic, settings.max_dest_rd_atomic), depths, "{name} {side:?}");
    assert_eq!(settings.timeout, req.primary.ack_timeout, "{name} {side:?}");
    let frames = frames(&set.file(name)).unwrap_or_else(|error| panic!("{error}"));
    let packets = frames.iter().filter_map(|frame| Packet::parse(&frame.bytes, &[]).ok());
    let to_peer = |packet: &Packet<'_>| packet.ip.source == ours && packet.bth.dest_qp == settings.dest_qpn;
    let sent: Vec<_> = packets.filter(to_peer).filter(|packet| packet.bth.dest_qp != Qpn::GSI).collect();
    if set == Set::Rxe {
        // Adapters make a port of their own.
        assert!(sent.iter().all(|packet| packet.source_port == settings.source_port), "{name} {side:?}");
    }
    let first = sent.iter().find(|packet| packet.opcode.is_request());
    assert!(first.is_none_or(|packet| packet.bth.psn == settings.sq_psn), "{name} {side:?}");
    first.is_some()
}
