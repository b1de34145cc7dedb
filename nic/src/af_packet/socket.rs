//! The system calls of a packet socket, each behind one safe function.

use std::io::{self, IoSlice};
use std::mem::{size_of, zeroed};
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::filter;
use crate::sys;

/// Frames read with one system call at most.
pub(super) const BATCH: usize = 8;

/// A frame as the kernel hands it over.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Received {
    /// Bytes written to the buffer, with the header that tells whether it holds several.
    pub(super) length: usize,
    /// The frame was longer than the buffer.
    pub(super) truncated: bool,
    /// We sent it ourselves.
    pub(super) outgoing: bool,
    /// The VLAN tag that the kernel took out: EtherType and control information.
    pub(super) tag: Option<(u16, u16)>,
}

/// Each frame comes and goes behind a header of the module `vnet`. Not in libc for every target.
const PACKET_VNET_HDR: libc::c_int = 15;
/// Frames that hold several are handed on whole.
const UDP_GRO: libc::c_int = 104;

/// A packet socket on an interface, which sees the frames that the filter keeps.
pub(super) fn open(interface: u32) -> io::Result<OwnedFd> {
    // Protocol zero: nothing is received before the filter is in place.
    let socket = sys::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK, 0)?;
    attach(socket.as_fd(), &filter::ours())?;
    set(socket.as_fd(), libc::PACKET_AUXDATA, 1)?;
    set(socket.as_fd(), PACKET_VNET_HDR, 1)?;
    // Kernels before 4.20 do not know it; outgoing frames are told apart one by one as well.
    let _ = set(socket.as_fd(), libc::PACKET_IGNORE_OUTGOING, 1);
    bind(socket.as_fd(), interface)?;
    Ok(socket)
}

/// Makes a UDP socket refuse every datagram: it only occupies its port.
pub(super) fn silence(socket: &UdpSocket) -> io::Result<()> {
    attach(socket.as_fd(), &filter::nothing())?;
    // Else the kernel would take a frame apart that holds several, to refuse each by itself. Kernels before 5.0 do not
    // know it, and no such frames either.
    let _ = sys::set_option(socket.as_fd(), libc::SOL_UDP, UDP_GRO, &1);
    Ok(())
}

fn set(socket: BorrowedFd<'_>, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    sys::set_option(socket, libc::SOL_PACKET, option, &value)
}

fn attach(socket: BorrowedFd<'_>, code: &[libc::sock_filter]) -> io::Result<()> {
    // The kernel copies the program and does not write to it.
    let program = libc::sock_fprog { len: code.len() as u16, filter: code.as_ptr().cast_mut() };
    sys::set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

fn bind(socket: BorrowedFd<'_>, interface: u32) -> io::Result<()> {
    let mut address = link_address();
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = interface as i32;
    let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the pointer and the length describe `address`, which outlives the call; the kernel only reads it.
    sys::check(unsafe { libc::bind(socket.as_raw_fd(), std::ptr::from_ref(&address).cast(), len) })?;
    Ok(())
}

/// Whether the socket lost its interface for good.
pub(super) fn is_orphaned(socket: BorrowedFd<'_>) -> bool {
    let mut address = link_address();
    let mut len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: pointer and length describe `address`, which outlives the call.
    let result =
        unsafe { libc::getsockname(socket.as_raw_fd(), std::ptr::from_mut(&mut address).cast(), &mut len) };
    result == 0 && address.sll_ifindex < 0
}

fn link_address() -> libc::sockaddr_ll {
    // SAFETY: a structure of integers, for which all zeroes is a value.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address
}

/// Room for the one control message that is asked for, aligned as the kernel wants it.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; 64]);

/// Reads frames into the buffers, as many as are there; how many they were. At least one, else an error.
pub(super) fn receive(
    socket: BorrowedFd<'_>,
    buffers: &mut [Box<[u8]>; BATCH],
    received: &mut [Received; BATCH],
) -> io::Result<usize> {
    let mut from = [link_address(); BATCH];
    let mut controls = [Control([0; 64]); BATCH];
    let mut parts = buffers
        .each_mut()
        .map(|buffer| libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() });
    let mut at = 0;
    let mut messages = [(); BATCH].map(|()| {
        let message = message(&mut from[at], &mut parts[at], &mut controls[at]);
        at += 1;
        libc::mmsghdr { msg_hdr: message, msg_len: 0 }
    });
    let (fd, none) = (socket.as_raw_fd(), std::ptr::null_mut());
    // SAFETY: every pointer of the messages goes to something that outlives the call, with its length beside it, and
    // the count is that of the messages.
    let count = sys::check(unsafe {
        libc::recvmmsg(fd, messages.as_mut_ptr(), BATCH as _, libc::MSG_DONTWAIT as _, none)
    })? as usize;
    for ((received, message), from) in received.iter_mut().zip(&messages[..count]).zip(&from) {
        *received = Received {
            length: message.msg_len as usize,
            truncated: message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
            outgoing: from.sll_pkttype == libc::PACKET_OUTGOING,
            tag: tag_of(&message.msg_hdr),
        };
    }
    Ok(count)
}

