//! Memory windows of the serving end: bound, used, unbound.

use super::common::{SEND_ID, SIZE};
use crate::deviation::{LOCAL_FAILURE, WINDOW_RANGE};
use crate::peer::{Binding, Operation, Part, Remote, Request, Result, WindowKind, access, opcode, status};
use crate::scenario::{
    Pair, Scenario, check_equal, check_memory, check_status, check_success, eventually_memory, pattern, place,
};

const BIND_ID: u64 = 0xb14d;
/// The right that a region must grant to be shown through windows.
const BINDABLE: u32 = access::ALL | access::MW_BIND;
const READ_AND_WRITE: u32 = access::REMOTE_READ | access::REMOTE_WRITE;

type Run = fn(&mut Pair<'_>, WindowKind) -> Result<()>;

/// All of them.
pub(super) fn all() -> Vec<Scenario> {
    let kinds = [("mw1", WindowKind::One), ("mw2", WindowKind::Two)];
    let runs: [(&str, Run); 6] = [
        ("write-read", write_and_read),
        ("outside", outside),
        ("read-only", read_only),
        ("unbound", unbound),
        ("wrong-length", wrong_length),
        ("other-queue-pair", other_queue_pair),
    ];
    let list = kinds.into_iter().flat_map(|(kind_name, kind)| {
        runs.map(|(name, run)| {
            Scenario::message(format!("{kind_name}/{name}"), SIZE, move |pair| run(pair, kind))
                .with(|demands| (demands.access, demands.queue_pairs) = (BINDABLE, 2))
        })
    });
    let refused = kinds.map(|(name, kind)| {
        // The region lacks the right.
        Scenario::message(format!("{name}/no-bind-right"), SIZE, move |pair| no_bind_right(pair, kind))
    });
    list.chain(refused).collect()
}

/// Binds a window of the serving end; what peers see of it.
pub(super) fn bound(pair: &mut Pair<'_>, kind: WindowKind, part: Part, access: u32) -> Result<Remote> {
    pair.passive.allocate_window(kind)?;
    let rkey = pair.passive.bind(&Binding { wr_id: BIND_ID, part, access })?;
    check_success(&pair.passive_completion()?, BIND_ID, opcode::BIND_MW)?;
    Ok(Remote { rkey, ..pair.remote(part.offset) })
}

/// The serving end's window shuts: by the way of its type.
fn unbind(pair: &mut Pair<'_>, kind: WindowKind, rkey: u32) -> Result<()> {
    let part = Part { length: 0, ..place(0) };
    match kind {
        WindowKind::One => pair.passive.bind(&Binding { wr_id: BIND_ID, part, access: 0 }).map(drop)?,
        WindowKind::Two => {
            pair.passive.post_send(&Request::new(BIND_ID, Operation::LocalInvalidate { rkey }, part))?;
        }
    }
    let opcode = if kind == WindowKind::One { opcode::BIND_MW } else { opcode::LOCAL_INV };
    check_success(&pair.passive_completion()?, BIND_ID, opcode)
}

pub(super) const fn write(remote: Remote, part: Part) -> Request {
    Request::new(SEND_ID, Operation::Write { remote, immediate: None }, part)
}

const fn read(remote: Remote, part: Part) -> Request {
    Request::new(SEND_ID, Operation::Read { remote }, part)
}

/// WRITEs fresh data through a window, and READs it back.
pub(super) fn writes_and_reads(pair: &mut Pair<'_>, remote: Remote, part: Part, seed: u32) -> Result<()> {
    let data = pattern(part.length, seed);
    pair.active.write(part.offset, &data)?;
    check_success(&pair.request(&write(remote, part))?, SEND_ID, opcode::WRITE)?;
    eventually_memory(pair.passive, part.offset, &data)?;
    pair.active.write(part.offset, &vec![0; part.length])?;
    check_success(&pair.request(&read(remote, part))?, SEND_ID, opcode::READ)?;
    check_memory(pair.active, part.offset, &data)
}

fn write_and_read(pair: &mut Pair<'_>, kind: WindowKind) -> Result<()> {
    let part = place(SIZE);
    let window = bound(pair, kind, part, READ_AND_WRITE)?;
    check_equal("the window has the region's key", window.rkey == pair.targets[0].rkey, false)?;
    writes_and_reads(pair, window, part, 1)
}

/// A byte before the window is not in it, although it is in the region.
fn outside(pair: &mut Pair<'_>, kind: WindowKind) -> Result<()> {
    let part = place(SIZE);
    let window = bound(pair, kind, part, READ_AND_WRITE)?;
    let before = Remote { addr: window.addr - 1, ..window };
    let expected = pair.of_passive(status::REM_ACCESS_ERR, &WINDOW_RANGE, status::SUCCESS);
    check_status(&pair.request(&write(before, part))?, SEND_ID, expected)
}

fn wrong_length(pair: &mut Pair<'_>, kind: WindowKind) -> Result<()> {
    let part = place(SIZE);
    let window = bound(pair, kind, Part { length: SIZE - 1, ..part }, READ_AND_WRITE)?;
    let expected = pair.of_passive(status::REM_ACCESS_ERR, &WINDOW_RANGE, status::SUCCESS);
    check_status(&pair.request(&read(window, part))?, SEND_ID, expected)
}

/// Rights are the window's, not the region's.
fn read_only(pair: &mut Pair<'_>, kind: WindowKind) -> Result<()> {
    let part = place(SIZE);
    let window = bound(pair, kind, part, access::REMOTE_READ)?;
    check_success(&pair.request(&read(window, part))?, SEND_ID, opcode::READ)?;
    check_status(&pair.request(&write(window, part))?, SEND_ID, status::REM_ACCESS_ERR)
}

fn unbound(pair: &mut Pair<'_>, kind: WindowKind) -> Result<()> {
    let part = place(SIZE);
    let window = bound(pair, kind, part, READ_AND_WRITE)?;
    writes_and_reads(pair, window, part, 2)?;
    unbind(pair, kind, window.rkey)?;
    check_status(&pair.request(&write(window, part))?, SEND_ID, status::REM_ACCESS_ERR)
}

/// A window of type 1 is for all queue pairs of the domain, one of type 2 for that it was bound through.
fn other_queue_pair(pair: &mut Pair<'_>, kind: WindowKind) -> Result<()> {
    let part = place(SIZE);
    let window = bound(pair, kind, part, READ_AND_WRITE)?;
    let done = pair.request(&write(window, part).on(1))?;
    match kind {
        WindowKind::One => check_success(&done, SEND_ID, opcode::WRITE),
        WindowKind::Two => check_status(&done, SEND_ID, status::REM_ACCESS_ERR),
    }
}

/// A region that grants no windows: the binding fails, and with it the queue pair that it was posted to.
fn no_bind_right(pair: &mut Pair<'_>, kind: WindowKind) -> Result<()> {
    pair.passive.allocate_window(kind)?;
    pair.passive.bind(&Binding { wr_id: BIND_ID, part: place(SIZE), access: READ_AND_WRITE })?;
    let expected = pair.of_passive(status::MW_BIND_ERR, &LOCAL_FAILURE, status::WR_FLUSH_ERR);
    check_status(&pair.passive_completion()?, BIND_ID, expected)
}
