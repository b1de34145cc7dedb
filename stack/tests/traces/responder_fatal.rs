//! Requests that end the connection (protocol section 5.2), in the order of the checks; and the same requests from
//! somebody who is not the peer (S03, S04).

use crate::common::*;
use Position::{First, Last, Middle, Only};
use uroce_stack::wire::Operation;

const MTU: usize = 1024;
const FULL: [u8; MTU] = [0xAB; MTU];
const INVALID: NakCode = NakCode::InvalidRequest;
const ACCESS: NakCode = NakCode::RemoteAccessError;
const OPERATIONAL: NakCode = NakCode::RemoteOperationalError;
/// No receive was taken, so the first is flushed like all others.
const UNTOUCHED: WcStatus = WcStatus::WrFlushErr;
const TAKEN: WcStatus = WcStatus::RemInvReqErr;

/// A request that ends the connection, and how.
struct Case {
    name: &'static str,
    setup: Setup,
    /// What precedes it, all of it accepted.
    before: fn(&Host) -> Vec<Pkt>,
    request: fn(&Host) -> Pkt,
    code: NakCode,
    /// How the first receive ends.
    receive: WcStatus,
}

impl Case {
    fn new(name: &'static str, request: fn(&Host) -> Pkt, code: NakCode, receive: WcStatus) -> Self {
        Self { name, setup: Setup::default(), before: |_| vec![], request, code, receive }
    }

    fn after(self, before: fn(&Host) -> Vec<Pkt>) -> Self {
        Self { before, ..self }
    }

    fn with(self, change: fn(&mut Setup)) -> Self {
        let mut setup = self.setup.clone();
        change(&mut setup);
        Self { setup, ..self }
    }

    /// A host to which everything before has happened. Its receives are 1 and 2, of 2000 bytes each.
    fn host(&self) -> Host {
        let mut host = Host::with(self.setup.clone());
        host.post_recv(1, 32_768, 2000);
        host.post_recv(2, 40_960, 2000);
        for packet in (self.before)(&host) {
            host.recv(packet);
        }
        assert_eq!((host.sent(), host.state()), (vec![], QpState::Rts), "{}", self.name);
        host
    }
}

fn open_send(_: &Host) -> Vec<Pkt> {
    vec![send(First, 100, &FULL)]
}

fn open_write(host: &Host) -> Vec<Pkt> {
    vec![write(First, 100, host.at(0), 3000, &FULL)]
}

/// Step 2: what may follow what.
fn sequence_cases() -> Vec<Case> {
    vec![
        Case::new("MIDDLE first", |_| send(Middle, 100, &FULL), INVALID, UNTOUCHED),
        Case::new("LAST first", |_| send(Last, 100, b"a"), INVALID, UNTOUCHED),
        Case::new("WRITE MIDDLE first", |_| write_more(Middle, 100, &FULL), INVALID, UNTOUCHED),
        Case::new("WRITE LAST first", |_| write_more(Last, 100, b"a"), INVALID, UNTOUCHED),
        Case::new("FIRST, ONLY", |_| send(Only, 101, b"a"), INVALID, TAKEN).after(open_send),
        Case::new("FIRST, FIRST", |_| send(First, 101, &FULL), INVALID, TAKEN).after(open_send),
        Case::new("SEND, WRITE MIDDLE", |_| write_more(Middle, 101, &FULL), INVALID, TAKEN).after(open_send),
        Case::new("SEND, READ", |host| read(101, host.at(0), 1), INVALID, TAKEN).after(open_send),
        Case::new("SEND, atomic", |host| fetch_add(101, host.at(0), 1), INVALID, TAKEN).after(open_send),
        Case::new("WRITE, SEND", |_| send(Only, 101, b"a"), INVALID, UNTOUCHED).after(open_write),
        Case::new("WRITE, SEND LAST", |_| send(Last, 101, b"a"), INVALID, UNTOUCHED).after(open_write),
        Case::new("WRITE, WRITE", |host| write(Only, 101, host.at(0), 1, b"a"), INVALID, UNTOUCHED)
            .after(open_write),
        Case::new("WRITE, READ", |host| read(101, host.at(0), 1), INVALID, UNTOUCHED).after(open_write),
    ]
}

/// Step 3, the queue pair's own rights: before the key is looked at.
fn access_cases() -> Vec<Case> {
    let closed =
        |name, request| Case::new(name, request, INVALID, UNTOUCHED).with(|s| s.access = Access::empty());
    vec![
        closed("WRITE", |_| write(Only, 100, FAR, 1, b"a")),
        closed("WRITE with immediate", |_| write(Only, 100, FAR, 1, b"a").imm(1)),
        closed("READ", |_| read(100, FAR, 1)),
        closed("READ of nothing", |_| read(100, FAR, 0)),
        closed("FETCH_ADD", |_| fetch_add(100, FAR, 1)),
        closed("CMP_SWAP", |_| compare_swap(100, FAR, 1, 2)),
        closed("FLUSH", |_| flush(100, FAR, 8)),
        closed("ATOMIC WRITE", |_| atomic_write(100, FAR, &[0; 8])),
    ]
}