fn message(from: &mut libc::sockaddr_ll, part: &mut libc::iovec, control: &mut Control) -> libc::msghdr {
    // SAFETY: a structure of integers and pointers, for which all zeroes is a value.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_name = std::ptr::from_mut(from).cast();
    message.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    message.msg_iov = part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    message
}

fn tag_of(message: &libc::msghdr) -> Option<(u16, u16)> {
    // SAFETY: the message was filled by recvmmsg and its control buffer lives in the caller.
    let control = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: null, or a pointer to a whole header within the aligned control buffer.
    let header = unsafe { control.as_ref() }?;
    if header.cmsg_level != libc::SOL_PACKET || header.cmsg_type != libc::PACKET_AUXDATA {
        return None;
    }
    // SAFETY: the header was just found to be within the buffer; the data follow it.
    let data = unsafe { libc::CMSG_DATA(control) };
    // SAFETY: a message of this type carries this structure, which is plain integers; no alignment is assumed.
    let auxiliary: libc::tpacket_auxdata = unsafe { data.cast::<libc::tpacket_auxdata>().read_unaligned() };
    let status = auxiliary.tp_status;
    let kind = if status & libc::TP_STATUS_VLAN_TPID_VALID != 0 { auxiliary.tp_vlan_tpid } else { 0x8100 };
    (status & libc::TP_STATUS_VLAN_VALID != 0).then_some((kind, auxiliary.tp_vlan_tci))
}

/// Sends the frame that stands behind its header.
pub(super) fn send(socket: BorrowedFd<'_>, frame: &[u8]) -> io::Result<()> {
    // SAFETY: pointer and length describe `frame`; the kernel only reads it.
    let sent =
        unsafe { libc::send(socket.as_raw_fd(), frame.as_ptr().cast(), frame.len(), libc::MSG_DONTWAIT) };
    sys::check(sent as i32)?;
    Ok(())
}

/// Sends the frame that these pieces make, behind its header.
pub(super) fn send_pieces(socket: BorrowedFd<'_>, pieces: &[IoSlice<'_>]) -> io::Result<()> {
    // SAFETY: a structure of integers and pointers, for which all zeroes is a value.
    let mut message: libc::msghdr = unsafe { zeroed() };
    // An IoSlice is an iovec, by its documentation; sending does not write to it.
    message.msg_iov = pieces.as_ptr().cast_mut().cast();
    message.msg_iovlen = pieces.len() as _;
    // SAFETY: the message points to the pieces, which outlive the call and describe memory that is only read.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &message, libc::MSG_DONTWAIT) };
    sys::check(sent as i32)?;
    Ok(())
}

/// Frames lost for want of buffer space since the last time this was asked.
pub(super) fn lost_since(socket: BorrowedFd<'_>) -> u64 {
    let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut len = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    let value = std::ptr::from_mut(&mut stats).cast();
    // SAFETY: value and length are on the stack and outlive the call.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, value, &mut len)
    };
    if result == 0 { stats.tp_drops.into() } else { 0 }
}
