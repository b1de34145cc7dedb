//! Connections come and go, and leave nothing behind.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use crate::host::*;
use crate::peer::*;
use uroce_stack::QpType;
use uroce_stack::cm::*;
use uroce_stack::wire::Qpn;
use uroce_stack::wire::cm::*;

/// Counts what the current thread allocates.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count_one() {
    ALLOCATIONS.with(|count| count.set(count.get() + 1));
}

// SAFETY: every call is handed to the system's allocator as it is; counting touches a thread-local cell without a
// destructor, which allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_one();
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`, which is the same.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count_one();
        // SAFETY: the caller keeps the contract of `realloc`, which is the same.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

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
    let before = ALLOCATIONS.get();
    for n in 20_000..60_000 {
        one_connection(&mut host, n);
    }
    assert_eq!(ALLOCATIONS.get() - before, 0, "allocations in 40,000 connections");
    assert_eq!((host.cm.connections(), host.cm.next_deadline()), (0, None));
}