/// Step 4: before the key is looked at.
fn depth_cases() -> Vec<Case> {
    let none =
        |name, request| Case::new(name, request, INVALID, UNTOUCHED).with(|s| s.max_dest_rd_atomic = 0);
    vec![none("C67 READ", |_| read(100, FAR, 1)), none("C67 atomic", |_| fetch_add(100, FAR, 1))]
}

/// Step 5 and C24: before the key is looked at.
fn length_cases() -> Vec<Case> {
    vec![
        Case::new("FIRST one short", |_| send(First, 100, &FULL[1..]), INVALID, TAKEN),
        Case::new("FIRST a word long", |_| send(First, 100, &[0; MTU + 4]), INVALID, TAKEN),
        Case::new("MIDDLE short", |_| send(Middle, 101, &FULL[4..]), INVALID, TAKEN).after(open_send),
        Case::new("LAST of nothing", |_| send(Last, 101, b""), INVALID, TAKEN).after(open_send),
        Case::new("LAST long", |_| send(Last, 101, &[0; MTU + 1]), INVALID, TAKEN).after(open_send),
        Case::new("ONLY long", |_| send(Only, 100, &[0; MTU + 1]), INVALID, TAKEN),
        Case::new("WRITE FIRST short", |_| write(First, 100, FAR, 3000, &FULL[4..]), INVALID, UNTOUCHED),
        Case::new("WRITE ONLY long", |_| write(Only, 100, FAR, 1028, &[0; 1028]), INVALID, UNTOUCHED),
        Case::new("WRITE LAST of nothing", |_| write_more(Last, 101, b""), INVALID, UNTOUCHED)
            .after(open_write),
    ]
}

/// Steps 5b and 8b: the length that the message announces.
fn announced_length_cases() -> Vec<Case> {
    const HUGE: u32 = (1 << 31) + 1;
    let three = |_: &Host| write_more(Last, 101, b"abc");
    vec![
        Case::new("READ of more than 2^31", |_| read(100, FAR, HUGE), INVALID, UNTOUCHED),
        Case::new("WRITE of more than 2^31", |_| write(First, 100, FAR, HUGE, &FULL), INVALID, UNTOUCHED),
        Case::new(
            "ONLY less than announced",
            |host| write(Only, 100, host.at(0), 2, b"a"),
            INVALID,
            UNTOUCHED,
        ),
        Case::new(
            "ONLY more than announced",
            |host| write(Only, 100, host.at(0), 1, b"ab"),
            INVALID,
            UNTOUCHED,
        ),
        Case::new(
            "FIRST of one packet",
            |host| write(First, 100, host.at(0), 1024, &FULL),
            INVALID,
            UNTOUCHED,
        ),
        Case::new(
            "FIRST more than announced",
            |host| write(First, 100, host.at(0), 9, &FULL),
            INVALID,
            UNTOUCHED,
        ),
        Case::new("LAST before the end", three, INVALID, UNTOUCHED).after(open_write),
        Case::new("MIDDLE past the end", |_| write_more(Middle, 102, &FULL), INVALID, UNTOUCHED)
            .after(|host| vec![write(First, 100, host.at(0), 3000, &FULL), write_more(Middle, 101, &FULL)]),
    ]
}

/// Step 7: the key.
fn key_cases() -> Vec<Case> {
    vec![
        Case::new("C29 WRITE", |_| write(Only, 100, FAR, 1, b"a"), ACCESS, UNTOUCHED),
        Case::new("C29 WRITE with immediate", |_| write(Only, 100, FAR, 1, b"a").imm(1), ACCESS, UNTOUCHED),
        Case::new("C29 READ", |_| read(100, FAR, 1), ACCESS, UNTOUCHED),
        Case::new("C29 FETCH_ADD", |_| fetch_add(100, FAR, 1), ACCESS, UNTOUCHED),
        Case::new("C29 CMP_SWAP", |_| compare_swap(100, FAR, 1, 2), ACCESS, UNTOUCHED),
        Case::new("ATOMIC WRITE", |_| atomic_write(100, FAR, &[0; 8]), ACCESS, UNTOUCHED),
        Case::new("FLUSH", |_| flush(100, FAR, 8), ACCESS, UNTOUCHED)
            .with(|setup| setup.access |= Access::FLUSH_GLOBAL),
        Case::new("before", |host| write(Only, 100, below(host), 1, b"a"), ACCESS, UNTOUCHED),
        Case::new("past the end", |host| read(100, host.at(AREA as u64 - 4), 5), ACCESS, UNTOUCHED),
        Case::new("FIRST past the end", past_the_end_as_a_whole, ACCESS, UNTOUCHED),
        Case::new("C49 WRITE wraps", |host| write(Only, 100, top(host), 16, &[0; 16]), ACCESS, UNTOUCHED),
        Case::new("C49 READ wraps", |host| read(100, top(host), 16), ACCESS, UNTOUCHED),
        Case::new("C49 READ of 2^31", |host| read(100, host.at(0), 1 << 31), ACCESS, UNTOUCHED),
        Case::new("atomic past the end", |host| fetch_add(100, host.at(AREA as u64), 1), ACCESS, UNTOUCHED),
    ]
}

