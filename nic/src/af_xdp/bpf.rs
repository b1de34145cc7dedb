//! The calls into libbpf, each behind one safe function.

use std::ffi::CStr;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use libbpf_sys::{
    BPF_F_XDP_HAS_FRAGS, BPF_MAP_TYPE_XSKMAP, BPF_PROG_TYPE_SCHED_CLS, BPF_PROG_TYPE_XDP, BPF_TCX_INGRESS,
    BPF_XDP, XDP_FLAGS_DRV_MODE, XDP_FLAGS_SKB_MODE, bpf_attach_type, bpf_insn, bpf_link_create_opts,
    bpf_prog_load_opts, bpf_prog_type,
};

use super::asm::Instruction;
use crate::XdpAttach;
use crate::sys::{check, owned};

const MAP_NAME: &CStr = c"uroce_sockets";
const PROGRAM_NAME: &CStr = c"uroce_steer";
const LICENSE: &CStr = c"Dual MIT/GPL";

/// A map from queue number to AF_XDP socket, with room for `queues` of them.
pub(super) fn create_socket_map(queues: u32) -> io::Result<OwnedFd> {
    quiet();
    const NUMBER: u32 = size_of::<u32>() as u32;
    // SAFETY: the name is a C string that outlives the call, and null options are allowed.
    let fd = unsafe {
        libbpf_sys::bpf_map_create(
            BPF_MAP_TYPE_XSKMAP,
            MAP_NAME.as_ptr(),
            NUMBER,
            NUMBER,
            queues,
            std::ptr::null(),
        )
    };
    own(fd)
}

/// Lets the program find the socket of a queue. The kernel takes it out again when the socket is closed.
pub(super) fn insert_socket(map: BorrowedFd<'_>, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
    let socket: i32 = socket.as_raw_fd();
    let (key, value) = (std::ptr::from_ref(&queue).cast(), std::ptr::from_ref(&socket).cast());
    // SAFETY: key and value are four bytes each, as the map was created with, and outlive the call.
    failure(unsafe { libbpf_sys::bpf_map_update_elem(map.as_raw_fd(), key, value, 0) })?;
    Ok(())
}

/// Loads an XDP program. With `fragments` it may be run on frames that lie in several buffers.
pub(super) fn load_program(code: &[Instruction], fragments: bool) -> io::Result<OwnedFd> {
    load(BPF_PROG_TYPE_XDP, code, if fragments { BPF_F_XDP_HAS_FRAGS } else { 0 })
}

/// Loads a program of traffic control.
pub(super) fn load_traffic_program(code: &[Instruction]) -> io::Result<OwnedFd> {
    load(BPF_PROG_TYPE_SCHED_CLS, code, 0)
}

fn load(kind: bpf_prog_type, code: &[Instruction], flags: u32) -> io::Result<OwnedFd> {
    quiet();
    let mut options = bpf_prog_load_opts {
        sz: size_of::<bpf_prog_load_opts>() as _,
        prog_flags: flags,
        ..Default::default()
    };
    // SAFETY: names and code outlive the call, and the count is that of the code. `Instruction` has the size and
    // layout of the kernel's `struct bpf_insn`, whose register fields are two halves of one byte. The options say
    // their size and are otherwise zero but for the flags.
    let fd = unsafe {
        libbpf_sys::bpf_prog_load(
            kind,
            PROGRAM_NAME.as_ptr(),
            LICENSE.as_ptr(),
            code.as_ptr().cast::<bpf_insn>(),
            code.len() as _,
            &mut options,
        )
    };
    own(fd)
}

/// Attaches an XDP program to an interface for as long as the returned link is open.
pub(super) fn attach(program: BorrowedFd<'_>, interface: u32, attach: XdpAttach) -> io::Result<OwnedFd> {
    let flags = match attach {
        XdpAttach::Native => XDP_FLAGS_DRV_MODE,
        XdpAttach::Generic => XDP_FLAGS_SKB_MODE,
    };
    link(program, interface, BPF_XDP, flags)
}

/// Attaches a program of traffic control to what an interface receives, for as long as the returned link is open.
pub(super) fn attach_to_ingress(program: BorrowedFd<'_>, interface: u32) -> io::Result<OwnedFd> {
    link(program, interface, BPF_TCX_INGRESS, 0)
}

fn link(program: BorrowedFd<'_>, interface: u32, to: bpf_attach_type, flags: u32) -> io::Result<OwnedFd> {
    let options =
        bpf_link_create_opts { sz: size_of::<bpf_link_create_opts>() as _, flags, ..Default::default() };
    // SAFETY: the options say their size, are otherwise zero but for the flags, and outlive the call.
    let fd = unsafe { libbpf_sys::bpf_link_create(program.as_raw_fd(), interface as i32, to, &options) };
    own(fd)
}

/// Takes the program behind a link off its interface, whoever else holds the link open.
pub(super) fn detach(link: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes one integer and touches no memory of ours.
    failure(unsafe { libbpf_sys::bpf_link_detach(link.as_raw_fd()) })?;
    Ok(())
}

/// Number of the XDP program on an interface, whoever attached it; `None` when there is none.
pub(super) fn attached_program(interface: u32) -> io::Result<Option<u32>> {
    let mut id = 0;
    // SAFETY: the pointer is to an integer on the stack that outlives the call.
    failure(unsafe { libbpf_sys::bpf_xdp_query_id(interface as i32, 0, &mut id) })?;
    Ok(Some(id).filter(|&id| id != 0))
}

/// Runs a program on a frame and returns its verdict.
#[cfg(test)]
pub(super) fn test_run(program: BorrowedFd<'_>, frame: &[u8]) -> io::Result<u32> {
    let mut options = libbpf_sys::bpf_test_run_opts {
        sz: size_of::<libbpf_sys::bpf_test_run_opts>() as _,
        data_in: frame.as_ptr().cast(),
        data_size_in: frame.len() as u32,
        repeat: 1,
        ..Default::default()
    };
    // SAFETY: the options say their size; the frame they point to outlives the call and has the length they say.
    failure(unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &mut options) })?;
    Ok(options.retval)
}

/// libbpf answers a descriptor, or an error as a negative number.
fn own(result: libc::c_int) -> io::Result<OwnedFd> {
    owned(failure(result)?)
}

fn failure(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { check(result) }
}

/// Our errors say what went wrong; libbpf's own lines on standard error would only repeat it.
fn quiet() {
    // SAFETY: no printing function is what libbpf documents to silence it; it stores the value atomically.
    unsafe { libbpf_sys::libbpf_set_print(None) };
}

/// A socket that another crate owns and lends us by number.
pub(super) fn borrow(fd: &impl AsRawFd) -> BorrowedFd<'_> {
    // SAFETY: the descriptor is open as long as its owner, which the borrow keeps alive.
    unsafe { BorrowedFd::borrow_raw(fd.as_raw_fd()) }
}

const _: () = assert!(size_of::<Instruction>() == size_of::<bpf_insn>());
