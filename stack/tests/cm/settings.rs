//! From what was exchanged to the attributes of queue pairs (protocol section 6.6).

use crate::host::*;
use crate::peer::*;
use uroce_stack::cm::*;
use uroce_stack::wire::cm::*;
use uroce_stack::wire::{MacAddr, Mtu, Psn, source_port};
use uroce_stack::{Access, AttrMask, QpState, QpType};

const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

fn active_settings() -> QpSettings {
    let mut host = Host::new();
    host.connect();
    let peer = Peer::asked(&mut host);
    host.receive(&peer.rep());
    host.reply().settings
}

fn passive_request() -> ConnectRequest {
    let mut host = Host::listening();
    host.receive(&req_mad(req()));
    host.request()
}

/// Case X09: each side's starting PSN is where it receives.
#[test]
fn x09_the_starting_psn_of_one_side_is_where_the_other_sends() {
    let active = active_settings();
    assert_eq!((active.rq_psn, active.sq_psn), (Psn::new(0x10_0000), Psn::new(0xb7_1e79)));
    let passive = passive_request().settings(&accept_params(b""));
    assert_eq!((passive.rq_psn, passive.sq_psn), (Psn::new(0x20_0000), Psn::new(0x8e_7046)));
}

#[test]
fn the_active_side_takes_what_the_reply_says() {
    let settings = active_settings();
    assert_eq!((settings.dest_qpn, settings.path_mtu), (PEER_QPN, Mtu::B1024));
    assert_eq!((settings.max_rd_atomic, settings.max_dest_rd_atomic), (5, 4));
    assert_eq!((settings.timeout, settings.retry_cnt, settings.rnr_retry), (17, 6, 3));
    let label = (40_000 * 31 + 18515) & 0xf_ffff;
    assert_eq!((settings.flow_label, settings.source_port), (label, source_port(label, OUR_QPN, PEER_QPN)));
}

#[test]
fn the_passive_side_takes_what_the_request_says() {
    let settings = passive_request().settings(&accept_params(b""));
    assert_eq!((settings.source, settings.destination), (ip(HERE), ip(THERE)));
    assert_eq!((settings.dest_qpn, settings.path_mtu), (PEER_QPN, Mtu::B1024));
    assert_eq!((settings.max_rd_atomic, settings.max_dest_rd_atomic), (2, 3));
    assert_eq!((settings.timeout, settings.retry_cnt, settings.rnr_retry), (17, 7, 7));
    assert_eq!(
        (settings.flow_label, settings.source_port),
        (0x6_c51f, 0xc504),
        "the same as the active side's"
    );
}

/// A peer that grants more than was asked for is held to what was asked for.
#[test]
fn c77_nobody_gets_deeper_than_was_agreed() {
    let mut host = Host::new();
    host.connect();
    let peer = Peer::asked(&mut host);
    let rep = Rep { responder_resources: 200, initiator_depth: 100, ..peer.rep_fields() };
    host.receive(&peer.says(CmMessage::Rep(rep)));
    let settings = host.reply().settings;
    assert_eq!((settings.max_rd_atomic, settings.max_dest_rd_atomic), (5, 4));
}

/// Case C67: no READ at all is a connection like any other.
#[test]
fn c67_depth_0_gives_no_right_to_read() {
    let accept = AcceptParams { responder_resources: 0, initiator_depth: 0, ..accept_params(b"") };
    let settings = passive_request().settings(&accept);
    assert_eq!((settings.max_rd_atomic, settings.max_dest_rd_atomic), (0, 0));
    assert_eq!(settings.init().access, Some(Access::REMOTE_WRITE));
}

#[test]
fn each_transition_gets_the_attributes_that_it_requires() {
    use AttrMask as M;
    let settings = active_settings();
    let init = settings.init();
    assert_eq!(init.mask(), M::STATE | M::PKEY_INDEX | M::PORT | M::ACCESS_FLAGS);
    assert!(init.access.is_some_and(|access| access.contains(Access::REMOTE)));
    let path = settings.path(MAC, MAC, None);
    assert_eq!((path.source, path.destination, path.hop_limit), (ip(HERE), ip(THERE), 64));
    assert_eq!((path.source_port, path.flow_label), (settings.source_port, settings.flow_label));
    let (rtr, rts) = (settings.rtr(path), settings.rts());
    let unreliable_rtr = M::STATE | M::AV | M::PATH_MTU | M::DEST_QPN | M::RQ_PSN;
    assert_eq!(rtr.mask(), unreliable_rtr | M::MAX_DEST_RD_ATOMIC | M::MIN_RNR_TIMER);
    assert_eq!((rtr.state, rtr.min_rnr_timer), (Some(QpState::Rtr), Some(0)));
    let retries = M::TIMEOUT | M::RETRY_CNT | M::RNR_RETRY | M::MAX_QP_RD_ATOMIC;
    assert_eq!(rts.mask(), M::STATE | M::SQ_PSN | retries);

    let uc = QpSettings { qp_type: QpType::Uc, ..settings };
    assert_eq!(uc.rtr(path).mask(), unreliable_rtr);
    assert_eq!(uc.rts().mask(), M::STATE | M::SQ_PSN);
}
