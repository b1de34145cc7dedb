//! Connections come and go, and leave nothing behind.

use crate::allocator::allocations;
use crate::host::*;
use crate::peer::*;
use uroce_stack::QpType;
use uroce_stack::cm::*;
use uroce_stack::wire::Qpn;
use uroce_stack::wire::cm::*;

/// A connection from REQ to the end of its time-wait, without allocating anything in the test itself.
fn one_connection(host: &mut Host, n: u32) {
    let request = Req { local_comm_id: n + 1, local_qpn: Qpn::new(2 + n), ..req() };
    host.receive(&req_mad(request));
    let Some(CmEvent::ConnectRequest(request)) = host.cm.next_event() else { panic!("no request") };
    let params = AcceptParams { qpn: Qpn::new(2 + n), ..accept_params(b"") };
    host.cm.accept(host.now, request.id, &params).expect("it is possible");
    let peer = Peer { ours: request.id.comm_id(), theirs: n + 1, transaction_id: 1 };
    host.receive(&peer.rtu());
    let dreq = want!(peer.dreq(), Dreq);
    host.receive(&peer.says(CmMessage::Dreq(Dreq { remote_qpn: Qpn::new(2 + n), ..dreq })));
    host.disconnect(request.id);
    while host.cm.connections() > 0 {
        host.next_timeout();
    }
    while host.cm.poll_transmit().is_some() {}
    let mut last = None;
    while let Some(event) = host.cm.next_event() {
        last = Some(event);
    }
    assert_eq!(last, Some(CmEvent::TimewaitExit { id: request.id }));
}

#[test]
fn connections_leave_nothing_and_at_last_allocate_nothing() {
    // Identifiers that were used are remembered for a while: of a small range they are few.
    let mut host = Host::with(CmConfig { ids: 1..1000, ..config(1) });
    host.listen(SERVICE, QpType::Rc);
    for n in 0..20_000 {
        one_connection(&mut host, n);
    }
    // So many that any table which forgot nothing would double.
    let counted = allocations(|| (20_000..60_000).for_each(|n| one_connection(&mut host, n)));
    assert_eq!(counted, 0, "allocations in 40,000 connections");
    assert_eq!((host.cm.connections(), host.cm.next_deadline()), (0, None));
}
