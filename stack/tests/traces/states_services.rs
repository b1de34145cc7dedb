//! What each kind of queue pair does in each state (protocol sections 4.15 and 4.16; C60, C61).

use crate::common::*;
use Position::{First, Only};
use QpState::{Err as Error, Init, Reset, Rtr, Rts, Sqd};

/// Kinds to which an application posts sends.
const SENDERS: [QpType; 5] = [QpType::Rc, QpType::Uc, QpType::Ud, QpType::Gsi, QpType::XrcIni];
/// Kinds to which it posts receives.
const RECEIVERS: [QpType; 4] = [QpType::Rc, QpType::Uc, QpType::Ud, QpType::Gsi];

fn host_in(kind: QpType, state: QpState) -> Host {
    let reached = if matches!(state, Sqd | Error) { Rts } else { state };
    let mut host = Host::with(Setup { state: reached, ..Setup::of(kind) });
    if state != reached {
        host.modify(&QpAttr::to(state));
    }
    host
}

fn try_send(host: &mut Host, wr_id: u64, length: u32) -> Result<(), PostError> {
    let (sges, ah) = ([host.sge(0, length)], host.handle(PEER));
    let to = match host.setup.qp_type {
        QpType::Rc | QpType::Uc => Recipient::Peer,
        QpType::XrcIni => Recipient::Xrc { srqn: 1 },
        _ => Recipient::Datagram { ah: &ah, qpn: PEER_QPN, qkey: QKEY },
    };
    host.try_post_to(wr_id, &sges, to)
}

fn try_receive(host: &mut Host, wr_id: u64) -> Result<(), PostError> {
    let sges = [host.sge(0, 1024)];
    host.try_post_recv(wr_id, &sges)
}

/// A message of the peer in one packet.
fn message(kind: QpType, payload: &[u8]) -> Pkt {
    let packet = send(Only, 100, payload);
    match kind {
        QpType::Uc => packet.uc(),
        QpType::Ud => packet.ud(QKEY, PEER_QPN),
        QpType::Gsi => packet.ud(0x8001_0000, Qpn::GSI),
        _ => packet,
    }
}

#[test]
fn c61_what_may_be_posted_in_which_state() {
    for kind in SENDERS {
        for state in [Reset, Init, Rtr, Rts, Sqd, Error] {
            let mut host = host_in(kind, state);
            let takes_sends = matches!(state, Rts | Sqd | Error);
            let expected = if takes_sends { Ok(()) } else { Err(PostError::State(state)) };
            assert_eq!(try_send(&mut host, 1, 4), expected, "{kind:?} {state:?}");
            if RECEIVERS.contains(&kind) {
                let expected = if state == Reset { Err(PostError::State(Reset)) } else { Ok(()) };
                assert_eq!(try_receive(&mut host, 1), expected, "{kind:?} {state:?}");
            }
        }
    }
}

#[test]
fn c61_in_error_a_beacon_completes_behind_the_work() {
    for kind in SENDERS {
        let mut host = host_in(kind, Error);
        for wr_id in 1..=3 {
            try_send(&mut host, wr_id, 4).expect("accepted");
            assert_eq!((host.sent(), host.done()), (vec![], flushed([wr_id])), "{kind:?}");
        }
        if RECEIVERS.contains(&kind) {
            try_receive(&mut host, 9).expect("accepted");
            assert_eq!((host.sent(), host.received()), (vec![], flushed([9])), "{kind:?}");
        }
    }
}

#[test]
fn c60_everything_is_flushed_in_order_signaled_or_not() {
    for kind in SENDERS {
        let mut host = Host::with(Setup { sq_sig_all: false, ..Setup::of(kind) });
        host.modify(&QpAttr::to(Sqd));
        for wr_id in 0..10 {
            try_send(&mut host, wr_id, 4).expect("accepted");
        }
        assert_eq!((host.sent(), host.done()), (vec![], vec![]), "nothing starts");
        host.modify(&QpAttr::to(Error));
        assert_eq!((host.sent(), host.done()), (vec![], flushed(0..10)), "{kind:?}");
        assert!(host.engine.next_deadline().is_none_or(|due| due > host.now));
    }
}

#[test]
fn c60_flushed_completions_name_their_queue_pair() {
    for kind in SENDERS {
        let mut host = host_in(kind, Error);
        try_send(&mut host, 7, 4).expect("accepted");
        assert_eq!(host.sent(), []);
        let [completion] = host.send_completions()[..] else { panic!("one completion") };
        assert_eq!((completion.wr_id, completion.qp_num), (7, host.qpn));
        assert_eq!(completion.status, WcStatus::WrFlushErr);
    }
}