/// Step 9: carrying it out.
fn execution_cases() -> Vec<Case> {
    let long = WcStatus::LocLenErr;
    vec![
        Case::new("C59 misaligned", |host| fetch_add(100, host.at(4), 1), INVALID, UNTOUCHED),
        Case::new(
            "C52 SEND invalidates what it may not",
            |_| send_invalidate(Only, 100, 1, b"a"),
            OPERATIONAL,
            TAKEN,
        ),
        Case::new("C26 ATOMIC WRITE of 4", |host| atomic_write_of(4, host), INVALID, UNTOUCHED),
        Case::new("C26 ATOMIC WRITE of 0", |host| atomic_write_of(0, host), INVALID, UNTOUCHED),
        Case::new("C26 ATOMIC WRITE of 16", |host| atomic_write_of(16, host), INVALID, UNTOUCHED),
        Case::new(
            "ATOMIC WRITE misaligned",
            |host| atomic_write(100, host.at(4), &[0; 8]),
            INVALID,
            UNTOUCHED,
        ),
        Case::new("SEND too long", |_| send(Last, 101, &[0; 977]), INVALID, long).after(open_send),
        Case::new("SEND too long, not at the end", |_| send(Middle, 101, &FULL), INVALID, long)
            .after(open_send),
    ]
}

fn all_cases() -> Vec<Case> {
    let groups = [
        sequence_cases(),
        access_cases(),
        depth_cases(),
        length_cases(),
        announced_length_cases(),
        key_cases(),
        execution_cases(),
    ];
    groups.into_iter().flatten().collect()
}

fn atomic_write_of(len: u32, host: &Host) -> Pkt {
    Pkt::new(100, Operation::AtomicWrite(reth(host.at(0), len)), &vec![7; len as usize])
}

fn below(host: &Host) -> RemoteAddr {
    RemoteAddr { va: VA - 1, rkey: host.keys.rkey }
}

fn top(host: &Host) -> RemoteAddr {
    RemoteAddr { va: u64::MAX - 7, rkey: host.keys.rkey }
}

fn past_the_end_as_a_whole(host: &Host) -> Pkt {
    write(First, 100, host.at(AREA as u64 - 2047), 2048, &FULL)
}

#[test]
fn p5_2_each_cause_is_refused_once_and_ends_the_connection() {
    for case in all_cases() {
        let (name, mut host) = (case.name, case.host());
        host.post_send(9, 5);
        let offending = (case.request)(&host);
        let psn = offending.psn;
        host.recv(offending.clone());
        assert_eq!(host.sent(), [nak(psn, case.code, 0)], "{name}");
        assert_eq!(host.state(), QpState::Err, "{name}");
        assert_eq!(host.received(), [(1, case.receive), (2, WcStatus::WrFlushErr)], "{name}");
        assert_eq!(host.done(), flushed([9]), "{name}: the send queue ends too");
        let events = match case.code {
            ACCESS => vec![AsyncEvent::QpAccessErr(host.qpn)],
            INVALID => vec![AsyncEvent::QpReqErr(host.qpn)],
            // The receive tells.
            _ => vec![],
        };
        assert_eq!(host.events(), events, "{name}");
        host.recv(offending);
        host.recv(send(Only, psn + 1, b"a").ack_req());
        assert_eq!((host.sent(), host.count(Counter::WrongState)), (vec![], 2), "{name}: silence afterwards");
        assert_eq!((host.received(), host.events()), (vec![], vec![]), "{name}");
    }
}

#[test]
fn s04_the_same_from_another_address_changes_nothing() {
    for case in all_cases() {
        let (name, mut host) = (case.name, case.host());
        let memory = host.bytes(0, AREA);
        let request = (case.request)(&host);
        host.recv(request.clone().from(STRANGER));
        host.recv(request.clone().to(STRANGER));
        host.recv(request.clone().pkey(0x8001));
        assert_eq!((host.sent(), host.state()), (vec![], QpState::Rts), "{name}");
        assert_eq!((host.received(), host.events()), (vec![], vec![]), "{name}");
        assert_eq!((host.count(Counter::WrongSource), host.count(Counter::BadPkey)), (2, 1), "{name}");
        assert_eq!(host.bytes(0, AREA), memory, "{name}");
        host.recv(request);
        assert_eq!(host.state(), QpState::Err, "{name}: the peer itself is heard as before");
    }
}