#[test]
fn p4_15_messages_are_taken_from_rtr_to_sqd() {
    for kind in RECEIVERS {
        for (state, taken) in [(Init, false), (Rtr, true), (Rts, true), (Sqd, true)] {
            let mut host = host_in(kind, state);
            try_receive(&mut host, 1).expect("accepted");
            host.recv(message(kind, b"a"));
            let expected = if taken { ok([1]) } else { vec![] };
            assert_eq!((host.sent(), host.received()), (vec![], expected), "{kind:?} {state:?}");
            assert_eq!(host.count(Counter::WrongState), u64::from(!taken));
        }
        for state in [Reset, Error] {
            let mut host = host_in(kind, state);
            host.recv(message(kind, b"a"));
            assert_eq!((host.sent(), host.received(), host.count(Counter::WrongState)), (vec![], vec![], 1));
        }
    }
}

#[test]
fn p4_17_only_connections_are_established() {
    for kind in RECEIVERS {
        let mut host = host_in(kind, Rtr);
        try_receive(&mut host, 1).expect("accepted");
        host.recv(message(kind, b"a").from(STRANGER));
        let connected = matches!(kind, QpType::Rc | QpType::Uc);
        assert_eq!(host.events(), [], "{kind:?}: what is dropped establishes nothing");
        try_receive(&mut host, 2).expect("accepted");
        host.recv_all([message(kind, b"a"), message(kind, b"a")]);
        let expected = if connected { vec![AsyncEvent::CommEst(host.qpn)] } else { vec![] };
        assert_eq!(host.events(), expected, "{kind:?}: once");
    }
    let mut target = host_in(QpType::XrcTgt, Rtr);
    let number = target.shared().number;
    target.recv(send(Only, 100, b"a").xrc(number));
    assert_eq!(target.events(), [AsyncEvent::CommEst(target.qpn)]);
}

#[test]
fn a_reset_under_traffic_forgets_everything() {
    for kind in SENDERS {
        let mut host = host_in(kind, Rts);
        let length = if matches!(kind, QpType::Ud | QpType::Gsi) { 100 } else { 3000 };
        for wr_id in 0..4 {
            try_send(&mut host, wr_id, length).expect("accepted");
        }
        if RECEIVERS.contains(&kind) {
            try_receive(&mut host, 10).expect("accepted");
            host.recv(Pkt { payload: vec![1; 1024], ..first(kind) });
        }
        assert!(host.transmit().is_some());
        host.modify(&QpAttr::to(Reset));
        let done = if matches!(kind, QpType::Ud | QpType::Gsi) { ok([0]) } else { vec![] };
        assert_eq!((host.sent(), host.done(), host.received()), (vec![], done, vec![]), "{kind:?}");
        host.bring_up();
        try_send(&mut host, 20, 4).expect("accepted");
        let sent = host.sent();
        assert_eq!(sent.iter().map(|packet| packet.psn).collect::<Vec<_>>(), [500], "{kind:?}");
        if RECEIVERS.contains(&kind) {
            try_receive(&mut host, 21).expect("accepted");
            host.recv(message(kind, b"a"));
            assert_eq!((host.sent(), host.received()), (vec![], ok([21])), "{kind:?}");
        }
    }
}

/// The first packet of a message where there is such a thing; of datagrams one that does not fit.
fn first(kind: QpType) -> Pkt {
    match kind {
        QpType::Uc => send(First, 100, b"").uc(),
        QpType::Rc => send(First, 100, b""),
        _ => message(kind, b""),
    }
}

#[test]
fn destroying_under_traffic_leaves_no_trace() {
    for kind in SENDERS {
        let mut host = host_in(kind, Rts);
        for wr_id in 0..4 {
            try_send(&mut host, wr_id, 1000).expect("accepted");
        }
        if RECEIVERS.contains(&kind) {
            try_receive(&mut host, 10).expect("accepted");
            host.recv(Pkt { payload: vec![1; 1024], ..first(kind) });
        }
        host.engine.destroy_qp(host.qpn).expect("the queue pair exists");
        host.advance(TIMEOUT * 10);
        host.recv(message(kind, b"a"));
        assert_eq!((host.sent(), host.done(), host.received()), (vec![], vec![], vec![]), "{kind:?}");
        assert_eq!((host.events(), host.engine.next_deadline()), (vec![], None));
        assert_eq!(host.count(Counter::UnknownQp), 1);
        assert_eq!(try_send(&mut host, 5, 4), Err(PostError::State(Reset)));
        for cq in [host.send_cq, host.recv_cq] {
            host.engine.destroy_cq(cq).expect("nothing uses it any more");
        }
        host.engine.deregister_mr(host.keys.lkey).expect("no window is bound to it");
        host.engine.dealloc_pd(host.pd).expect("nothing is in it any more");
    }
}

#[test]
fn the_loss_of_the_interface_ends_every_kind() {
    for kind in SENDERS {
        let mut host = host_in(kind, Rts);
        try_send(&mut host, 1, 4).expect("accepted");
        host.engine.fail_all();
        assert_eq!((host.sent(), host.done(), host.state()), (vec![], flushed([1]), Error), "{kind:?}");
        assert_eq!(host.events(), [AsyncEvent::QpFatal(host.qpn)]);
    }
}
